//! Some room that is kept for forgetting: on a full disk it takes a write to give any back.
//!
//! Purging makes room in the record for what comes after it, and can go on for as long as its own log has room. Forgetting
//! without it writes more than it frees, and may not take the room that purging needs.

use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::connection::private_file;

/// Whom the room is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// Whoever forgets, and keeps the history.
    Forgetting,
    /// Whoever purges: all that there is.
    Purging,
}

/// Enough for the log of a transaction that purges, and for the memory that its readers share: each page once.
const FOR_PURGING: u64 = 512 << 10;
/// With what forgetting may take.
const BYTES: u64 = 768 << 10;

/// Sees that the room is taken, as far as there is any. Done again whenever the store is opened or maintained, and after
/// some of it was spent.
pub fn keep(database: &Path) {
    let path = path(database);
    let taken = match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => found.len(),
        // Whatever it is, it is none of ours.
        Ok(_) => return,
        Err(_) => 0,
    };
    // A kill may have cut it short.
    let is_kept = [BYTES, FOR_PURGING].into_iter().any(|bytes| taken >= bytes || extend(&path, taken, bytes).is_ok());
    if !is_kept {
        let _ = fs::remove_file(path);
    }
}

/// Makes the file as long as `bytes`, or leaves it as it was.
fn extend(path: &Path, taken: u64, bytes: u64) -> io::Result<()> {
    let mut file = private_file().create(true).truncate(false).open(path)?;
    file.seek(SeekFrom::Start(taken))?;
    let extended = file.write_all(&vec![0; (bytes - taken) as usize]);
    if extended.is_err() {
        file.set_len(taken)?;
    }
    extended
}

/// Gives the room back. What cannot be given back was not there, or is missed by nobody.
pub fn spend(database: &Path, reserved: Reserved) {
    let path = path(database);
    // Not through a link: what a stranger's store leads to is none of ours.
    let is_more = |found: fs::Metadata| found.is_file() && found.len() > FOR_PURGING;
    match reserved {
        Reserved::Purging => drop(fs::remove_file(path)),
        Reserved::Forgetting if fs::symlink_metadata(&path).is_ok_and(is_more) => {
            drop(private_file().open(path).and_then(|file| file.set_len(FOR_PURGING)));
        }
        Reserved::Forgetting => {}
    }
}

/// Bytes that are kept.
pub fn kept(database: &Path) -> u64 {
    fs::symlink_metadata(path(database)).map_or(0, |found| found.len())
}

fn path(database: &Path) -> PathBuf {
    database.with_file_name("reserve")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forgetting leaves purging its part, and a part that is missing is taken again.
    #[test]
    fn each_has_its_part() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("record.sqlite3");
        let kept = || fs::metadata(path(&database)).map_or(0, |found| found.len());
        keep(&database);
        assert_eq!(kept(), BYTES);
        spend(&database, Reserved::Forgetting);
        spend(&database, Reserved::Forgetting);
        assert_eq!(kept(), FOR_PURGING);
        spend(&database, Reserved::Purging);
        assert_eq!(kept(), 0);
        // Another file that a link leads to is left alone.
        let other = folder.path().join("other");
        fs::write(&other, vec![1; BYTES as usize]).expect("a file");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&other, path(&database)).expect("a link");
            [Reserved::Forgetting, Reserved::Purging].into_iter().for_each(|reserved| spend(&database, reserved));
        }
        assert_eq!(fs::metadata(&other).map_or(0, |found| found.len()), BYTES);
        // As a kill leaves it.
        fs::write(path(&database), "cut").expect("a file");
        keep(&database);
        assert_eq!(kept(), BYTES);
    }
}
