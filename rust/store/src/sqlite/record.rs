//! The open record: one writer, a few readers, and a look-out for other processes' commits.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use memkura_model::Timestamp;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::backup::problems;
use super::connection::{
    Options, Place, connect, is_failed_sync, is_out_of_room, prepare, see_one_name, see_plain_files,
};
use super::guard::Guard;
use super::log::{Identity, Log, beside};
use super::migrate::Steps;
use super::round::{End, Part, Round, Turn, Writing};
use super::{Reader, Reserved, Writer, filesystem, leavings, migrate, reserve};
use crate::StoreError;
use crate::patience::patiently;

/// An open record. It can be shared between threads; each call takes the connection that it needs.
///
/// Connections are opened on first use and can all be closed with [`Record::suspend`], since a SQLite connection must
/// not be carried across a fork.
#[derive(Debug)]
pub struct Record {
    pub(super) place: Place,
    options: Options,
    /// The schema's, as this build has them.
    steps: Steps,
    /// Held while any connection to a file is open.
    attached: Mutex<Option<Attached>>,
    /// The database that was attached first: after a fork it must be the same.
    database: OnceLock<Option<Identity>>,
    writing: Mutex<Writing>,
    /// Threads that wait for their turn to write.
    waiting: AtomicUsize,
    readers: Mutex<Vec<Connection>>,
    /// A connection that never writes: its `data_version` moves when any other commits.
    tail: Mutex<Option<Connection>>,
    /// Pages in the log after the last commit.
    log_pages: Arc<AtomicI32>,
    /// With so many of them the log is to begin anew, even if others have to wait for it.
    log_pages_max: AtomicI32,
    /// Why nothing can be written any more through this handle.
    failure: OnceLock<String>,
    /// Keeps an in-memory database alive while no other connection to it is open.
    _anchor: Option<Mutex<Connection>>,
}

/// What keeps others from taking the store's files for nobody's.
#[derive(Debug)]
struct Attached {
    guard: Guard,
    /// The log that the connections have open.
    log: Arc<Log>,
}

/// With so many pages in the log, what it holds is moved after each commit. SQLite's own default: about 4 MiB.
const LOG_PAGES_MOVED: i32 = 1_000;
/// With so many the log is made to begin anew: 32 MiB, half of what it may have.
const LOG_PAGES_MAX: i32 = 8_000;
/// How long writers wait for readers then: longer than most reads.
const LOG_PATIENCE: Duration = Duration::from_secs(2);
/// With so many, 48 MiB, they wait for as long as others wait for them.
const LOG_PAGES_PRESSING: i32 = 12_000;

/// Most connections kept for reading: more threads than this wait for a processor anyway.
const READERS_KEPT: usize = 8;
/// What pages each of them may keep, twice SQLite's own default: 32 MiB together, what some thousand hits lie on.
const PAGES_KEPT_KIB: i32 = 4 * 1024;

/// A read transaction, until it is dropped. Its statements are kept prepared: most reads take no longer than to prepare one.
struct Reading<'a>(&'a Connection);

impl<'a> Reading<'a> {
    fn begin(connection: &'a Connection) -> Result<Self, StoreError> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self(connection))
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // There is nothing to undo, so nothing is lost if SQLite has ended it by itself.
        let _ = self.0.prepare_cached("ROLLBACK").and_then(|mut end| end.execute([]));
    }
}

impl Record {
    /// Opens the store folder at `path`, or a private store in memory for `":memory:"`.
    ///
    /// # Errors
    /// When there is no store and none may be created, the path holds something else, or a newer release wrote it.
    pub fn open(path: &str, options: Options) -> Result<Self, StoreError> {
        Self::open_at(path, options, Timestamp(0))
    }

    /// [`Record::open`], noting `now` as the time of making when the store is new.
    ///
    /// # Errors
    /// As [`Record::open`].
    pub fn open_at(path: &str, options: Options, now: Timestamp) -> Result<Self, StoreError> {
        Self::open_with(path, options, now, migrate::STEPS)
    }

