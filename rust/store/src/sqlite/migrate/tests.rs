//! Stores on their way to a newer schema, killed, out of room, or left half-way by somebody before.
//!
//! There is one released step so far. The second one of these tests is slow, so that it can be killed at its work; nothing of
//! it is in a build.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;
use crate::sqlite::Record;
use crate::sqlite::connection::DATABASE;

const OLD: Steps = STEPS;
const NEW: Steps = &[
    STEPS[0],
    "CREATE TABLE later (number INTEGER PRIMARY KEY, name TEXT NOT NULL, filler TEXT NOT NULL) STRICT;
     INSERT INTO later (number, name, filler)
         WITH RECURSIVE counted (at) AS (VALUES (0) UNION ALL SELECT at + 1 FROM counted WHERE at < 60)
         SELECT context.number * 1000 + at, context.name, hex(randomblob(100)) FROM context, counted;
     UPDATE context SET name = name || ' of later';",
];
const NOW: Timestamp = Timestamp(1_900_000_000_000_000);
const CONTEXTS: i64 = 300;

fn open(store: &Path, steps: Steps) -> Result<Record, StoreError> {
    Record::open_with(store.to_str().expect("a plain path"), Options::default(), NOW, steps)
}

/// A store of the old schema, closed.
fn old_store(store: &Path) {
    let record = open(store, OLD).expect("a store");
    let written = record.write(|writer| {
        for number in 0..CONTEXTS {
            writer.context_or_new(&format!("context {number}"), memkura_model::Origin::Trusted, NOW)?;
        }
        Ok::<_, StoreError>(())
    });
    written.expect("contexts");
}

fn copied(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).expect("a folder");
    for file in fs::read_dir(from).expect("the store") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
    }
}

fn copy_of(store: &Path) -> PathBuf {
    store.join(format!("{DATABASE}{COPY}"))
}

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("a folder");
    files.map(|file| file.expect("a file").file_name().into_string().expect("a plain name")).collect()
}

/// The version of a database, how many contexts it has, and how many of them are of the newer schema.
fn told(database: &Path) -> (i64, i64, i64) {
    let connection = Connection::open(database).expect("a database");
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number");
    assert_eq!(connection.query_row("PRAGMA quick_check", [], |row| row.get::<_, String>(0)).expect("a word"), "ok");
    let newer = number("SELECT count(*) FROM context WHERE name GLOB '* of later'");
    (number("PRAGMA user_version"), number("SELECT count(*) FROM context"), newer)
}

fn migrated(store: &Path) {
    drop(open(store, NEW).expect("a migrated store"));
    assert_eq!(told(&store.join(DATABASE)), (2, CONTEXTS, CONTEXTS));
    assert!(!names(store).iter().any(|name| name.contains(COPY)), "{:?}", names(store));
}

/// Another process that migrates `store`, or the words of one that does so under other limits.
fn elsewhere(store: &Path, limits: &str) -> Child {
    let script = format!("{limits} exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().expect("this test"))
        .args(["--exact", "sqlite::migrate::tests::migrating", "--ignored", "--nocapture"])
        .env("MEMKURA_TEST_STORE", store)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("another process")
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn migrating() {
    let store = PathBuf::from(std::env::var_os("MEMKURA_TEST_STORE").expect("a store"));
    println!("begin");
    match open(&store, NEW) {
        Ok(_) => println!("done"),
        Err(error) => println!("failed: {error}"),
    }
}

/// Waits until a child has begun.
fn begun(child: &mut Child) {
    use std::io::{BufRead, BufReader};
    let mut lines = BufReader::new(child.stdout.as_mut().expect("its words")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.ends_with("begin"))));
}

fn share() -> f64 {
    let mut byte = [0];
    getrandom::fill(&mut byte).expect("a random byte");
    f64::from(byte[0]) / 255.0
}

/// Killed at random moments of a migration, at least 20 times over and until enough were killed at work, a store has all that it had, of one schema or the other;
/// a whole copy of the old one is there until the new one is; and the next one to open it completes it.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long a migration takes here decides when it is killed")]
fn killed_migration_is_completed_by_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (old, store) = (folder.path().join("old"), folder.path().join("s"));
    old_store(&old);
    copied(&old, &store);
    let started = Instant::now();
    let mut child = elsewhere(&store, "");
    begun(&mut child);
    assert!(child.wait().expect("an end").success());
    let mut whole = started.elapsed();
    migrated(&store);

    let (mut round, mut killed, mut with_copy) = (0, 0, 0);
    while round < 20 || killed < 10 || with_copy < 3 {
        round += 1;
        assert!(round < 200, "{killed} were killed at work, {with_copy} of them between the copy and the end");
        copied(&old, &store);
        // Now and then nobody completes it before somebody else is killed at it too.
        for _ in 0..=round % 3 {
            let mut child = elsewhere(&store, "");
            begun(&mut child);
            std::thread::sleep(whole.mul_f64(share()).min(Duration::from_secs(10)));
            child.kill().expect("a kill");
            let is_killed = !child.wait().expect("an end").success();
            killed += usize::from(is_killed);
            // How long it takes depends on what else the machine does.
            whole = whole.mul_f64(if is_killed { 1.05 } else { 0.9 });
        }
        let copy = copy_of(&store);
        let version = told_of_a_copy(&store, folder.path());
        if copy.exists() {
            with_copy += 1;
            assert_eq!(told(&copy), (1, CONTEXTS, 0));
            assert_eq!(fs::metadata(&copy).expect("a copy").permissions().mode() & 0o777, 0o600);
        }
        assert!([(1, CONTEXTS, 0), (2, CONTEXTS, CONTEXTS)].contains(&version), "{version:?}");
        migrated(&store);
    }
}

