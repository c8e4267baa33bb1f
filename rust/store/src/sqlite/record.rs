//! The open record: one writer, a few readers, and a look-out for other processes' commits.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memkura_model::Timestamp;
use rusqlite::{Connection, TransactionBehavior};

use super::connection::{Options, Place, connect, prepare};
use super::{Reader, Writer, migrate};
use crate::StoreError;

/// An open record. It can be shared between threads; each call takes the connection that it needs.
///
/// Connections are opened on first use and can all be closed with [`Record::suspend`], since a SQLite connection must
/// not be carried across a fork.
#[derive(Debug)]
pub struct Record {
    place: Place,
    options: Options,
    writer: Mutex<Option<Connection>>,
    readers: Mutex<Vec<Connection>>,
    /// A connection that never writes: its `data_version` moves when any other commits.
    tail: Mutex<Option<Connection>>,
    /// Keeps an in-memory database alive while no other connection to it is open.
    _anchor: Option<Mutex<Connection>>,
}

/// Most connections kept for reading: more threads than this wait for a processor anyway.
const READERS_KEPT: usize = 8;

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
        let place = if path == ":memory:" {
            Place::Memory(format!("memkura-{}", migrate::random_name::<8>()?))
        } else {
            Place::File(prepare(Path::new(path), options.create)?)
        };
        let mut connection = connect(&place, &options)?;
        if matches!(place, Place::File(_)) {
            write_ahead(&connection, options.busy_timeout)?;
        }
        migrate::migrate(&mut connection, now)?;
        let anchor = match place {
            Place::Memory(_) => Some(Mutex::new(connect(&place, &options)?)),
            Place::File(_) => None,
        };
        let writer = Mutex::new(Some(connection));
        Ok(Self { place, options, writer, readers: Mutex::default(), tail: Mutex::default(), _anchor: anchor })
    }

    /// Runs `work` in one write transaction: all of it happens, durably, or none.
    ///
    /// # Errors
    /// Whatever `work` returns, or the failure of the commit; nothing was written then.
    pub fn write<T, E: From<StoreError>>(&self, work: impl FnOnce(&Writer<'_>) -> Result<T, E>) -> Result<T, E> {
        let mut slot = locked(&self.writer);
        let connection = self.opened(&mut slot)?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(StoreError::from)?;
        let answer = work(&Writer::new(&transaction))?;
        transaction.commit().map_err(StoreError::from)?;
        Ok(answer)
    }

    /// Runs `work` in one read transaction: everything that it reads is of one moment.
    ///
    /// # Errors
    /// Whatever `work` returns, or a failure to begin.
    pub fn read<T, E: From<StoreError>>(&self, work: impl FnOnce(&Reader<'_>) -> Result<T, E>) -> Result<T, E> {
        let kept = locked(&self.readers).pop();
        let mut connection = kept.map_or_else(|| connect(&self.place, &self.options), Ok)?;
        let answer = {
            let transaction = connection.transaction().map_err(StoreError::from)?;
            work(&Reader::new(&transaction))
        };
        let mut readers = locked(&self.readers);
        if readers.len() < READERS_KEPT {
            readers.push(connection);
        }
        answer
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

    /// Gives the space of removed rows back to the file system and empties the log.
    ///
    /// # Errors
    /// When another process keeps the record busy.
    pub fn compact(&self) -> Result<(), StoreError> {
        let mut slot = locked(&self.writer);
        let connection = self.opened(&mut slot)?;
        connection.execute_batch("VACUUM")?;
        let blocked: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if blocked { Err(StoreError::Busy) } else { Ok(()) }
    }

    /// Closes every connection; the next call opens what it needs. Waits for calls that are at work.
    pub fn suspend(&self) {
        if matches!(self.place, Place::Memory(_)) {
            return;
        }
        *locked(&self.tail) = None;
        locked(&self.readers).clear();
        *locked(&self.writer) = None;
    }

    fn opened<'a>(&self, slot: &'a mut Option<Connection>) -> Result<&'a mut Connection, StoreError> {
        match slot {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(connect(&self.place, &self.options)?)),
        }
    }
}

/// Sets the log to write-ahead, for good. SQLite does not wait for others here, so we do.
fn write_ahead(connection: &Connection, patience: Duration) -> Result<(), StoreError> {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    loop {
        let answer = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0));
        match answer.map_err(StoreError::from) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Err(error) if !matches!(error, StoreError::Busy) => return Err(error),
            _ if waited >= patience => return Err(StoreError::Busy),
            _ => {
                std::thread::sleep(PAUSE);
                waited += PAUSE;
            }
        }
    }
}

/// A panic elsewhere leaves a connection usable: its transaction was rolled back when it was dropped.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