    /// [`Record::open_at`], with a schema of these steps.
    pub(super) fn open_with(path: &str, options: Options, now: Timestamp, steps: Steps) -> Result<Self, StoreError> {
        if path.is_empty() {
            return Err(StoreError::NotAStore("the path is empty".to_owned()));
        }
        let place = if path == ":memory:" {
            Place::Memory(format!("memkura-{}", migrate::random_name::<8>()?))
        } else {
            filesystem::see_permitted(Path::new(path))?;
            let file = prepare(Path::new(path), options.create)?;
            if let Some(name) = filesystem::network(&file).filter(|_| !options.allow_network) {
                return Err(StoreError::OnNetwork(name));
            }
            see_plain_files(&file)?;
            if filesystem::is_read_only(&file) {
                Place::Fixed(file)
            } else {
                see_one_name(&file)?;
                Place::File(file)
            }
        };
        let anchor = match place {
            Place::Memory(_) => Some(Mutex::new(connect(&place, &options)?)),
            Place::File(_) | Place::Fixed(_) => None,
        };
        let record = Self {
            place,
            options,
            steps,
            attached: Mutex::default(),
            database: OnceLock::new(),
            writing: Mutex::default(),
            waiting: AtomicUsize::default(),
            readers: Mutex::default(),
            tail: Mutex::default(),
            log_pages: Arc::default(),
            log_pages_max: AtomicI32::new(LOG_PAGES_MAX),
            failure: OnceLock::new(),
            _anchor: anchor,
        };
        record.reading(|connection| {
            let outcome = match record.place {
                Place::Fixed(_) => migrate::see_current(connection, steps),
                Place::File(_) | Place::Memory(_) => {
                    migrate::migrate(connection, &record.place, &record.options, steps, now)
                }
            };
            record.explained(connection, outcome)
        })?;
        if let Place::File(file) = &record.place {
            reserve::keep(file);
            // What cannot be removed is in nobody's way; compacting says so.
            let _ = leavings::sweep(Path::new(path));
        }
        Ok(record)
    }

