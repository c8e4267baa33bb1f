//! What is left in a store's folder by a restore that was killed: in nobody's way, and removed by the next who comes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::connection::DATABASE;
#[cfg(unix)]
use super::log::Identity;
use crate::StoreError;

/// What ends the name of a file that is being made.
pub const INCOMPLETE: &str = ".incomplete";

/// Whether it is the name of a copy that a restore makes in a store's folder, or of what SQLite keeps beside one.
pub fn is_leaving(name: &OsStr) -> bool {
    const RANDOM: usize = 16;
    let rest = name.to_str().and_then(|name| name.strip_prefix(DATABASE)?.strip_prefix('.'));
    let Some((random, rest)) = rest.and_then(|rest| rest.split_at_checked(RANDOM)) else { return false };
    let rest = rest.strip_prefix(INCOMPLETE).unwrap_or(rest);
    random.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && matches!(rest, "" | "-journal" | "-wal" | "-shm")
}

/// Held while something is made in a folder, so that nobody takes it for what was left. On Windows the open file is enough.
#[derive(Debug)]
pub struct AtWork {
    /// The folder, with a lock that the system drops when the process ends, however it ends.
    _folder: Option<File>,
}

impl AtWork {
    /// At work in `folder`. Where a folder cannot be locked nobody else is alone in it, and nothing is removed.
    pub fn begin(folder: &Path) -> Self {
        Self { _folder: File::open(folder).ok().filter(|folder| folder.lock_shared().is_ok()) }
    }
}

fn left_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| is_leaving(&entry.file_name())).map(|entry| entry.path()).collect()
}

/// How many of what was left beside `database` are that file itself: a restore makes it a name by linking its copy.
#[cfg(unix)]
pub fn names_of(database: &Path) -> u64 {
    let is_it = |path: &PathBuf| Identity::of(path).is_some_and(|left| Identity::of(database) == Some(left));
    database.parent().map_or(0, |folder| left_in(folder).iter().filter(|path| is_it(path)).count() as u64)
}

/// Removes what was left in `folder`, unless somebody is at work there.
///
/// # Errors
/// When a file cannot be removed.
pub fn sweep(folder: &Path) -> Result<(), StoreError> {
    let left = left_in(folder);
    if left.is_empty() {
        return Ok(());
    }
    #[cfg(unix)]
    let Some(_alone) = File::open(folder).ok().filter(|folder| folder.try_lock().is_ok()) else { return Ok(()) };
    left.iter().try_for_each(|path| remove(path))
}

/// Removes a file that may have gone already.
pub fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StoreError::io(format!("removing {}", path.display()), error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies that are being made, and no file that anything else has made.
    #[test]
    fn leavings_have_names() {
        for name in ["", "-journal", ".incomplete", ".incomplete-journal"] {
            assert!(is_leaving(OsStr::new(&format!("record.sqlite3.0123456789abcdef{name}"))), "{name}");
        }
        for name in ["record.sqlite3", "record.sqlite3-wal", "record.sqlite3.old", "record.sqlite3.old.new", "reserve"]
        {
            assert!(!is_leaving(OsStr::new(name)), "{name}");
        }
        for name in ["record.sqlite3.0123456789abcdeg", "record.sqlite3.0123456789abcdef.mine", "0123456789abcdef"] {
            assert!(!is_leaving(OsStr::new(name)), "{name}");
        }
    }

    /// What was left goes when nobody is at work, and stays while somebody is.
    #[test]
    fn leavings_of_somebody_at_work_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("record.sqlite3.0123456789abcdef.incomplete");
        fs::write(&path, "half").expect("a file");
        #[cfg(unix)]
        {
            let _at_work = AtWork::begin(folder.path());
            sweep(folder.path()).expect("nothing to do");
            assert!(path.exists());
        }
        sweep(folder.path()).expect("swept");
        assert!(!path.exists());
    }
}
