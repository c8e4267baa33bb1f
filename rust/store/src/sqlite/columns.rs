//! The columns of a memory, in the one order in which every statement reads and writes them.

use std::str::FromStr;
use std::sync::Arc;

use memkura_model::{DeliveryMode, Memory, MemoryId, Metadata, SourceType, Status, Tier, Timestamp};
use rusqlite::Row;
use rusqlite::types::Type;

/// What [`memory_from`] reads, in its order.
pub const MEMORY: &str = "row, memory_id, context, type, scope, key, summary, content, tags, metadata, \
     delivery_mode, trigger, importance, confidence, proof, status, source_type, trust_tier, derived_from, \
     superseded_by, session, event_time, expires_at, created_at, updated_at, last_seen, access_count, \
     decay_rate, version, text_version, embedded";

/// How many columns [`MEMORY`] names: those that a statement adds come after.
pub const MEMORY_COUNT: usize = 31;

/// Every column of a memory, for moving a row to `revision` as it stands.
pub const STATE: &str = "row, memory_id, context, type, scope, key, key_folded, summary, content, tags, metadata, \
     delivery_mode, trigger, importance, confidence, proof, status, source_type, trust_tier, derived_from, \
     superseded_by, session, event_time, expires_at, created_at, updated_at, last_seen, access_count, \
     decay_rate, version, text_version, embedded, fingerprint, last_action, last_door";

/// The memory in a row that was read with [`MEMORY`]. `context_id` is the name of the row's context.
pub fn memory_from(row: &Row<'_>, context_id: &Arc<str>) -> rusqlite::Result<Memory> {
    Ok(Memory {
        row: row.get(0)?,
        memory_id: parsed(row, 1)?,
        context: row.get(2)?,
        context_id: Arc::clone(context_id),
        kind: row.get(3)?,
        scope: row.get(4)?,
        key: row.get(5)?,
        summary: row.get(6)?,
        content: row.get(7)?,
        tags: json(row, 8)?,
        metadata: Metadata::from_record(row.get(9)?),
        delivery_mode: named(row, 10, |text| DeliveryMode::parse(text).ok())?,
        trigger: row.get::<_, Option<String>>(11)?.map(Metadata::from_record),
        importance: row.get(12)?,
        confidence: row.get(13)?,
        proof: row.get(14)?,
        status: named(row, 15, Status::parse)?,
        source_type: named(row, 16, SourceType::parse)?,
        trust_tier: named(row, 17, Tier::parse)?,
        derived_from: ids(row, 18)?,
        superseded_by: optional(row, 19)?,
        session: row.get(20)?,
        event_time: optional_time(row, 21)?,
        expires_at: optional_time(row, 22)?,
        created_at: time(row, 23)?,
        updated_at: time(row, 24)?,
        last_seen: optional_time(row, 25)?,
        access_count: row.get(26)?,
        decay_rate: row.get(27)?,
        version: row.get(28)?,
        text_version: row.get(29)?,
        embedded: row.get(30)?,
    })
}

/// A list of texts as JSON.
pub fn json_list<T: ToString>(items: &[T]) -> String {
    serde_json::Value::from(items.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string()
}

/// The instant in column `at`.
pub fn time(row: &Row<'_>, at: usize) -> rusqlite::Result<Timestamp> {
    named(row, at, |text| Timestamp::parse(text).ok())
}

fn optional_time(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Timestamp>> {
    match row.get_ref(at)?.as_str_or_null()? {
        None => Ok(None),
        Some(_) => time(row, at).map(Some),
    }
}

/// A value that its own type can read from text.
pub fn parsed<T: FromStr>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    named(row, at, |text| text.parse().ok())
}

fn optional<T: FromStr>(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<T>> {
    match row.get_ref(at)?.as_str_or_null()? {
        None => Ok(None),
        Some(_) => parsed(row, at).map(Some),
    }
}

/// The value that `read` finds in the text of column `at`; text that we never write is an error of its own.
pub fn named<T>(row: &Row<'_>, at: usize, read: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text = row.get_ref(at)?.as_str()?;
    read(text).ok_or_else(|| {
        let problem = format!("memkura never writes {text:?} here");
        rusqlite::Error::FromSqlConversionFailure(at, Type::Text, problem.into())
    })
}

fn json(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<String>> {
    named(row, at, |text| if text == "[]" { Some(Vec::new()) } else { serde_json::from_str(text).ok() })
}

fn ids(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<MemoryId>> {
    json(row, at)?
        .iter()
        .map(|text| {
            text.parse().map_err(|error| rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error)))
        })
        .collect()
}
