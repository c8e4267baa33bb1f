//! An index that grew, was sealed and was changed gives what one built at once gives.

use std::collections::BTreeSet;
use std::path::Path;

use memkura_index::vector::{Tier, UnitQuery};
use memkura_index::{Build, Contents, Found, IndexError, Partition, Query, sum_up};
use memkura_model::filter::parse;
use memkura_model::recall::{Fusion, Weights};
use memkura_model::{Filter, Memory, MemoryId, Metadata, Status, Timestamp};
use proptest::prelude::*;
use serde_json::json;

#[path = "made/asked.rs"]
mod asked;
mod made;

use asked::query;

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
        scope: (row % 4 == 0).then(|| "workspace".into()),
        key: (row % 4 == 0).then(|| format!("{}.{row}", WORDS[words[0]])),
        tags: vec![format!("t{}", (row + version) % 3)],
        metadata: metadata(row + version),
        status,
        superseded_by: (row % 7 == 0 && version % 2 == 0).then_some(MemoryId(1)),
        session: session.map(|session| session.to_string()),
        expires_at: (row % 5 == 0).then_some(Timestamp(1_000_000 + row % 2)),
        version,
        text_version: version,
        ..made::memory(row, summary.join(" "))
    }
}

fn metadata(seed: i64) -> Metadata {
    let object = match seed % 4 {
        0 => json!({}),
        1 => json!({"n": seed, "deep": {"x": ["a", "a", true]}}),
        2 => json!({"n": 0.5, "名": "灯台"}),
        _ => json!({"n": "1", "none": null, "list": []}),
    };
    Metadata::new("metadata", object.as_object().expect("an object")).expect("legal")
}

/// Seals a partition on disk, and goes on with it as a process does.
fn seal(partition: &mut Partition, folder: &Path) -> Contents {
    let written = partition.snapshot().expect("it can be encoded").write(Some(folder));
    partition.take_sealed(written.expect("the folder can be written"));
    sum_up(folder).expect("the files are there")
}

/// The partition that was sealed, as another process opens it.
fn opened(folder: &Path, contents: &Contents) -> Partition {
    Partition::open(folder, contents, Some(DIMENSIONS)).expect("nothing was changed")
}

/// Rows that two partitions show differently.
fn differences(one: &Partition, other: &Partition) -> Vec<i64> {
    one.differences(other).into_iter().collect()
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
    search_filtered(partition, text, near, fusion, &Filter::everything())
}

fn search_filtered(
    partition: &Partition,
    text: &str,
    near: &[usize],
    fusion: Fusion,
    filter: &Filter,
) -> Vec<(MemoryId, f64)> {
    let unit = UnitQuery::new(&vector(near), DIMENSIONS).expect("a finite vector");
    let legs = query(Some(text), Some(&unit), filter);
    let query = Query { keys: Some(text), k: 50, fusion, weights: Weights::of(fusion), neighbours: true, ..legs };
    let found = partition.search(&query).found;
    found.iter().map(|Found { memory_id, score, .. }| (*memory_id, *score)).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Put {
        words: Vec<usize>,
        session: Option<u8>,
    },
    Change {
        which: usize,
        words: Vec<usize>,
    },
    Retire {
        which: usize,
    },
    Embed {
        which: usize,
        is_lost: bool,
    },
    Seal,
    /// Another process opens what was sealed last, and applies what changed since.
    Load,
}

fn step() -> impl Strategy<Value = Step> {
    let words = || prop::collection::vec(0..WORDS.len(), 1..6);
    prop_oneof![
        4 => (words(), prop::option::of(0_u8..2)).prop_map(|(words, session)| Step::Put { words, session }),
        2 => (any::<usize>(), words()).prop_map(|(which, words)| Step::Change { which, words }),
        1 => any::<usize>().prop_map(|which| Step::Retire { which }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(which, is_lost)| Step::Embed { which, is_lost }),
        1 => Just(Step::Seal),
        1 => Just(Step::Load),
    ]
}

/// The record, as far as a partition follows it.
#[derive(Default)]
struct Record {
    rows: Vec<(Memory, Vec<usize>, bool)>,
    /// Rows that changed since the last seal.
    changed: BTreeSet<usize>,
}

impl Record {
    fn write(&mut self, at: usize, memory: Memory, words: Vec<usize>) {
        if at == self.rows.len() {
            self.rows.push((memory, words, true));
        } else {
            self.rows[at] = (memory, words, true);
        }
        self.changed.insert(at);
    }

