//! An index that grew, was sealed and was changed gives what one built at once gives.

use std::sync::Arc;

use memkura_index::vector::UnitQuery;
use memkura_index::{Checksums, Found, Partition, Query, Sealed};
use memkura_model::recall::{Curve, Fusion, Weights};
use memkura_model::{DeliveryMode, Filter, Memory, MemoryId, Metadata, SourceType, Status, Tier, Timestamp};
use proptest::prelude::*;

const DIMENSIONS: usize = 8;
const WORDS: [&str; 12] = [
    "deploy",
    "tuesday",
    "getUserById",
    "3.11.7",
    "港の灯台",
    "再現率",
    "배포는",
    "coffee",
    "the",
    "parse_http",
    "GB/s",
    "茶",
];

fn memory(row: i64, version: i64, words: &[usize], session: Option<u8>, status: Status) -> Memory {
    let summary: Vec<&str> = words.iter().map(|at| WORDS[*at]).collect();
    Memory {
        row,
        memory_id: MemoryId(row as u128),
        context: 1,
        context_id: Arc::from("c"),
        kind: "note".into(),
        scope: None,
        key: None,
        summary: summary.join(" "),
        content: None,
        tags: vec![format!("t{}", row % 3)],
        metadata: Metadata::default(),
        delivery_mode: DeliveryMode::OnRecall,
        trigger: None,
        importance: 0.5,
        confidence: 0.5,
        proof: None,
        status,
        source_type: SourceType::Manual,
        trust_tier: Tier::Trusted,
        derived_from: Vec::new(),
        superseded_by: None,
        session: session.map(|session| session.to_string()),
        event_time: None,
        expires_at: None,
        created_at: Timestamp(row),
        updated_at: Timestamp(row),
        last_seen: None,
        access_count: 0,
        decay_rate: 0.01,
        version,
        text_version: version,
        embedded: true,
    }
}

fn sealed(partition: &Partition, folder: Option<&std::path::Path>) -> Sealed {
    let documents = partition.to_seal().expect("the old part can be read");
    Sealed::write(folder, documents).expect("the folder can be written")
}

fn vector(words: &[usize]) -> Vec<f32> {
    let mut vector = vec![0.1; DIMENSIONS];
    words.iter().for_each(|at| vector[at % DIMENSIONS] += 1.0);
    vector
}

fn put(partition: &mut Partition, memory: &Memory, words: &[usize]) {
    partition.put(memory, Some(&vector(words))).expect("rows come in order");
}

fn search(partition: &Partition, text: &str, near: &[usize], fusion: Fusion) -> Vec<(MemoryId, f64)> {
    let unit = UnitQuery::new(&vector(near), DIMENSIONS).expect("a finite vector");
    let query = Query {
        text: Some(text),
        vector: Some(&unit),
        keys: Some(text),
        filter: &Filter::everything(),
        now: Timestamp(1_000_000),
        k: 50,
        fusion,
        weights: Weights::of(fusion),
        curve: Curve::Linear,
        neighbours: true,
        include_superseded: false,
        min_similarity: None,
    };
    let found = partition.search(&query).expect("the sealed part can be read").found;
    found.iter().map(|Found { memory_id, score, .. }| (*memory_id, *score)).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Put { words: Vec<usize>, session: Option<u8> },
    Change { which: usize, words: Vec<usize> },
    Retire { which: usize },
    Seal,
}

