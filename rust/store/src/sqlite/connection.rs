//! One connection, set up as every connection of a store must be.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use super::log::beside;
use super::{leavings, shared_memory};
use crate::StoreError;

/// The first SQLite without the race in which processes that checkpoint together lose commits.
const SQLITE_MIN: i32 = 3_051_003;

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The process's death, the system's, and loss of power (I1).
    #[default]
    PowerLoss,
    /// The process's death only: a system crash may take the last writes, never the store's soundness.
    ProcessCrash,
}

/// How a record is opened.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// How long to wait for another process's write.
    pub busy_timeout: Duration,
    /// Whether to make the store when there is none.
    pub create: bool,
    /// Whether the store may lie on a network file system, where one process of one machine may use it at a time.
    pub allow_network: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            busy_timeout: Duration::from_secs(30),
            create: true,
            allow_network: false,
        }
    }
}

/// The version of the SQLite that is linked in.
#[must_use]
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// Where a record lives.
#[derive(Debug, Clone)]
pub enum Place {
    /// A database file.
    File(PathBuf),
    /// A database file on a file system that cannot be written to.
    Fixed(PathBuf),
    /// Shared memory of this process, under a name of its own.
    Memory(String),
}

/// The database's name in the store's folder.
pub const DATABASE: &str = "record.sqlite3";

/// How large the log stays once it was emptied into the database.
const LOG_BYTES_KEPT: i64 = 4 << 20;

/// How many prepared statements a connection keeps: more than we have, so that none is prepared twice.
const STATEMENTS_KEPT: usize = 64;

/// Opens a connection to `place`.
pub fn connect(place: &Place, options: &Options) -> Result<Connection, StoreError> {
    if rusqlite::version_number() < SQLITE_MIN {
        return Err(StoreError::SqliteTooOld(sqlite_version().to_owned()));
    }
    shared_memory::keep_locks();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match place {
        Place::File(path) => Connection::open_with_flags(path, flags)?,
        Place::Fixed(path) => open_fixed(path)?,
        Place::Memory(name) => {
            let uri = format!("file:/{name}?vfs=memdb");
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_CREATE)?
        }
    };
    match set_up(&connection, options) {
        Err(_) if is_out_of_room(&connection) => Err(StoreError::Full),
        outcome => outcome.map(|()| connection),
    }
}

fn set_up(connection: &Connection, options: &Options) -> Result<(), StoreError> {
    connection.busy_timeout(options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // A store file may come from a stranger: nothing in its schema may call a function or write to the schema.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", synchronous(options.durability))?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    Ok(())
}

const fn synchronous(durability: Durability) -> &'static str {
    match durability {
        Durability::PowerLoss => "full",
        Durability::ProcessCrash => "normal",
    }
}

/// Opens a database of which not a byte can change. Without a log there is nothing to lock or to watch (`immutable`); with
/// one SQLite must read it.
fn open_fixed(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let log = beside(path, "-wal");
    let has_log = std::fs::metadata(&log).is_ok_and(|log| log.len() > 0);
    if has_log && !beside(path, "-shm").exists() {
        return Err(StoreError::LogUnreadable(log.display().to_string()));
    }
    let uri = uri(path, if has_log { "mode=ro" } else { "mode=ro&immutable=1" });
    Ok(Connection::open_with_flags(uri, flags)?)
}

/// Refuses a database beside which, or in whose place, something lies that is no plain file. SQLite would wait for a pipe's
/// other end for ever, and says of the rest only that it cannot be opened.
pub fn see_plain_files(database: &Path) -> Result<(), StoreError> {
    let see = |path: &Path, found: std::io::Result<std::fs::Metadata>| match found {
        Ok(found) if !found.is_file() => Err(StoreError::NotAStore(format!(
            "{} is no plain file, and none that memkura made; move it away",
            path.display()
        ))),
        _ => Ok(()),
    };
    see(database, std::fs::metadata(database))?;
    ["-journal", "-wal", "-shm"].into_iter().try_for_each(|suffix| {
        let path = beside(database, suffix);
        see(&path, std::fs::symlink_metadata(&path))
    })
}

/// Refuses a record that is known by another name too. Its log belongs to a name: who opens it by the other one writes
/// without what is in this one's, and takes back what was acknowledged.
pub fn see_one_name(database: &Path) -> Result<(), StoreError> {
    if database.is_symlink() {
        return Err(StoreError::Linked(format!("{} is a link, and not the record itself", database.display())));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        // A restore that is at work, or was killed, has its copy beside the record. Looked for first: it may go meanwhile.
        let leavings = leavings::names_of(database);
        let names = std::fs::metadata(database).map_or(1, |found| found.nlink());
        if names > leavings + 1 {
            let problem = "has another name too (a hard link), and each name has a log of its own";
            return Err(StoreError::Linked(format!("{} {problem}", database.display())));
        }
    }
    Ok(())
}

