//! Memories as tests and benches make them.

use std::sync::Arc;

use memkura_model::{DeliveryMode, Memory, MemoryId, Metadata, SourceType, Status, Tier, Timestamp};

/// A memory with nothing but a summary.
pub fn memory(row: i64, summary: String) -> Memory {
    Memory {
        row,
        memory_id: MemoryId(row as u128),
        context: 1,
        context_id: Arc::from("c"),
        kind: "note".into(),
        scope: None,
        key: None,
        summary,
        content: None,
        tags: Vec::new(),
        metadata: Metadata::default(),
        delivery_mode: DeliveryMode::OnRecall,
        trigger: None,
        importance: 0.5,
        confidence: 0.5,
        proof: None,
        status: Status::Active,
        source_type: SourceType::Manual,
        trust_tier: Tier::Trusted,
        derived_from: Vec::new(),
        superseded_by: None,
        session: None,
        event_time: None,
        expires_at: None,
        created_at: Timestamp(row),
        updated_at: Timestamp(row),
        last_seen: None,
        access_count: 0,
        decay_rate: 0.01,
        version: 1,
        text_version: 1,
        embedded: true,
    }
}