    /// Brings `partition` up to date with row `at`.
    fn show(&self, partition: &mut Partition, at: usize) {
        let (memory, words, is_embedded) = &self.rows[at];
        let vectors = is_embedded.then(|| vector(words));
        partition.put(memory, vectors.as_deref()).expect("rows come in order");
    }

    fn built(&self) -> Partition {
        let mut built = Partition::new(Some(DIMENSIONS));
        (0..self.rows.len()).for_each(|at| self.show(&mut built, at));
        built
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// I3: an index is one and the same, whatever was changed, retired, sealed, opened again and changed on the way. The
    /// same rows with the same words, values and vectors; the same ids in the same order with the same scores, bit for bit.
    #[test]
    fn grown_and_sealed_equals_built_at_once(steps in prop::collection::vec(step(), 1..40)) {
        let mut grown = Partition::new(Some(DIMENSIONS));
        let mut record = Record::default();
        let mut sealed: Option<(tempfile::TempDir, Contents)> = None;
        for step in steps {
            let count = record.rows.len();
            match step {
                Step::Put { words, session } => {
                    record.write(count, memory(count as i64 + 1, 1, &words, session, Status::Active), words);
                    record.show(&mut grown, count);
                }
                Step::Change { which, words } if count > 0 => {
                    let at = which % count;
                    let (old, ..) = &record.rows[at];
                    // What is retired stays so: a row that comes back may be out of order, and is built again then.
                    let session = old.session.as_ref().map(|session| session.parse().expect("we wrote it"));
                    let changed = memory(old.row, old.version + 1, &words, session, old.status);
                    let changed = Memory {
                        superseded_by: changed.superseded_by.filter(|_| old.status == Status::Active),
                        ..changed
                    };
                    record.write(at, changed, words);
                    record.show(&mut grown, at);
                }
                Step::Retire { which } if count > 0 => {
                    let at = which % count;
                    record.rows[at].0.status = Status::Retired;
                    record.rows[at].0.superseded_by = None;
                    record.changed.insert(at);
                    record.show(&mut grown, at);
                }
                Step::Embed { which, is_lost } if count > 0 => {
                    let at = which % count;
                    // The record loses a vector with its text alone.
                    let (old, words, _) = record.rows[at].clone();
                    let next = i64::from(is_lost);
                    let changed = Memory { version: old.version + 1, text_version: old.text_version + next, ..old };
                    record.rows[at] = (changed, words, !is_lost);
                    record.changed.insert(at);
                    record.show(&mut grown, at);
                }
                Step::Seal => {
                    let folder = tempfile::tempdir().expect("a folder");
                    let contents = seal(&mut grown, folder.path());
                    prop_assert!(grown.is_sealed());
                    sealed = Some((folder, contents));
                    record.changed.clear();
                }
                Step::Load => {
                    if let Some((folder, contents)) = &sealed {
                        grown = opened(folder.path(), contents);
                        record.changed.iter().for_each(|at| record.show(&mut grown, *at));
                    }
                }
                Step::Change { .. } | Step::Retire { .. } | Step::Embed { .. } => {}
            }
        }
        // What is mapped outlives its folder.
        drop(sealed);
        let built = record.built();
        prop_assert_eq!(differences(&grown, &built), Vec::<i64>::new());
        let filters = [json!({}), json!({"metadata.deep.x": "a"}), json!({"tags": {"in": ["t1"]}}), json!({"importance": {"gte": 0.5}})];
        let filters = filters.iter().map(|filter| parse(filter.as_object().expect("an object")).expect("legal"));
        for filter in filters {
            for (at, text) in WORDS.iter().enumerate() {
                for fusion in [Fusion::Score, Fusion::Rrf] {
                    let near = [at, at / 2];
                    prop_assert_eq!(
                        search_filtered(&grown, text, &near, fusion, &filter),
                        search_filtered(&built, text, &near, fusion, &filter)
                    );
                }
            }
        }
    }
}

fn grown(rows: i64) -> Partition {
    let words = |row: i64| vec![row as usize % WORDS.len(), (row as usize * 7) % WORDS.len()];
    let mut grown = Partition::new(Some(DIMENSIONS));
    (1..=rows).for_each(|row| {
        put(&mut grown, &memory(row, 1, &words(row), Some(row as u8 % 3), Status::Active), &words(row));
    });
    grown
}

/// A sealed index gives what the one in memory gave, with nothing put again.
#[test]
fn sealed_part_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut grown = grown(200);
    let contents = seal(&mut grown, folder.path());
    let loaded = opened(folder.path(), &contents);
    assert_eq!((loaded.text_parts(), loaded.unsealed()), ((0, 200), (0, 200)));
    assert_eq!(differences(&loaded, &grown), Vec::<i64>::new());
    for text in WORDS {
        assert_eq!(search(&loaded, text, &[1], Fusion::Score), search(&grown, text, &[1], Fusion::Score));
    }
    let other = Partition::open(folder.path(), &contents, Some(DIMENSIONS + 1));
    assert!(other.is_err(), "vectors of another length are another index");
    assert!(Partition::open(folder.path(), &contents, None).is_err());
}

