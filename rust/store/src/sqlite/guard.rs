//! Stands for this process at the database file when SQLite's own locks cannot be relied on.
//!
//! On Unix SQLite locks a file for the process as a whole, and the system drops such locks as soon as anything in the
//! process closes any descriptor of the file: Python's own `sqlite3`, a checksum, a copy. Another process that closes the
//! store then takes itself for the last one and removes the write-ahead log under us, and what is committed afterwards is
//! lost. On Linux the lock of an open file description stays until it is given up, and while we hold one nobody gets the
//! exclusive lock that removing the log needs. On macOS, [`super::log::Log::is_in_place`] notices that it happened; Windows
//! locks by handle and removes no open file.

use std::path::Path;
use std::time::Duration;

use crate::StoreError;

/// What the first bytes of a database file say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Whose file it is.
    pub application_id: u32,
    /// Its schema's version.
    pub user_version: i32,
    /// Whether it has a write-ahead log.
    pub is_write_ahead: bool,
}

pub use platform::Guard;

#[cfg(target_os = "linux")]
mod platform {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc::{F_RDLCK, F_UNLCK, SEEK_SET, c_int, flock, off_t};

    use super::{Duration, Header, Path, StoreError};
    use crate::patience::patiently;

    /// An open database file and, once it is locked, a shared lock on it that only [`Guard::unlock`] or the process's end
    /// gives up.
    #[derive(Debug)]
    pub struct Guard {
        /// Open as long as any connection to the file is: closing it drops SQLite's own locks.
        file: File,
    }

    /// `SHARED_FIRST` and `SHARED_SIZE` of SQLite's `os.h`: the bytes that it locks, part of its file format.
    const SHARED_BYTES: (off_t, off_t) = (0x4000_0002, 510);

    impl Guard {
        /// Opens the file, without locking it.
        pub fn open(database: &Path) -> Result<Self, StoreError> {
            let failed = |error| StoreError::io(format!("opening {}", database.display()), error);
            Ok(Self { file: File::open(database).map_err(failed)? })
        }

        /// The file's header; `None` of an empty file.
        pub fn header(&self) -> Result<Option<Header>, StoreError> {
            // https://www.sqlite.org/fileformat2.html, section 1.3.
            const VERSIONS: usize = 18;
            const USER_VERSION: usize = 60;
            const APPLICATION_ID: usize = 68;
            const WRITE_AHEAD: [u8; 2] = [2, 2];
            let mut bytes = [0; 72];
            match self.file.read_exact_at(&mut bytes, 0) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(StoreError::io("reading the database's header", error)),
            }
            let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            Ok(Some(Header {
                application_id: number(APPLICATION_ID),
                user_version: number(USER_VERSION).cast_signed(),
                is_write_ahead: bytes[VERSIONS..VERSIONS + 2] == WRITE_AHEAD,
            }))
        }

        /// Takes the lock, waiting while another process holds the exclusive one for a moment.
        pub fn lock(&self, patience: Duration) -> Result<(), StoreError> {
            let is_locked = patiently(patience, || match self.set(F_RDLCK) {
                Ok(()) => Ok(Some(())),
                Err(Errno::EAGAIN | Errno::EACCES) => Ok(None),
                Err(error) => Err(StoreError::io("locking the database", error.into())),
            });
            is_locked?.ok_or(StoreError::Busy)
        }

        /// Gives the lock up, so that the connections can be closed as SQLite does it. The file stays open.
        pub fn unlock(&self) {
            // A lock that cannot be given up only keeps the log from being removed.
            let _ = self.set(F_UNLCK);
        }

        fn set(&self, kind: c_int) -> nix::Result<()> {
            let (l_start, l_len) = SHARED_BYTES;
            let lock = flock { l_type: kind as _, l_whence: SEEK_SET as _, l_start, l_len, l_pid: 0 };
            fcntl(&self.file, FcntlArg::F_OFD_SETLK(&lock)).map(|_| ())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::{Duration, Header, Path, StoreError};

    /// Nothing: there is no lock to take, and opening the file to read its header would drop SQLite's own.
    #[derive(Debug)]
    pub struct Guard;

    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as on Linux")]
    impl Guard {
        pub fn open(_: &Path) -> Result<Self, StoreError> {
            Ok(Self)
        }

        pub fn header(&self) -> Result<Option<Header>, StoreError> {
            Ok(None)
        }

        pub fn lock(&self, _: Duration) -> Result<(), StoreError> {
            Ok(())
        }

        pub fn unlock(&self) {}
    }
}