    /// Runs `work` in a write transaction: all of it happens, durably, or none. Threads that write at the same time share
    /// one transaction and its sync.
    ///
    /// # Errors
    /// Whatever `work` returns, or the failure of the commit; nothing was written then. [`StoreError::Failed`] when what
    /// was written could not be made durable: whether it is there is known after opening again.
    pub fn write<T, E: From<StoreError>>(&self, work: impl FnOnce(&Writer<'_>) -> Result<T, E>) -> Result<T, E> {
        self.see_writable()?;
        let turn = Turn::new(self.options.busy_timeout);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut writing = locked(&self.writing);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        let answer = catch_unwind(AssertUnwindSafe(|| self.take_part(&mut writing, &turn, work)));
        let is_followed = self.waiting.load(Ordering::SeqCst) > 0;
        if !(is_followed && writing.round.as_ref().is_some_and(Round::takes_more)) {
            self.end_round(&mut writing);
        }
        drop(writing);
        let (answer, end) = answer.unwrap_or_else(|panic| resume_unwind(panic))?;
        end.wait()?;
        Ok(answer)
    }

    /// Does `work` in the open round, or in a new one. What it wrote is taken back when it fails; others' writes stay.
    fn take_part<T, E: From<StoreError>>(
        &self,
        writing: &mut Writing,
        turn: &Turn,
        work: impl FnOnce(&Writer<'_>) -> Result<T, E>,
    ) -> Result<(T, Arc<End>), E> {
        self.see_unfailed()?;
        let Writing { connection, round } = writing;
        let connection = self.writer(connection)?;
        let mut part = self.explained(connection, Part::begin(connection, round, turn))?;
        let outcome = work(&Writer::new(connection)).and_then(|answer| Ok((answer, part.keep()?)));
        // Asked before the part is dropped: rolling back succeeds, and nothing is known of the failure then.
        self.explained(connection, outcome)
    }

    /// Commits for all who took part in the open round, if there is one, and tells them.
    fn end_round(&self, writing: &mut Writing) {
        let Some((round, connection)) = writing.round.take().zip(writing.connection.as_ref()) else { return };
        let outcome = self.see_unfailed().and_then(|()| round.see_whole()).and_then(|()| self.committed(connection));
        if outcome.is_err() && !connection.is_autocommit() {
            // What cannot be rolled back now is rolled back when the connection is closed.
            let _ = connection.execute_batch("ROLLBACK");
        }
        round.end(outcome);
    }

    fn committed(&self, connection: &Connection) -> Result<(), StoreError> {
        let committed = connection.execute_batch("COMMIT").map_err(StoreError::from);
        self.explained(connection, committed)?;
        self.see_in_place()?;
        match self.shorten_log(connection) {
            Err(failed @ StoreError::Failed(_)) => Err(failed),
            // What fails otherwise is still in the log, and is tried again after the next commit.
            _ => Ok(()),
        }
    }

    /// Moves what a long log holds into the database. Readers whose times overlap, one always at work, would let it grow for
    /// ever: when it has become too long, nobody writes until those who read it have come to an end, and it begins anew.
    fn shorten_log(&self, connection: &Connection) -> Result<(), StoreError> {
        let pages = self.log_pages.load(Ordering::Relaxed);
        let most = self.log_pages_max.load(Ordering::Relaxed);
        if pages < LOG_PAGES_MOVED {
            self.log_pages_max.store(LOG_PAGES_MAX, Ordering::Relaxed);
            return Ok(());
        }
        if pages < most {
            return self.checkpoint(connection, "PASSIVE").map(drop);
        }
        // Half of it: who waits for us meanwhile has the rest for the write itself.
        let patience = self.options.busy_timeout / 2;
        connection.busy_timeout(if pages < LOG_PAGES_PRESSING { LOG_PATIENCE.min(patience) } else { patience })?;
        let is_begun = self.checkpoint(connection, "RESTART");
        connection.busy_timeout(self.options.busy_timeout)?;
        // One reader that takes longer must not make every write wait.
        let next = if matches!(is_begun, Ok(true)) { LOG_PAGES_MAX } else { pages + LOG_PAGES_MOVED };
        self.log_pages_max.store(next, Ordering::Relaxed);
        is_begun.map(drop)
    }

    /// Lets `work` have the writing connection outside of any transaction.
    fn writing<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.see_writable()?;
        let mut writing = locked(&self.writing);
        self.end_round(&mut writing);
        self.see_unfailed()?;
        let connection = self.writer(&mut writing.connection)?;
        self.explained(connection, work(connection))
    }

    /// The writing connection, opened if need be.
    fn writer<'a>(&self, slot: &'a mut Option<Connection>) -> Result<&'a Connection, StoreError> {
        if slot.is_none() {
            // The log may hold what its writer could not sync before it died, read now from the system's memory alone. Once
            // all of it is in the database, the log begins anew, and nothing that follows rests on it.
            self.checkpoint(self.opened(slot)?, "PASSIVE").or_else(|error| match error {
                StoreError::Failed(_) => Err(error),
                _ => Ok(false),
            })?;
        }
        Ok(self.opened(slot)?)
    }

    /// # Errors
    /// When nothing can be written any more through this handle.
    fn see_unfailed(&self) -> Result<(), StoreError> {
        self.failure.get().map_or(Ok(()), |failure| Err(StoreError::Failed(failure.clone())))
    }

    /// The outcome of work on a connection; a failure that SQLite knows only in general by its right name.
    fn explained<T, E: From<StoreError>>(&self, connection: &Connection, outcome: Result<T, E>) -> Result<T, E> {
        match outcome {
            // First: a sync may fail for want of room, too, and is no more to be trusted for that.
            Err(_) if is_failed_sync(connection) => Err(self.failed("the system could not write to the disk").into()),
            Err(_) if is_out_of_room(connection) => Err(StoreError::Full.into()),
            outcome => outcome,
        }
    }

    /// Returns when the log, as long as it is now, is durable.
    fn sync_log(&self) -> Result<(), StoreError> {
        let Some(log) = self.log()? else { return Ok(()) };
        log.sync().map_err(|error| self.failed(&format!("the write-ahead log could not be synced: {error}")))
    }

    /// Moves what the log holds into the database. Whether all of it was moved, and with `TRUNCATE` the log emptied.
    fn checkpoint(&self, connection: &Connection, mode: &str) -> Result<bool, StoreError> {
        // A log that was replaced holds what others have overtaken: moving it would undo what they wrote.
        self.see_in_place()?;
        let checkpoint = format!("PRAGMA wal_checkpoint({mode})");
        let is_blocked = connection.query_row(&checkpoint, [], |row| row.get::<_, bool>(0)).map_err(StoreError::from);
        Ok(!self.explained(connection, is_blocked)?)
    }

    /// Refuses to acknowledge what was written to a log that nobody will find.
    fn see_in_place(&self) -> Result<(), StoreError> {
        match self.log()? {
            Some(log) if !log.is_in_place() => Err(self.failed("the write-ahead log was removed while it was in use")),
            _ => Ok(()),
        }
    }

    /// Notes that nothing that is written through this handle can be believed to be kept any more.
    fn failed(&self, why: &str) -> StoreError {
        // Of several threads' failures the first is told.
        StoreError::Failed(self.failure.get_or_init(|| why.to_owned()).clone())
    }

    /// Runs `work` in one read transaction: everything that it reads is of one moment.
    ///
    /// # Errors
    /// Whatever `work` returns, or a failure to begin.
    pub fn read<T, E: From<StoreError>>(&self, work: impl FnOnce(&Reader<'_>) -> Result<T, E>) -> Result<T, E> {
        self.reading(|connection| {
            let reading = Reading::begin(connection)?;
            work(&Reader::new(reading.0))
        })
    }

    /// Lets `work` have a connection for reading.
    pub(super) fn reading<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        // The first call leaves the connection that it was attached with.
        self.log()?;
        let kept = locked(&self.readers).pop();
        let mut connection = kept.map_or_else(|| self.connect_to_read(), Ok)?;
        let answer = work(&mut connection);
        let mut readers = locked(&self.readers);
        if readers.len() < READERS_KEPT {
            readers.push(connection);
        }
        answer
    }

    /// What is wrong with the record, as far as SQLite can tell: nothing in a sound one. Reads all of it.
    ///
    /// # Errors
    /// When the record cannot be read at all, or its schema is not ours.
    pub fn verify(&self) -> Result<Vec<String>, StoreError> {
        self.reading(|connection| {
            migrate::checked_version(connection, self.steps)?;
            problems(connection)
        })
    }

    /// Whether the store lies on a file system that cannot be written to.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        matches!(self.place, Place::Fixed(_))
    }

    /// # Errors
    /// When the store lies on a file system that cannot be written to.
    pub fn see_writable(&self) -> Result<(), StoreError> {
        if self.is_read_only() { Err(StoreError::ReadOnly) } else { Ok(()) }
    }

    /// A number that differs whenever anyone, this process included, has committed in between. About 2 µs.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn version(&self) -> Result<i64, StoreError> {
        let mut tail = locked(&self.tail);
        let connection = self.opened(&mut tail)?;
        Ok(connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
    }

    /// Gives the space of removed rows back to the file system, empties the log, and removes copies of the record that were
    /// left beside it.
    ///
    /// # Errors
    /// When another process keeps the record busy, or a copy cannot be removed.
    pub fn compact(&self) -> Result<(), StoreError> {
        self.writing(|connection| self.see_room_to_rewrite(connection))?;
        let is_emptied = match self.rewritten() {
            Err(StoreError::Full) => {
                // What a purge has freed lies in the record until it is rewritten.
                self.spend_reserve(Reserved::Purging);
                let rewritten = self.rewritten();
                self.tidy()?;
                rewritten?
            }
            rewritten => rewritten?,
        };
        // SQLite cuts the log off without a sync: until then loss of power would bring back what it held.
        self.sync_log()?;
        self.remove_copies()?;
        if is_emptied { Ok(()) } else { Err(StoreError::Busy) }
    }

    /// Writes the record anew and moves it out of the log. Whether the log is empty now.
    fn rewritten(&self) -> Result<bool, StoreError> {
        self.writing(|connection| {
            connection.execute_batch("VACUUM")?;
            self.checkpoint(connection, "TRUNCATE")
        })
    }

    /// Refuses to rewrite a record for whose pages there is no room in the log. An attempt would leave the log so long that
    /// what it holds could not be moved into the database either, and purging, which could make room, would have none.
    fn see_room_to_rewrite(&self, connection: &Connection) -> Result<(), StoreError> {
        let Place::File(path) = &self.place else { return Ok(()) };
        let Some(room) = filesystem::room(path) else { return Ok(()) };
        let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        let pages = number("page_count")? - number("freelist_count")?;
        let needed = pages.saturating_mul(number("page_size")?).unsigned_abs();
        if needed > room.saturating_add(reserve::kept(path)) { Err(StoreError::Full) } else { Ok(()) }
    }

    /// Removes what a migration or a restore has left, which may hold what was purged since.
    fn remove_copies(&self) -> Result<(), StoreError> {
        let Place::File(path) = &self.place else { return Ok(()) };
        self.writing(|connection| {
            // Whoever is migrating now, or copying for it, has the lock.
            connection.execute_batch("BEGIN IMMEDIATE")?;
            let removed = migrate::remove_copies(&self.place);
            connection.execute_batch("ROLLBACK")?;
            removed
        })?;
        path.parent().map_or(Ok(()), leavings::sweep)
    }

    /// Moves the log into the database and empties it, unless somebody is at work.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn tidy(&self) -> Result<(), StoreError> {
        self.empty_log()?;
        if let Place::File(path) = &self.place {
            reserve::keep(path);
        }
        Ok(())
    }

    /// Moves what the log holds into the database, as far as there is room, and lets it begin anew.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn empty_log(&self) -> Result<(), StoreError> {
        self.writing(|connection| {
            connection.busy_timeout(Duration::ZERO)?;
            let tidied = self.checkpoint(connection, "TRUNCATE");
            connection.busy_timeout(self.options.busy_timeout)?;
            match tidied {
                Err(StoreError::Busy) => Ok(()),
                other => other.map(|_| ()),
            }
        })
    }

    /// Gives back the room that is kept for forgetting. [`Record::tidy`] takes it again.
    pub fn spend_reserve(&self, reserved: Reserved) {
        if let Place::File(path) = &self.place {
            reserve::spend(path, reserved);
        }
    }

    /// Closes every connection; the next call opens what it needs. Nobody else may be at work.
    pub fn suspend(&self) {
        if matches!(self.place, Place::Memory(_)) {
            return;
        }
        let attached = locked(&self.attached).take();
        let is_in_place = attached.as_ref().is_none_or(|held| held.log.is_in_place());
        if let Some(held) = attached.as_ref().filter(|_| is_in_place) {
            held.guard.unlock();
        }
        let connections = locked(&self.tail).take().into_iter().chain(std::mem::take(&mut *locked(&self.readers)));
        for connection in connections.chain(locked(&self.writing).connection.take()) {
            if !is_in_place {
                // The last to close moves the log into the database. This log may be one that others have overtaken; what
                // is in it stays there for whoever opens the store next. A connection that refuses is no worse than one
                // that was never told.
                let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            }
        }
        // Last: closing the guard's file drops the locks of every connection to it.
        drop(attached);
    }

    fn opened<'a>(&self, slot: &'a mut Option<Connection>) -> Result<&'a mut Connection, StoreError> {
        match slot {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(self.connect()?)),
        }
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        self.log()?;
        let mut connection = connect(&self.place, &self.options)?;
        self.see_same_database()?;
        let pages = Arc::clone(&self.log_pages);
        connection.wal_hook(Some(move |_: &mut _, count| {
            pages.store(count, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(connection)
    }

    fn connect_to_read(&self) -> Result<Connection, StoreError> {
        let connection = self.connect()?;
        connection.pragma_update(None, "cache_size", -PAGES_KEPT_KIB)?;
        Ok(connection)
    }

    /// Refuses a new connection when its path leads to another database than that of the others.
    fn see_same_database(&self) -> Result<(), StoreError> {
        let Place::File(path) = &self.place else { return Ok(()) };
        if self.database.get().is_none_or(|database| *database == Identity::of(path)) {
            return Ok(());
        }
        Err(self.failed("another database was put in the place of the one in use"))
    }

    /// The log of the open connections, with the guard held; none in memory.
    fn log(&self) -> Result<Option<Arc<Log>>, StoreError> {
        let Place::File(path) = &self.place else { return Ok(None) };
        let mut attached = locked(&self.attached);
        if attached.is_none() {
            *attached = Some(self.attach(path)?);
        }
        Ok(attached.as_ref().map(|attached| Arc::clone(&attached.log)))
    }

    fn attach(&self, path: &Path) -> Result<Attached, StoreError> {
        self.see_same_database()?;
        see_plain_files(path)?;
        let guard = Guard::open(path)?;
        let header = guard.header()?;
        if let Some(header) = header {
            migrate::refuse_foreign(header, self.steps)?;
        }
        // A new database has no write-ahead log yet; one whose making was cut short has a journal to be rolled back, for
        // which SQLite needs the lock that the guard would deny.
        if !header.is_some_and(|header| header.is_write_ahead) || beside(path, "-journal").exists() {
            let mut connection = connect(&self.place, &self.options)?;
            migrate::see_ours(&mut connection, self.steps)?;
            self.explained(&connection, write_ahead(&connection, self.options.busy_timeout))?;
        }
        guard.lock(self.options.busy_timeout)?;
        // The first read of a connection opens its log, or makes it; from then on it is kept by the guard.
        let connection = connect(&self.place, &self.options)?;
        let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
        self.explained(&connection, read.map_err(StoreError::from))?;
        let log = Log::open(path).map_err(|error| StoreError::io("opening the write-ahead log", error))?;
        locked(&self.readers).push(connection);
        self.database.get_or_init(|| Identity::of(path));
        Ok(Attached { guard, log: Arc::new(log) })
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.suspend();
    }
}

/// Sets the log to write-ahead, for good. SQLite does not wait for others here, so we do.
fn write_ahead(connection: &Connection, patience: Duration) -> Result<(), StoreError> {
    let is_set = patiently(patience, || {
        let answer = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0));
        match answer.map_err(StoreError::from) {
            Ok(mode) => Ok((mode == "wal").then_some(())),
            Err(StoreError::Busy) => Ok(None),
            Err(error) => Err(error),
        }
    });
    is_set?.ok_or(StoreError::Busy)
}

/// A panic elsewhere leaves a connection usable: its transaction was rolled back when it was dropped.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
