//! What every record keeps, asked through its public interface.

use std::sync::Arc;

use memkura_model::{
    Action, Context, DeliveryMode, Door, Memory, MemoryId, Metadata, Origin, SourceType, Status, Tier, Timestamp,
};
use memkura_store::{EmbedderState, Options, Record, StoreError, sqlite_version};

const NOW: Timestamp = Timestamp(1_900_000_000_000_000);

fn memory(context: &Context, id: u128, summary: &str) -> Memory {
    Memory {
        row: 0,
        memory_id: MemoryId(id),
        context: context.number,
        context_id: Arc::from(context.name.as_str()),
        kind: "note".into(),
        scope: None,
        key: None,
        summary: summary.into(),
        content: Some("いろは".into()),
        tags: vec!["a".into(), "b".into()],
        metadata: Metadata::default(),
        delivery_mode: DeliveryMode::OnRecall,
        trigger: None,
        importance: 0.25,
        confidence: 0.5,
        proof: None,
        status: Status::Active,
        source_type: SourceType::Manual,
        trust_tier: Tier::Trusted,
        derived_from: vec![MemoryId(7)],
        superseded_by: None,
        session: Some("s".into()),
        event_time: Some(Timestamp(-1)),
        expires_at: None,
        created_at: NOW,
        updated_at: NOW,
        last_seen: None,
        access_count: 0,
        decay_rate: 0.01,
        version: 1,
        text_version: 1,
        embedded: false,
    }
}

fn record() -> (Record, Context) {
    let record = Record::open(":memory:", Options::default()).expect("memory can be opened");
    let context = record.write(|writer| writer.context_or_new("ops", Origin::Trusted, NOW)).expect("a name");
    (record, context)
}

fn insert(record: &Record, memory: &Memory) -> Memory {
    let row = record.write(|writer| writer.insert(memory, Door::Python)).expect("a legal row");
    Memory { row, ..memory.clone() }
}

/// The build links a SQLite in which processes that checkpoint together lose nothing.
#[test]
fn linked_sqlite_is_new_enough() {
    let version: Vec<u32> = sqlite_version().split('.').map(|part| part.parse().expect("a number")).collect();
    assert!(version >= vec![3, 51, 3], "{version:?}");
}

/// Every field comes back as it was written.
#[test]
fn memory_comes_back_as_it_was() {
    let (record, context) = record();
    let written = insert(&record, &memory(&context, 1 << 80, "s"));
    let read = record.read(|reader| reader.by_id(&context, written.memory_id)).expect("readable");
    assert_eq!(read, Some(written));
}

/// A write that fails half-way leaves nothing behind, not even its change.
#[test]
fn failed_write_leaves_nothing() {
    let (record, context) = record();
    let failed = record.write(|writer| {
        writer.insert(&memory(&context, 1 << 80, "s"), Door::Python)?;
        Err::<(), StoreError>(StoreError::Busy)
    });
    assert!(failed.is_err());
    assert_eq!(
        record
            .read(|reader| Ok::<_, StoreError>((reader.last_change()?, reader.totals(None, NOW)?.memories)))
            .expect("readable"),
        (0, 0)
    );
}

/// A replaced state stays as it was, and no statement can change or delete it (I9).
#[test]
fn revisions_only_grow() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.memkura");
    let record = Record::open(path.to_str().expect("a plain path"), Options::default()).expect("a new store");
    let context = record.write(|writer| writer.context_or_new("ops", Origin::Trusted, NOW)).expect("a name");
    let first = insert(&record, &memory(&context, 1 << 80, "first"));
    let second = Memory {
        summary: "second".into(),
        version: 2,
        text_version: 2,
        updated_at: Timestamp(NOW.0 + 5),
        ..first.clone()
    };
    record.write(|writer| writer.replace(&second, Action::Update, Door::Python)).expect("a known row");
    let history = record.read(|reader| reader.history(&context, first.row)).expect("readable");
    assert_eq!(history.iter().map(|state| state.memory.summary.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    let then = record.read(|reader| reader.as_of(&context, Timestamp(NOW.0 + 4))).expect("readable");
    assert_eq!(then, [first]);

    let plain = rusqlite::Connection::open(path.join("record.sqlite3")).expect("a database");
    assert!(plain.execute("UPDATE revision SET summary = 'x'", []).is_err());
    assert!(plain.execute("DELETE FROM revision", []).is_err());
}

/// A source type that we do not know cannot be written by anyone.
#[test]
fn source_type_is_constrained() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.memkura");
    let record = Record::open(path.to_str().expect("a plain path"), Options::default()).expect("a new store");
    let context = record.write(|writer| writer.context_or_new("ops", Origin::Trusted, NOW)).expect("a name");
    insert(&record, &memory(&context, 1 << 80, "s"));
    let plain = rusqlite::Connection::open(path.join("record.sqlite3")).expect("a database");
    assert!(plain.execute("UPDATE memory SET source_type = 'divine'", []).is_err());
    assert!(plain.execute("UPDATE memory SET source_type = NULL", []).is_err());
}

