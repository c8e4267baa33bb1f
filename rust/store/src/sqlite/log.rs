//! The write-ahead log beside a database: made durable for several threads at once, and watched.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The log that the open connections write to.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    syncing: Mutex<Syncing>,
    synced: Condvar,
}

#[derive(Debug, Default)]
struct Syncing {
    /// Commits that asked to be made durable.
    asked: u64,
    /// How many of them are.
    done: u64,
    /// Whether a thread is syncing for all that had asked when it began.
    is_at_work: bool,
    /// Why a sync failed. The system may have dropped what it could not write, so no later one can be believed.
    failure: Option<String>,
}

impl Log {
    /// The log of `database`, which a connection has open.
    pub fn open(database: &Path) -> io::Result<Self> {
        let path = beside(database, "-wal");
        // Windows flushes only what may be written to.
        let file = File::options().read(true).write(true).open(&path)?;
        Ok(Self { path, file, syncing: Mutex::default(), synced: Condvar::new() })
    }

    /// Makes what was written before durable. Threads that come while one is at it share the next sync (group commit).
    pub fn sync(&self) -> Result<(), String> {
        let mut syncing = self.locked();
        syncing.asked += 1;
        let ticket = syncing.asked;
        loop {
            if syncing.done >= ticket {
                return Ok(());
            }
            if let Some(failure) = &syncing.failure {
                return Err(failure.clone());
            }
            if syncing.is_at_work {
                syncing = self.synced.wait(syncing).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            syncing.is_at_work = true;
            let covered = syncing.asked;
            drop(syncing);
            let outcome = self.file.sync_data();
            syncing = self.locked();
            syncing.is_at_work = false;
            match outcome {
                Ok(()) => syncing.done = covered,
                Err(error) => syncing.failure = Some(error.to_string()),
            }
            self.synced.notify_all();
        }
    }

    /// Whether the file at the log's path is still the one that was opened. Where it is not, the connections write to a
    /// file that nobody will find again.
    #[cfg(unix)]
    pub fn is_in_place(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let here = std::fs::metadata(&self.path).map(identity);
        here.is_ok_and(|here| self.file.metadata().map(identity).is_ok_and(|ours| ours == here))
    }

    /// Windows removes no file that is open.
    #[cfg(not(unix))]
    pub fn is_in_place(&self) -> bool {
        self.path.exists()
    }

    fn locked(&self) -> MutexGuard<'_, Syncing> {
        self.syncing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that SQLite keeps beside a database.
pub fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(folder: &tempfile::TempDir) -> Log {
        std::fs::write(folder.path().join("d-wal"), "").expect("a file");
        Log::open(&folder.path().join("d")).expect("the log")
    }

    /// Every thread's sync ends, whoever does it for them.
    #[test]
    fn threads_share_syncs() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = log(&folder);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..50).for_each(|_| log.sync().expect("a sync")));
            }
        });
        let syncing = log.locked();
        assert_eq!((syncing.asked, syncing.done), (400, 400));
    }

    /// A file of the same name is another log.
    #[test]
    #[cfg(unix)]
    fn replaced_log_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = log(&folder);
        assert!(log.is_in_place());
        std::fs::remove_file(folder.path().join("d-wal")).expect("removed");
        assert!(!log.is_in_place());
        std::fs::write(folder.path().join("d-wal"), "").expect("another");
        assert!(!log.is_in_place());
    }
}
