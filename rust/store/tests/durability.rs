//! What was acknowledged stays, or the handle says that it cannot promise that any more.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};

use memkura_model::{Context, Origin, Timestamp};
use memkura_store::{Options, Record, StoreError};

const NOW: Timestamp = Timestamp(1_900_000_000_000_000);

fn open(path: &Path) -> Record {
    Record::open(path.to_str().expect("a plain path"), Options::default()).expect("a store")
}

fn write(record: &Record, name: &str) -> Result<Context, StoreError> {
    record.write(|writer| writer.context_or_new(name, Origin::Trusted, NOW))
}

fn names(record: &Record) -> Vec<String> {
    let contexts = record.read(|reader| {
        let found = reader.contexts()?;
        Ok::<_, StoreError>(found)
    });
    let contexts = contexts.expect("contexts");
    let mut names: Vec<String> = contexts.into_iter().map(|context: Context| context.name).collect();
    names.sort();
    names
}

fn log(path: &Path) -> PathBuf {
    path.join("record.sqlite3-wal")
}

/// The lock that every process takes before it removes the log is denied while a store is open, whatever else of its files
/// the process opens and closes.
#[test]
#[cfg(target_os = "linux")]
fn reading_the_files_gives_no_lock_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let record = open(&path);
    write(&record, "before").expect("a write");
    for file in fs::read_dir(&path).expect("the folder") {
        drop(fs::read(file.expect("a file").path()));
    }
    // As the last one, it would remove the log.
    elsewhere("opened_and_closed", &path);
    write(&record, "after").expect("a write");
    assert!(log(&path).exists());
    elsewhere("both_are_there", &path);
}

/// Runs one of the ignored tests below in a process of its own: SQLite knows the connections of its own process.
fn elsewhere(work: &str, path: &Path) {
    let status = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", work, "--ignored"])
        .env("MEMKURA_TEST_STORE", path)
        .status()
        .expect("another process");
    assert!(status.success());
}

fn given() -> Record {
    open(Path::new(&std::env::var_os("MEMKURA_TEST_STORE").expect("a store")))
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn opened_and_closed() {
    assert_eq!(names(&given()), ["before"]);
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn both_are_there() {
    assert_eq!(names(&given()), ["after", "before"]);
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn fifty_writes() {
    let record = given();
    for number in 0..50 {
        write(&record, &format!("other {number}")).expect("a write");
    }
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn fifty_one_are_there() {
    assert_eq!(names(&given()).len(), 51);
}

/// When the log is gone, the handle writes no more, still reads, and neither upkeep nor closing it undoes what others have
/// written since.
#[test]
fn vanished_log_is_final_for_the_handle() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let record = open(&path);
    write(&record, "kept").expect("a write");
    record.tidy().expect("upkeep");
    fs::remove_file(log(&path)).expect("the log");
    fs::remove_file(path.join("record.sqlite3-shm")).expect("its index");
    elsewhere("fifty_writes", &path);
    assert!(matches!(record.tidy(), Err(StoreError::Failed(_))));
    assert!(matches!(write(&record, "lost"), Err(StoreError::Failed(_))));
    assert!(matches!(record.compact(), Err(StoreError::Failed(_))));
    assert_eq!(names(&record)[0], "kept");
    drop(record);
    elsewhere("fifty_one_are_there", &path);
}

/// The same when the first write comes after the log has vanished.
#[test]
fn vanished_log_is_noticed_by_the_first_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    drop(open(&path));
    let record = open(&path);
    fs::remove_file(log(&path)).expect("the log");
    assert!(matches!(write(&record, "lost"), Err(StoreError::Failed(_))));
    drop(record);
    let record = open(&path);
    write(&record, "again").expect("a write");
    assert!(names(&record).contains(&"again".to_owned()));
}

/// Threads that write at once share syncs, and each write is there.
#[test]
fn threads_write_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let record = open(&path);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let record = &record;
            scope.spawn(move || {
                (0..20).for_each(|number| drop(write(record, &format!("{thread} {number}")).expect("a write")));
            });
        }
    });
    drop(record);
    assert_eq!(names(&open(&path)).len(), 160);
}