/// Two memories of one context cannot have one key, unless one of them is out of use.
#[test]
fn key_is_unique_among_memories_in_use() {
    let (record, context) = record();
    let keyed = |id: u128, key: &str| Memory {
        key: Some(key.into()),
        scope: Some("workspace".into()),
        ..memory(&context, id, "s")
    };
    let first = insert(&record, &keyed(1 << 80, "Deploy"));
    let clash = record.write(|writer| writer.insert(&keyed(2 << 80, "ｄｅｐｌｏｙ"), Door::Python));
    assert!(clash.is_err());
    let retired = Memory { status: Status::Retired, version: 2, ..first };
    record.write(|writer| writer.replace(&retired, Action::Forget, Door::Python)).expect("a known row");
    insert(&record, &keyed(3 << 80, "deploy"));
}

/// Vectors belong to one text version: a late one for an older text is not taken (I11).
#[test]
fn late_vector_is_not_taken() {
    let (record, context) = record();
    let first = insert(&record, &memory(&context, 1 << 80, "first"));
    let second = Memory { summary: "second".into(), version: 2, text_version: 2, ..first.clone() };
    record.write(|writer| writer.replace(&second, Action::Update, Door::Python)).expect("a known row");
    let taken = record.write(|writer| {
        let embedder = writer.add_embedder("e", 2, EmbedderState::Bound, NOW)?;
        let late = writer.put_vectors(&embedder, first.row, 1, Ok(&[1.0, 0.0]))?;
        let right = writer.put_vectors(&embedder, first.row, 2, Ok(&[0.0, 1.0]))?;
        Ok::<_, StoreError>((late, right))
    });
    assert_eq!(taken.expect("writable"), (false, true));
}

/// A folder that holds something else is not taken over, and neither is a file or another program's database.
#[test]
fn foreign_places_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    std::fs::write(at("file"), "x").expect("writable");
    std::fs::create_dir_all(at("photos")).expect("writable");
    std::fs::write(at("photos/a.jpg"), "x").expect("writable");
    std::fs::create_dir_all(at("other")).expect("writable");
    let other = rusqlite::Connection::open(at("other/record.sqlite3")).expect("a database");
    other.execute_batch("CREATE TABLE t (x)").expect("writable");
    drop(other);
    let of_the_other = || std::fs::read(at("other/record.sqlite3")).expect("the database");
    let before = of_the_other();
    std::fs::create_dir_all(at("junk")).expect("writable");
    std::fs::write(at("junk/record.sqlite3"), "not a database, but long enough to be looked at".repeat(50))
        .expect("writable");
    for name in ["file", "photos", "other", "junk"] {
        let refused = Record::open(&at(name), Options::default());
        assert!(matches!(refused, Err(StoreError::NotAStore(_))), "{name}: {refused:?}");
    }
    assert_eq!(of_the_other(), before, "it was touched");
    let missing = Record::open(&at("none"), Options { create: false, ..Options::default() });
    assert!(matches!(missing, Err(StoreError::Missing(_))));
}

/// A store of a newer schema is refused, naming both versions.
#[test]
fn newer_schema_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.memkura");
    drop(Record::open(path.to_str().expect("a plain path"), Options::default()).expect("a new store"));
    let plain = rusqlite::Connection::open(path.join("record.sqlite3")).expect("a database");
    plain.pragma_update(None, "user_version", 99).expect("writable");
    let refused = Record::open(path.to_str().expect("a plain path"), Options::default());
    assert!(matches!(refused, Err(StoreError::SchemaTooNew { found: 99, known: 1 })), "{refused:?}");
}
