//! One self-contained file from a store, and a store from such a file.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::connection::{
    DATABASE, Options, Place, is_out_of_room, open_other, prepare_folder, private_file, sync_folder, uri,
};
use super::leavings::{self, AtWork, INCOMPLETE};
use super::{Record, migrate};
use crate::StoreError;

/// Others may read and write the file, and not remove it: `FILE_SHARE_READ` and `FILE_SHARE_WRITE`.
#[cfg(windows)]
const SHARED: u32 = 1 | 2;

/// Where files are, to SQLite.
const FILES: &str = if cfg!(windows) { "vfs=win32" } else { "vfs=unix" };

impl Record {
    /// Writes everything that was committed before into one new file at `destination` (0600), while others go on writing.
    /// The file appears when it is complete and durable.
    ///
    /// # Errors
    /// When something is at the destination already, or a file cannot be written.
    pub fn back_up(&self, destination: &Path) -> Result<(), StoreError> {
        if is_taken(destination) {
            return Err(StoreError::InTheWay(destination.display().to_string()));
        }
        let aside = Aside::new(destination)?;
        // As a statement of its own, it reads one moment of the record and makes others wait for nothing.
        self.reading(|connection| match self.place {
            // Unless it is told otherwise, a database in memory makes its copies there too.
            Place::Memory(_) => copy_into(connection, &uri(&aside.path, FILES)),
            Place::File(_) | Place::Fixed(_) => copy_record(connection, &aside.path),
        })?;
        aside.publish(destination)
    }
}

/// Whether there is anything at a path, be it a link that leads nowhere.
fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Copies what was committed before, as one file without a log, into the empty file at `path`.
pub fn copy_record(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let name = path.to_str().ok_or_else(|| StoreError::NotAStore(format!("{} is no text", path.display())))?;
    copy_into(connection, name)
}

fn copy_into(connection: &Connection, name: &str) -> Result<(), StoreError> {
    match connection.execute("VACUUM INTO ?1", [name]) {
        Err(_) if is_out_of_room(connection) => Err(StoreError::Full),
        outcome => outcome.map(|_| ()).map_err(StoreError::from),
    }
}

/// Makes a store folder at `folder` from the backup at `source`.
///
/// # Errors
/// When the folder holds something already, or the file is not a whole backup of a store that this build can read.
pub fn restore(source: &Path, folder: &Path) -> Result<(), StoreError> {
    if folder.join(DATABASE).exists() {
        return Err(StoreError::InTheWay(folder.display().to_string()));
    }
    if !source.is_file() {
        return Err(StoreError::NotABackup(format!("{} is no file", source.display())));
    }
    let is_new = !folder.exists();
    prepare_folder(folder)?;
    // What cannot be removed is in nobody's way.
    let _ = leavings::sweep(folder);
    let _at_work = AtWork::begin(folder);
    let made = Aside::new(&folder.join(DATABASE)).and_then(|aside| {
        // Into the file that is there, and is its owner's alone: a copy would take over who may read the backup.
        File::open(source)
            .and_then(|mut backup| std::io::copy(&mut backup, &mut File::options().write(true).open(&aside.path)?))
            .map_err(|error| StoreError::io(format!("copying {}", source.display()), error))?;
        // What is checked is what becomes the store, whatever happens to the backup meanwhile.
        check(&aside.path, source)?;
        aside.publish(&folder.join(DATABASE))
    });
    if made.is_err() && is_new {
        // Nothing is left of what was not restored, unless somebody has put something there since.
        let _ = std::fs::remove_dir(folder);
    }
    made
}

fn check(copy: &Path, source: &Path) -> Result<(), StoreError> {
    examine(copy, source).map_err(|error| match error {
        StoreError::NotAStore(why) => StoreError::NotABackup(format!("{} is no backup: {why}", source.display())),
        other => other,
    })
}

fn examine(copy: &Path, source: &Path) -> Result<(), StoreError> {
    let refused = |why: &str| StoreError::NotABackup(format!("{} {why}", source.display()));
    let connection = open_other(copy, &Options::default())?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode == "wal" {
        return Err(refused("is the database of a store, which is not all of it; make a backup of that store"));
    }
    if migrate::checked_version(&connection, migrate::STEPS)? == 0 {
        return Err(refused("is empty"));
    }
    match problems(&connection)?.first() {
        None => Ok(()),
        Some(problem) => Err(refused(&format!("is damaged: {problem}"))),
    }
}

/// What SQLite finds wrong with a database, at most a hundred things.
pub fn problems(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut check = connection.prepare("PRAGMA integrity_check(100)")?;
    let found: Vec<String> = check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut problems: Vec<String> = found.into_iter().filter(|line| line != "ok").collect();
    let mut check = connection.prepare("PRAGMA foreign_key_check")?;
    let orphans = check.query_map([], |row| {
        let (table, of): (String, String) = (row.get(0)?, row.get(2)?);
        Ok(format!("a row of {table} names a row of {of} that is not there"))
    })?;
    problems.extend(orphans.take(100).collect::<Result<Vec<_>, _>>()?);
    Ok(problems)
}

/// A file that is being made beside its destination. Removed again unless it is published; when its maker is killed, it
/// stays under a name that says what it is.
struct Aside {
    path: PathBuf,
    /// Open until it is published: Windows lets nobody remove it meanwhile.
    file: Option<File>,
}

impl Aside {
    fn new(destination: &Path) -> Result<Self, StoreError> {
        /// Of the destination's name: what is put after it must fit, too.
        const CHARACTERS: usize = 40;
        let name = destination.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().take(CHARACTERS).collect();
        let path = destination.with_file_name(format!("{name}.{}{INCOMPLETE}", migrate::random_name::<8>()?));
        let mut options = private_file();
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, SHARED);
        let made = options.create_new(true).open(&path);
        let file = made.map_err(|error| StoreError::io(format!("creating {}", path.display()), error))?;
        Ok(Self { path, file: Some(file) })
    }

    /// Puts the file, durable and whole, at its destination.
    fn publish(mut self, destination: &Path) -> Result<(), StoreError> {
        let failed = |error| StoreError::io(format!("writing {}", destination.display()), error);
        self.file.take().map_or(Ok(()), |file| file.sync_all()).map_err(failed)?;
        // Unlike a rename, a link replaces nothing that has come there meanwhile; not every file system has links.
        match std::fs::hard_link(&self.path, destination) {
            Err(_) if is_taken(destination) => Err(StoreError::InTheWay(destination.display().to_string())),
            Err(_) => std::fs::rename(&self.path, destination).map_err(failed),
            Ok(()) => Ok(()),
        }?;
        sync_folder(destination.parent().unwrap_or(Path::new("")))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        drop(self.file.take());
        // What cannot be removed is an incomplete copy under a name of its own.
        let _ = std::fs::remove_file(&self.path);
    }
}