/// Opens a file that is no store in use, such as a backup, to be examined.
pub fn open_other(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    shared_memory::keep_locks();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    set_up(&connection, options)?;
    Ok(connection)
}

/// A path as SQLite's own kind of address, with what more it says.
pub fn uri(path: &Path, query: &str) -> String {
    use std::fmt::Write as _;

    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri.push('?');
    uri + query
}

/// Whether the last call failed because the disk, a quota or the largest file was full. SQLite tells of a full disk alone,
/// and of the rest only that something failed.
pub fn is_out_of_room(connection: &Connection) -> bool {
    use std::io::{Error, ErrorKind};
    let (code, system) = last_error(connection);
    let is_full = |kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge);
    let is_failed_call = [ffi::SQLITE_IOERR, ffi::SQLITE_CANTOPEN].contains(&(code & PRIMARY_CODE));
    code & PRIMARY_CODE == ffi::SQLITE_FULL || (is_failed_call && is_full(Error::from_raw_os_error(system).kind()))
}

/// Whether the last call failed to sync a file. The system may have dropped what it could not write: trying again proves
/// nothing.
pub fn is_failed_sync(connection: &Connection) -> bool {
    matches!(last_error(connection).0, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

/// The last call's failure.
pub fn last_failure(connection: &Connection) -> StoreError {
    if is_out_of_room(connection) {
        return StoreError::Full;
    }
    rusqlite::Error::SqliteFailure(ffi::Error::new(last_error(connection).0), None).into()
}

/// The part of SQLite's error code that says what kind of error it is.
const PRIMARY_CODE: c_int = 0xff;

/// SQLite's code for the last call's error, and the system's code of the last call to it that failed.
fn last_error(connection: &Connection) -> (c_int, c_int) {
    #[expect(unsafe_code, reason = "rusqlite has no safe way to ask for the system's own error")]
    // SAFETY: the handle belongs to an open connection, which is borrowed for as long as the calls last.
    unsafe {
        let handle = connection.handle();
        (ffi::sqlite3_extended_errcode(handle), ffi::sqlite3_system_errno(handle))
    }
}

/// Makes the folder (0700) and an empty database file (0600) where they are missing.
pub fn prepare(folder: &Path, create: bool) -> Result<PathBuf, StoreError> {
    let file = folder.join(DATABASE);
    if file.exists() {
        return Ok(file);
    }
    if !create {
        return Err(StoreError::Missing(folder.display().to_string()));
    }
    prepare_folder(folder)?;
    // SQLite gives its side files the mode of the database file, so this one mode decides them all.
    private_file()
        .create(true)
        .truncate(false)
        .open(&file)
        .map_err(|error| StoreError::io(format!("creating {}", file.display()), error))?;
    sync_folder(folder)?;
    Ok(file)
}

/// How a file is opened for writing that, when it is new, its owner alone may read.
#[must_use]
pub fn private_file() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a folder for a store where there is none. What holds other things is not taken over.
pub fn prepare_folder(folder: &Path) -> Result<(), StoreError> {
    refuse_foreign(folder)?;
    make_private_folder(folder)
}

/// Makes it durable which files a folder holds. Windows does so by itself.
///
/// # Errors
/// When the folder cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    // A path of one part has an empty parent.
    #[cfg(unix)]
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    #[cfg(unix)]
    std::fs::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| StoreError::io(format!("syncing {}", folder.display()), error))?;
    Ok(())
}

/// A store is a folder of its own: a file, or a folder that holds other things, is not taken over.
fn refuse_foreign(folder: &Path) -> Result<(), StoreError> {
    match std::fs::read_dir(folder) {
        Ok(entries) => match entries.flatten().find(|entry| !leavings::is_leaving(&entry.file_name())) {
            None => Ok(()),
            // Another process may have begun to make the store since we looked for it.
            Some(_) if folder.join(DATABASE).exists() => Ok(()),
            Some(_) => {
                Err(StoreError::NotAStore(format!("{} holds other files and is not a memkura store", folder.display())))
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Err(StoreError::NotAStore(format!("{} is a file; a store is a folder", folder.display())))
        }
        Err(error) => Err(StoreError::io(format!("looking into {}", folder.display()), error)),
    }
}

/// Makes a folder that only its owner can enter, and those above it that are missing.
fn make_private_folder(folder: &Path) -> Result<(), StoreError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    builder.create(folder).map_err(|error| StoreError::io(format!("creating {}", folder.display()), error))?;
    missing.into_iter().filter_map(Path::parent).try_for_each(sync_folder)
}
