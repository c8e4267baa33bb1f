//! A filter compiled to bitmaps means what the model says it means.

use std::sync::Arc;

use memkura_index::Partition;
use memkura_model::filter::parse;
use memkura_model::{DeliveryMode, Memory, MemoryId, Metadata, SourceType, Status, Tier, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

fn memory(row: i64, seed: u32) -> Memory {
    let kinds = ["note", "fact", "rule"];
    let pick = |count: u32, salt: u32| (seed / salt) % count;
    let metadata = match pick(5, 7) {
        0 => json!({}),
        1 => json!({"n": pick(4, 11)}),
        2 => json!({"n": f64::from(pick(4, 11)) + 0.5, "deep": {"x": "a"}}),
        3 => json!({"n": "1", "list": [1, "b", true]}),
        _ => json!({"n": true, "a.b": 1}),
    };
    Memory {
        row,
        memory_id: MemoryId((row as u128) << 80 | 7 << 76 | 2 << 62),
        context: 1,
        context_id: Arc::from("c"),
        kind: kinds[pick(3, 1) as usize].into(),
        scope: (pick(2, 3) == 0).then(|| "workspace".into()),
        key: (pick(2, 3) == 0).then(|| format!("Key.{row}")),
        summary: "s".into(),
        content: None,
        tags: (0..pick(3, 13)).map(|tag| format!("t{tag}")).collect(),
        metadata: Metadata::new("metadata", metadata.as_object().expect("an object")).expect("legal"),
        delivery_mode: DeliveryMode::OnRecall,
        trigger: None,
        importance: f64::from(pick(5, 17)) / 4.0,
        confidence: 0.5,
        proof: None,
        status: if pick(4, 19) == 0 { Status::Stale } else { Status::Active },
        source_type: SourceType::Manual,
        trust_tier: if pick(2, 23) == 0 { Tier::External } else { Tier::Trusted },
        derived_from: Vec::new(),
        superseded_by: None,
        session: (pick(2, 29) == 0).then(|| "s1".into()),
        event_time: (pick(3, 31) == 0).then(|| Timestamp(i64::from(pick(10, 37)) * 1_000_000)),
        expires_at: None,
        created_at: Timestamp(row * 1_000_000),
        updated_at: Timestamp(row * 1_000_000),
        last_seen: None,
        access_count: i64::from(pick(3, 41)),
        decay_rate: 0.01,
        version: 1,
        text_version: 1,
        embedded: false,
    }
}

fn condition() -> impl Strategy<Value = Value> {
    let number = prop_oneof![Just(json!(1)), Just(json!(1.5)), Just(json!(0)), Just(json!(0.5))];
    let bound = prop::sample::select(vec!["gt", "gte", "lt", "lte", "eq"]);
    let scalar = prop_oneof![Just(json!("1")), Just(json!("a")), Just(json!(true)), Just(json!(1)), Just(json!(2.5))];
    prop_oneof![
        prop::sample::select(vec!["note", "fact", "none"]).prop_map(|kind| json!({"type": kind})),
        prop::sample::select(vec!["t0", "t1", "t9"]).prop_map(|tag| json!({"tags": {"in": [tag, "t2"]}})),
        any::<bool>().prop_map(|wanted| json!({"tags": {"exists": wanted}})),
        any::<bool>().prop_map(|wanted| json!({"session": {"exists": wanted}})),
        (bound.clone(), number.clone()).prop_map(|(bound, value)| json!({"importance": {bound: value}})),
        (bound.clone(), number).prop_map(|(bound, value)| json!({"access_count": {bound: value}})),
        (bound.clone(), scalar.clone()).prop_map(|(bound, value)| json!({"metadata.n": {bound: value}})),
        (prop::sample::select(vec!["metadata.list", "metadata.deep.x", "metadata.a.b", "metadata.no"]), scalar)
            .prop_map(|(path, value)| json!({path: value})),
        (bound, 0_i64..20)
            .prop_map(|(bound, second)| json!({"created_at": {bound: Timestamp(second * 1_000_000).to_string()}})),
        any::<bool>().prop_map(|wanted| json!({"event_time": {"exists": wanted}})),
        prop::sample::select(vec!["trusted", "external"]).prop_map(|tier| json!({"trust_tier": tier})),
        (1_i64..20).prop_map(|row| json!({"key": format!("ＫＥＹ.{row}")})),
        (1_i64..20).prop_map(|row| json!({"memory_id": {"in": [memory(row, 0).memory_id.to_string(), "not an id"]}})),
    ]
}

fn filter() -> impl Strategy<Value = Value> {
    condition().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| json!({"and": parts})),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| json!({"or": parts})),
            inner.prop_map(|part| json!({"not": part})),
        ]
    })
}

proptest! {
    /// The compiled filter and the filter's meaning agree on every memory, also after rows changed and went.
    #[test]
    fn compiled_filter_has_the_filters_meaning(seeds in prop::collection::vec((any::<u32>(), any::<u32>()), 1..20), filter in filter()) {
        let parsed = parse(filter.as_object().expect("an object")).expect("legal");
        let mut partition = Partition::new(None);
        let mut expected = Vec::new();
        for (at, (before, after)) in seeds.iter().enumerate() {
            let row = at as i64 + 1;
            partition.put(&memory(row, *before), None).expect("in order");
            let now = Memory { version: 2, ..memory(row, *after) };
            partition.put(&now, None).expect("known");
            if after % 5 == 0 {
                partition.remove(row);
            } else if parsed.matches(&now) {
                expected.push(row);
            }
        }
        let matching = partition.matching(&parsed, Timestamp(0), false);
        prop_assert_eq!(partition.rows_of(matching), expected);
    }
}
