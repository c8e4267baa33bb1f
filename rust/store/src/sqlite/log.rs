//! The write-ahead log beside a database, watched: is it still the file that we have open?

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The log that the open connections write to.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// The log of `database`, which a connection has open.
    pub fn open(database: &Path) -> io::Result<Self> {
        let path = beside(database, "-wal");
        // Windows flushes only what may be written to.
        let file = File::options().read(true).write(true).open(&path)?;
        Ok(Self { path, file })
    }

    /// Makes its present length and content durable. Commits are made durable by SQLite itself; it empties a log without.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Whether the file at the log's path is still the one that was opened. Where it is not, the connections write to a
    /// file that nobody will find again.
    #[cfg(unix)]
    pub fn is_in_place(&self) -> bool {
        let here = Identity::of(&self.path);
        here.is_some() && here == self.file.metadata().ok().as_ref().map(Identity::from)
    }

    /// Windows removes no file that is open.
    #[cfg(not(unix))]
    pub fn is_in_place(&self) -> bool {
        self.path.exists()
    }
}

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity(u64, u64);

impl Identity {
    /// Of the file at `path`; `None` when there is none. The file is not opened.
    pub fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().map(Self::from)
    }
}

impl From<&std::fs::Metadata> for Identity {
    #[cfg(unix)]
    fn from(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(metadata.dev(), metadata.ino())
    }

    /// Windows replaces no file that is open.
    #[cfg(not(unix))]
    fn from(_: &std::fs::Metadata) -> Self {
        Self(0, 0)
    }
}

/// A file that SQLite keeps beside a database.
pub fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A file of the same name is another log.
    #[test]
    fn replaced_log_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("d-wal");
        std::fs::write(&path, "").expect("a file");
        let log = Log::open(&folder.path().join("d")).expect("the log");
        assert!(log.is_in_place());
        std::fs::remove_file(&path).expect("removed");
        assert!(!log.is_in_place());
        std::fs::write(&path, "").expect("another");
        assert!(!log.is_in_place());
    }
}