/// One byte changed anywhere, a file cut short, made longer, removed or exchanged: none is taken for what was sealed.
#[test]
fn damage_is_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let contents = seal(&mut grown(60), folder.path());
    let refused = || Partition::open(folder.path(), &contents, Some(DIMENSIONS)).is_err();
    for name in contents.keys() {
        let path = folder.path().join(name);
        let whole = std::fs::read(&path).expect("it is there");
        let flipped = |at: usize| {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            flipped
        };
        let harms = [
            flipped(0),
            flipped(whole.len() / 2),
            flipped(whole.len() - 1),
            whole[1..].to_vec(),
            [&whole[..], &[0]].concat(),
        ];
        for harm in harms {
            std::fs::write(&path, harm).expect("it can be written");
            assert!(refused(), "{name}");
        }
        std::fs::remove_file(&path).expect("it is there");
        assert!(refused(), "{name}");
        std::fs::write(&path, whole).expect("it can be written");
    }
    assert!(!refused());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// I13: files that somebody made up, with the right sums, are refused or give some index; nothing panics, and no more
    /// memory is asked for than they are long.
    #[test]
    fn made_up_files_do_no_harm(
        which in prop::sample::select(vec!["rows", "state", "text", "codes", "vectors"]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        seal(&mut grown(30), folder.path());
        let path = folder.path().join(which);
        let mut bytes = std::fs::read(&path).expect("it is there");
        edits.iter().for_each(|(at, byte)| {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        });
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, bytes).expect("it can be written");
        let contents = sum_up(folder.path()).expect("the files are there");
        let opened = Partition::open(folder.path(), &contents, Some(DIMENSIONS));
        if let Ok(mut partition) = opened {
            let filter = parse(json!({"metadata.n": {"gte": 0}}).as_object().expect("an object")).expect("legal");
            search(&partition, "coffee the 港の灯台", &[1], Fusion::Score);
            search_filtered(&partition, "coffee", &[1], Fusion::Rrf, &filter);
            partition.remove(3);
            let _ = partition.put(&memory(40, 1, &[2], Some(1), Status::Active), Some(&vector(&[2])));
            search(&partition, "coffee the getUserById 港の灯台", &[1], Fusion::Score);
            if let Ok(written) = partition.snapshot().and_then(|snapshot| snapshot.write(None)) {
                partition.take_sealed(written);
                search(&partition, "coffee the 港の灯台", &[1], Fusion::Score);
            }
        } else {
            prop_assert!(matches!(opened, Err(IndexError::Sealed(_) | IndexError::Vector(_))));
        }
    }
}

/// An index of nothing is sealed and opened like any other, with and without an embedder.
#[test]
fn nothing_can_be_sealed() {
    for dimensions in [None, Some(DIMENSIONS)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut partition = Partition::new(dimensions);
        let contents = seal(&mut partition, folder.path());
        let mut loaded = Partition::open(folder.path(), &contents, dimensions).expect("nothing was changed");
        for partition in [&mut partition, &mut loaded] {
            assert!(search_text(partition, "coffee").is_empty());
            let vector = dimensions.map(|_| vector(&[7]));
            partition.put(&memory(1, 1, &[7], None, Status::Active), vector.as_deref()).expect("in order");
            assert_eq!(search_text(partition, "coffee"), [MemoryId(1)]);
        }
    }
}

