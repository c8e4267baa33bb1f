//! What can go wrong with the record, and what the caller can do next.

use std::sync::Arc;

use rusqlite::ErrorCode;

/// A failure of the record.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process held the write lock for too long. Nothing was written: try again.
    #[error("another process held the write lock for longer than the busy timeout")]
    Busy,
    /// The disk is full. Nothing was written: free some room and try again.
    #[error("the disk is full")]
    Full,
    /// The path holds something that is not a store of ours, or a damaged one.
    #[error("{0}")]
    NotAStore(String),
    /// The file is not one that a store can be made of.
    #[error("{0}")]
    NotABackup(String),
    /// What was written through this handle cannot be believed to be kept: it writes no more. Reads go on; open the store
    /// again.
    #[error("{0}")]
    Failed(String),
    /// The database's schema has something that no release makes, or lacks something: it did not come from us as it is.
    #[error("the database's {0} is not as memkura makes it")]
    Tampered(String),
    /// A newer release wrote the store. Upgrade; nothing was touched.
    #[error("the store has schema version {found}, this build knows up to {known}")]
    SchemaTooNew {
        /// The version in the file.
        found: i64,
        /// The newest version that this build knows.
        known: i64,
    },
    /// The store lies where nothing can be written.
    #[error("the store lies on a file system that cannot be written to")]
    ReadOnly,
    /// The store's files, or its folder, may not be read and written by this user.
    #[error("{0} may not be read and written by this user")]
    NotPermitted(String),
    /// The store lies where nothing can be written, and its log cannot be read there.
    #[error("the log {0} cannot be read on a file system that cannot be written to, without the file -shm beside it")]
    LogUnreadable(String),
    /// The store lies on a network file system, which does not keep the locks that several processes need.
    #[error("the store lies on a network file system ({0}), where locks and shared memory cannot be relied on")]
    OnNetwork(&'static str),
    /// The record is a link, or has another name that leads past its log.
    #[error("{0}")]
    Linked(String),
    /// Something is where a new file or store was to be made. Nothing is ever overwritten.
    #[error("{0} is there already")]
    InTheWay(String),
    /// There is no store at the path and none was to be created.
    #[error("there is no store at {0}")]
    Missing(String),
    /// The linked SQLite is older than 3.51.3, which can lose commits when several processes checkpoint.
    #[error("the linked SQLite is {0}, at least 3.51.3 is needed")]
    SqliteTooOld(String),
    /// A file could not be read or written.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// The operating system's answer.
        source: Arc<std::io::Error>,
    },
    /// The database is damaged.
    #[error("the record is damaged: {0}")]
    Corrupt(String),
    /// A row in the record has a value that we never write: somebody edited the file by hand.
    #[error("row {row} of table {table} holds a value that memkura never writes in {column}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's number.
        row: i64,
    },
    /// SQLite reported something else.
    #[error("sqlite: {0}")]
    Sqlite(Arc<rusqlite::Error>),
}

impl StoreError {
    /// An input-output failure while `doing` something.
    pub fn io(doing: impl Into<String>, source: std::io::Error) -> Self {
        if source.kind() == std::io::ErrorKind::StorageFull {
            Self::Full
        } else {
            Self::Io { doing: doing.into(), source: Arc::new(source) }
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::NotADatabase) => Self::NotAStore(error.to_string()),
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt(error.to_string()),
            _ => Self::Sqlite(Arc::new(error)),
        }
    }
}

impl From<rusqlite::types::FromSqlError> for StoreError {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::from(rusqlite::Error::from(error))
    }
}