/// What a killed process left, looked at in a copy: looking takes back what was not committed.
fn told_of_a_copy(store: &Path, folder: &Path) -> (i64, i64, i64) {
    let looked_at = folder.join("looked at");
    copied(store, &looked_at);
    told(&looked_at.join(DATABASE))
}

/// Where there is no room for the copy, that is said, and the store is as it was.
#[test]
fn full_disk_leaves_the_store_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (old, store) = (folder.path().join("old"), folder.path().join("s"));
    old_store(&old);
    copied(&old, &store);
    // A file may have 64 blocks of 512 bytes, which is less than the record has.
    assert!(fs::metadata(store.join(DATABASE)).expect("the record").len() > 64 * 512);
    let child = elsewhere(&store, "trap '' XFSZ; ulimit -f 64;");
    let said = child.wait_with_output().expect("its words").stdout;
    assert!(String::from_utf8_lossy(&said).contains("failed: the disk is full"), "{}", String::from_utf8_lossy(&said));
    assert!(!names(&store).iter().any(|name| name.contains(COPY)), "{:?}", names(&store));
    assert_eq!(told(&store.join(DATABASE)), (1, CONTEXTS, 0));
    migrated(&store);
}

/// What others left half-way, a copy that is cut off and one of long ago, is in nobody's way; a newer store is refused as it
/// is, with its copy.
#[test]
fn leftovers_are_in_nobodys_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("s");
    old_store(&store);
    fs::write(copy_of(&store), "of long ago").expect("a leftover");
    fs::write(store.join(format!("{DATABASE}{INCOMPLETE}")), "cut o").expect("a leftover");
    migrated(&store);
    fs::write(copy_of(&store), "of a migration that was killed at its very end").expect("a leftover");
    assert!(matches!(open(&store, OLD), Err(StoreError::SchemaTooNew { found: 2, known: 1 })));
    assert!(copy_of(&store).exists());
    migrated(&store);
}

/// Compacting removes what was left since the store was opened, and says when it cannot.
#[test]
fn compacting_removes_leftovers() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("s");
    let record = open(&store, OLD).expect("a store");
    let restored = store.join(format!("{DATABASE}.0123456789abcdef.incomplete"));
    for path in [&copy_of(&store), &beside(&store.join(DATABASE), INCOMPLETE), &restored] {
        fs::write(path, "left").expect("a leftover");
    }
    record.compact().expect("compacted");
    assert!(!names(&store).iter().any(|name| name.starts_with(&format!("{DATABASE}."))), "{:?}", names(&store));
    fs::create_dir(copy_of(&store)).expect("what is no file");
    let said = record.compact().expect_err("it is there still").to_string();
    assert!(said.contains("record.sqlite3.old"), "{said}");
    record.write(|writer| writer.context_or_new("after", memkura_model::Origin::Trusted, NOW)).expect("a write");
}

/// The copy is a backup: a store is made of it.
#[test]
fn copy_can_be_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, again) = (folder.path().join("s"), folder.path().join("again"));
    old_store(&store);
    keep_copy(&store.join(DATABASE), &Options::default()).expect("a copy");
    crate::restore(&copy_of(&store), &again).expect("a store");
    drop(open(&again, OLD).expect("a store"));
    assert_eq!(told(&again.join(DATABASE)), (1, CONTEXTS, 0));
}

/// A new store is no old one: there is nothing to copy. A step that fails leaves the old store, and its copy.
#[test]
fn copy_is_of_an_old_store_alone() {
    const BROKEN: Steps = &[STEPS[0], "CREATE TABLE later (x); CREATE TABLE later (x);"];
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("s");
    drop(open(&folder.path().join("new"), NEW).expect("a store"));
    assert!(!copy_of(&folder.path().join("new")).exists());
    old_store(&store);
    assert!(open(&store, BROKEN).is_err());
    assert_eq!(told(&copy_of(&store)), (1, CONTEXTS, 0));
    migrated(&store);
}