fn step() -> impl Strategy<Value = Step> {
    let words = || prop::collection::vec(0..WORDS.len(), 1..6);
    prop_oneof![
        4 => (words(), prop::option::of(0_u8..2)).prop_map(|(words, session)| Step::Put { words, session }),
        2 => (any::<usize>(), words()).prop_map(|(which, words)| Step::Change { which, words }),
        1 => any::<usize>().prop_map(|which| Step::Retire { which }),
        1 => Just(Step::Seal),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// I3: fresh and sealed together are one index, whatever was changed, retired and sealed on the way. The same ids in
    /// the same order with the same scores, bit for bit.
    #[test]
    fn grown_and_sealed_equals_built_at_once(steps in prop::collection::vec(step(), 1..40)) {
        let mut grown = Partition::new(Some(DIMENSIONS), None);
        let mut rows: Vec<(Memory, Vec<usize>)> = Vec::new();
        for step in steps {
            match step {
                Step::Put { words, session } => {
                    let memory = memory(rows.len() as i64 + 1, 1, &words, session, Status::Active);
                    put(&mut grown, &memory, &words);
                    rows.push((memory, words));
                }
                Step::Change { which, words } if !rows.is_empty() => {
                    let at = which % rows.len();
                    let (old, _) = &rows[at];
                    let session = old.session.as_ref().map(|session| session.parse().expect("we wrote it"));
                    let changed = memory(old.row, old.version + 1, &words, session, old.status);
                    put(&mut grown, &changed, &words);
                    rows[at] = (changed, words);
                }
                Step::Retire { which } if !rows.is_empty() => {
                    let at = which % rows.len();
                    rows[at].0.status = Status::Retired;
                    grown.remove(rows[at].0.row);
                }
                Step::Seal => {
                    let sealed = sealed(&grown, None);
                    grown.take_sealed(sealed).expect("memory can be read");
                }
                Step::Change { .. } | Step::Retire { .. } => {}
            }
        }
        let mut built = Partition::new(Some(DIMENSIONS), None);
        rows.iter().filter(|(memory, _)| memory.status == Status::Active).for_each(|(memory, words)| put(&mut built, memory, words));
        for (at, text) in WORDS.iter().enumerate() {
            for fusion in [Fusion::Score, Fusion::Rrf] {
                let near = [at, at / 2];
                prop_assert_eq!(search(&grown, text, &near, fusion), search(&built, text, &near, fusion));
            }
        }
    }
}

/// A sealed part on disk gives what the part in memory gave, after the index was loaded from it.
#[test]
fn sealed_part_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = |row: i64| vec![row as usize % WORDS.len(), (row as usize * 7) % WORDS.len()];
    let mut grown = Partition::new(Some(DIMENSIONS), None);
    (1..=200).for_each(|row| put(&mut grown, &memory(row, 1, &words(row), None, Status::Active), &words(row)));
    sealed(&grown, Some(folder.path()));

    let written = Checksums::of(folder.path()).expect("the folder can be read");
    let sealed = Sealed::open(folder.path(), &written).expect("the folder can be read");
    let mut loaded = Partition::new(Some(DIMENSIONS), Some(sealed));
    (1..=200).for_each(|row| put(&mut loaded, &memory(row, 1, &words(row), None, Status::Active), &words(row)));
    loaded.loaded();
    assert_eq!(loaded.text_parts(), (0, 200));
    for text in WORDS {
        assert_eq!(search(&loaded, text, &[1], Fusion::Score), search(&grown, text, &[1], Fusion::Score));
    }
}

/// A file that was cut off at any place, or is gone, is refused before anything reads it; so is a name that leads elsewhere.
#[test]
fn file_that_is_not_as_written_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut partition = Partition::new(None, None);
    (1..=20).for_each(|row| put(&mut partition, &memory(row, 1, &[0], None, Status::Active), &[]));
    sealed(&partition, Some(folder.path()));
    let written = Checksums::of(folder.path()).expect("the folder can be read");
    assert!(written.0.len() > 4);
    for name in written.0.keys() {
        let file = folder.path().join(name);
        let whole = std::fs::read(&file).expect("a file");
        for length in (0..whole.len()).rev().take(40).chain(0..whole.len().min(20)) {
            std::fs::write(&file, &whole[..length]).expect("a write");
            assert!(Sealed::open(folder.path(), &written).is_err(), "{name} of {length} bytes");
        }
        std::fs::remove_file(&file).expect("a file");
        assert!(Sealed::open(folder.path(), &written).is_err(), "no {name}");
        std::fs::write(&file, &whole).expect("a write");
    }
    assert!(Sealed::open(folder.path(), &written).is_ok());
    let (name, expected) = written.0.iter().next().expect("a file");
    let elsewhere = folder.path().join(name).display().to_string();
    assert!(Sealed::open(folder.path(), &Checksums([(elsewhere, *expected)].into())).is_err());
}

/// A part sealed of nothing holds nothing, on disk as in memory.
#[test]
fn nothing_can_be_sealed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut partition = Partition::new(None, None);
    partition.take_sealed(sealed(&partition, Some(folder.path()))).expect("memory can be read");
    assert!(search_text(&partition, "coffee").is_empty());
    let written = Checksums::of(folder.path()).expect("the folder can be read");
    assert_eq!(Sealed::open(folder.path(), &written).expect("the folder can be read").documents(), []);
}

/// A context's words count for its own scores alone: nothing outside the partition enters them.
#[test]
fn rare_word_outweighs_a_common_one() {
    let mut partition = Partition::new(None, None);
    (1..=20).for_each(|row| partition.put(&memory(row, 1, &[7], None, Status::Active), None).expect("in order"));
    partition.put(&memory(21, 1, &[0], None, Status::Active), None).expect("in order");
    let found = search_text(&partition, "coffee deploy");
    assert_eq!(found[0], MemoryId(21));
}

fn search_text(partition: &Partition, text: &str) -> Vec<MemoryId> {
    let query = Query {
        text: Some(text),
        vector: None,
        keys: None,
        filter: &Filter::everything(),
        now: Timestamp(0),
        k: 10,
        fusion: Fusion::Score,
        weights: Weights::of(Fusion::Score),
        curve: Curve::Linear,
        neighbours: false,
        include_superseded: false,
        min_similarity: None,
    };
    partition.search(&query).expect("nothing is sealed").found.iter().map(|found| found.memory_id).collect()
}