/// I12: nothing of what is gone is in any file.
#[test]
fn what_is_gone_is_not_sealed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut partition = grown(20);
    let secret = Memory {
        tags: vec!["kanpo1".into()],
        key: Some("kanpo2".into()),
        session: Some("kanpo3".into()),
        summary: "kanpo4".into(),
        metadata: Metadata::new("metadata", json!({"kanpo5": "kanpo6"}).as_object().expect("an object"))
            .expect("legal"),
        ..memory(21, 1, &[1], None, Status::Active)
    };
    let holds = |partition: &mut Partition| {
        let folder = folder.path().join(partition.len().to_string());
        std::fs::create_dir(&folder).expect("a folder");
        let files = seal(partition, &folder).into_keys();
        let holds = files.filter(|name| {
            std::fs::read(folder.join(name)).expect("it is there").windows(5).any(|bytes| bytes == b"kanpo")
        });
        holds.count()
    };
    put(&mut partition, &secret, &[1]);
    assert_ne!(holds(&mut partition), 0);
    partition.remove(21);
    assert_eq!(holds(&mut partition), 0);
}

/// The one memory that has the rare word comes before twenty with the common one.
#[test]
fn rare_word_outweighs_a_common_one() {
    let mut partition = Partition::new(None);
    (1..=20).for_each(|row| partition.put(&memory(row, 1, &[7], None, Status::Active), None).expect("in order"));
    partition.put(&memory(21, 1, &[0], None, Status::Active), None).expect("in order");
    let found = search_text(&partition, "coffee deploy");
    assert_eq!(found[0], MemoryId(21));
}

fn search_text(partition: &Partition, text: &str) -> Vec<MemoryId> {
    let everything = Filter::everything();
    let query = Query { now: Timestamp(0), ..query(Some(text), None, &everything) };
    partition.search(&query).found.iter().map(|found| found.memory_id).collect()
}

/// Words and a near context of memory `row`, by which thousands of memories lie in some dozens of groups.
fn grouped(row: i64) -> Vec<usize> {
    (0..3).map(|at| (row * 7 + at * row % 5 + row / 40) as usize % WORDS.len()).collect()
}

/// An index that was made at once, with threads for its texts and vectors, is one that was put together row by row; a vector
/// that cannot be is missing in both.
#[test]
fn built_aside_equals_put_row_by_row() {
    let mut build = Build::new(Some(DIMENSIONS));
    let mut put_together = Partition::new(Some(DIMENSIONS));
    for row in 1..=700 {
        let words = grouped(row);
        let status = if row % 50 == 0 { Status::Retired } else { Status::Active };
        let memory = memory(row, 1, &words, None, status);
        let vectors = match row % 10 {
            0 => None,
            1 => Some(vec![0.0; DIMENSIONS]),
            _ => Some(vector(&words)),
        };
        build.put(&memory, vectors.as_deref()).expect("rows come in order");
        put_together.put(&memory, vectors.as_deref()).expect("rows come in order");
    }
    assert_eq!(differences(&build.finish(), &put_together), [] as [i64; 0]);
}

/// A longer answer begins as a shorter one does, where estimates choose among the vectors too.
#[test]
fn longer_answers_begin_as_shorter_ones() {
    const WIDE: usize = 64;
    let near = |row: i64| -> Vec<f32> {
        let wave = |seed: i64, at: usize| ((seed * WIDE as i64 + at as i64) as f32 * 1.7).sin();
        (0..WIDE).map(|at| wave(row % 110, at) + 0.7 * wave(row + 1_000, at)).collect()
    };
    let mut build = Build::new(Some(WIDE));
    for row in 1..=12_000 {
        let memory = memory(row, 1, &grouped(row), None, Status::Active);
        build.put(&memory, Some(&near(row))).expect("rows come in order");
    }
    let (partition, everything) = (build.finish(), Filter::everything());
    for (word, question) in WORDS.iter().zip(15_000..) {
        let unit = UnitQuery::new(&near(question), WIDE).expect("a finite vector");
        let answer = |k: usize| {
            let query = Query { k, neighbours: true, ..query(Some(word), Some(&unit), &everything) };
            let results = partition.search(&query);
            assert_eq!(results.plan.expect("the vector leg took part").tier, Tier::Signs);
            results.found.iter().map(|found| (found.memory_id, found.score.to_bits())).collect::<Vec<_>>()
        };
        let longest = answer(100);
        for k in [1, 10, 50] {
            assert_eq!(answer(k), longest[..k]);
        }
    }
}
