//! Writes of several threads that share one transaction, and so one sync.
//!
//! Each thread does its own part when its turn comes. One that sees another waiting leaves the transaction open to it; the
//! last one commits for all, and nobody is told of success before that (I1).

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connection::last_failure;
use super::record::locked;
use crate::StoreError;

/// A round takes no further part after this, about the time of one sync. A part that began before may take longer.
const OPEN_FOR: Duration = Duration::from_millis(5);

/// The connection that writes, and the round whose transaction is open on it.
#[derive(Debug, Default)]
pub struct Writing {
    pub connection: Option<Connection>,
    pub round: Option<Round>,
}

/// One thread's wait for its turn: what it has waited for other threads is taken off what it waits for other processes.
#[derive(Debug)]
pub struct Turn {
    since: Instant,
    patience: Duration,
}

impl Turn {
    /// Begins to wait, with so much patience.
    pub fn new(patience: Duration) -> Self {
        #[expect(clippy::disallowed_methods, reason = "how long others wait is no input")]
        let since = Instant::now();
        Self { since, patience }
    }

    /// Begins a transaction, unless another process keeps the record for longer than there is patience left.
    fn begin(&self, connection: &Connection) -> Result<(), StoreError> {
        /// Less than this is no waiting.
        const NOTHING: Duration = Duration::from_millis(50);
        let waited = self.since.elapsed();
        if waited < NOTHING {
            return Ok(connection.execute_batch("BEGIN IMMEDIATE")?);
        }
        connection.busy_timeout(self.patience.saturating_sub(waited))?;
        let begun = connection.execute_batch("BEGIN IMMEDIATE");
        connection.busy_timeout(self.patience)?;
        Ok(begun?)
    }
}

/// One open transaction, with the parts of all who wrote in it so far.
#[derive(Debug)]
pub struct Round {
    began: Instant,
    end: Arc<End>,
    /// Why the transaction is gone, with everybody's part.
    lost: Option<StoreError>,
}

impl Round {
    fn since(began: Instant) -> Self {
        Self { began, end: Arc::default(), lost: None }
    }

    /// Whether it may be left open for another part.
    pub fn takes_more(&self) -> bool {
        self.lost.is_none() && self.began.elapsed() < OPEN_FOR
    }

    /// # Errors
    /// When there is nothing left to commit.
    pub fn see_whole(&self) -> Result<(), StoreError> {
        self.lost.clone().map_or(Ok(()), Err)
    }

    /// Tells all who took part how it ended.
    pub fn end(self, outcome: Result<(), StoreError>) {
        *locked(&self.end.outcome) = Some(outcome);
    }
}

impl Drop for Round {
    /// Nobody waits for ever, whatever became of the round.
    fn drop(&mut self) {
        let unknown = || Err(StoreError::Failed("a shared commit came to no end".to_owned()));
        locked(&self.end.outcome).get_or_insert_with(unknown);
        self.end.is_known.notify_all();
    }
}

/// How a round ended, for those who wait to know.
#[derive(Debug, Default)]
pub struct End {
    outcome: Mutex<Option<Result<(), StoreError>>>,
    is_known: Condvar,
}

impl End {
    /// Returns when the round has ended: whether it was committed.
    pub fn wait(&self) -> Result<(), StoreError> {
        let mut outcome = locked(&self.outcome);
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone(),
                None => outcome = self.is_known.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// One write in a round. Dropped before it is kept, it takes back what it wrote.
#[derive(Debug)]
pub struct Part<'a> {
    connection: &'a Connection,
    round: &'a mut Option<Round>,
    end: Arc<End>,
    is_first: bool,
    is_kept: bool,
}

impl<'a> Part<'a> {
    /// Begins a part of the open round, or of a new one.
    pub fn begin(connection: &'a Connection, round: &'a mut Option<Round>, turn: &Turn) -> Result<Self, StoreError> {
        let is_first = round.is_none();
        if is_first {
            turn.begin(connection)?;
        } else {
            connection.execute_batch("SAVEPOINT part")?;
        }
        #[expect(clippy::disallowed_methods, reason = "how long others wait is no input")]
        let end = Arc::clone(&round.get_or_insert_with(|| Round::since(Instant::now())).end);
        Ok(Self { connection, round, end, is_first, is_kept: false })
    }

    /// Leaves what was written to the round's commit. Returns where its end will be known.
    pub fn keep(&mut self) -> Result<Arc<End>, StoreError> {
        if !self.is_first {
            self.connection.execute_batch("RELEASE part")?;
        }
        self.is_kept = true;
        Ok(Arc::clone(&self.end))
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // Some failures make SQLite roll back the whole transaction by itself, which ends the round for everybody.
        let failure = last_failure(self.connection);
        if self.is_first {
            *self.round = None;
            // Fails only where it has happened already.
            let _ = self.connection.execute_batch("ROLLBACK");
        } else if self.connection.execute_batch("ROLLBACK TO part; RELEASE part").is_err() {
            let _ = self.connection.execute_batch("ROLLBACK");
            if let Some(round) = self.round {
                round.lost = Some(failure);
            }
        }
    }
}
