//! What was acknowledged stays, or the handle says that it cannot promise that any more.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Duration;

use memkura_model::{Context, Origin, Timestamp};
use memkura_store::{Options, Record, StoreError, Writer};

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

/// Threads that write at once share commits, and each write is there.
#[test]
fn threads_share_commits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let record = open(&path);
    let before = commits(&path);
    together(&record, |writer, number| writer.context_or_new(&number.to_string(), Origin::Trusted, NOW).map(drop));
    let shared = commits(&path) - before;
    assert!((1..=THREADS / 3).contains(&shared), "{shared} commits for {THREADS} writes");
    drop(record);
    assert_eq!(names(&open(&path)).len(), THREADS);
}

/// A write that fails or panics takes back what it wrote itself, and nothing else.
#[test]
fn failing_write_takes_nobody_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let record = open(&path);
    let kept = together(&record, |writer, number| {
        writer.context_or_new(&number.to_string(), Origin::Trusted, NOW)?;
        match number % 3 {
            0 => Ok(()),
            1 => Err(StoreError::NotAStore("refused".to_owned())),
            _ => panic!("a panic in the middle of a write"),
        }
    });
    let third: Vec<usize> = (0..THREADS).filter(|number| number % 3 == 0).collect();
    assert_eq!(kept, third);
    drop(record);
    let mut expected: Vec<String> = third.iter().map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(names(&open(&path)), expected);
}

const THREADS: usize = 24;

/// Writes from as many threads, which all wait behind the first. Returns which of them succeeded.
fn together(record: &Record, work: impl Fn(&Writer<'_>, usize) -> Result<(), StoreError> + Sync) -> Vec<usize> {
    let (arrived, work) = (&Barrier::new(THREADS), &work);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                scope.spawn(move || {
                    if number > 0 {
                        arrived.wait();
                    }
                    record.write(|writer| {
                        if number == 0 {
                            arrived.wait();
                            std::thread::sleep(Duration::from_millis(50));
                        }
                        work(writer, number)
                    })
                })
            })
            .collect();
        let outcomes = threads.into_iter().map(|thread| matches!(thread.join(), Ok(Ok(()))));
        outcomes.enumerate().filter_map(|(number, is_kept)| is_kept.then_some(number)).collect()
    })
}

/// Transactions in the log: frames that say how large the database is after them
/// (<https://sqlite.org/fileformat2.html#the_write_ahead_log>).
fn commits(path: &Path) -> usize {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    let log = fs::read(log(path)).expect("the log");
    log[HEADER..].chunks_exact(FRAME).filter(|frame| frame[4..8] != [0; 4]).count()
}
