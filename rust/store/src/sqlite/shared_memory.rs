//! Locks of the write-ahead log that nothing else in the process can drop.
//!
//! Who writes, who reads up to where and whether anybody is there at all is agreed upon by locks on a few bytes of the
//! `-shm` file. SQLite takes them with `F_SETLK`: for the process as a whole, so that whatever closes any descriptor of that
//! file (Python's own `sqlite3`, a checksum, a copy) drops them all, and two processes then write the log at once. On Linux
//! we let SQLite take the same locks for its open file description instead. They mean the same to every other process,
//! whichever way that takes its own, and last until SQLite gives them up or closes its own descriptor.
//!
//! That is right for this file alone: SQLite has one descriptor of it for each database and process, and counts what its
//! connections hold itself. The locks of the database file span the descriptors of all connections, and stay as they are;
//! [`super::guard`] stands in for those.

/// Lets SQLite lock its shared memory for the open file description. Called before every first use of a file; acts once.
pub fn keep_locks() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    platform::keep_locks();
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod platform {
    use std::ffi::{c_int, c_void};
    use std::ops::RangeInclusive;
    use std::sync::Once;

    use nix::errno::Errno;
    use nix::libc::{self, F_GETLK, F_OFD_GETLK, F_OFD_SETLK, F_SETLK, SEEK_SET, flock, off_t};
    use rusqlite::ffi;

    /// `UNIX_SHM_BASE` to `UNIX_SHM_DMS` of SQLite's `os_unix.c`, part of its file format. It locks no other file there.
    const LOCKS: RangeInclusive<off_t> = 120..=128;

    type Control = unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int;

    pub fn keep_locks() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            #[expect(unsafe_code, reason = "SQLite's system calls are overridden through its C interface alone")]
            // SAFETY: the default VFS lives as long as the process, and is ours alone: SQLite is linked in. Its version
            // says whether it has the method. No connection is open yet, so that no other thread makes the call that is
            // replaced. SQLite casts the pointer to `int (*)(int, int, ...)`; see `controlled` for why that is what it is.
            unsafe {
                let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
                if let Some(vfs) = vfs.as_mut()
                    && vfs.iVersion >= 3
                    && let Some(replace) = vfs.xSetSystemCall
                {
                    let ours = std::mem::transmute::<Control, unsafe extern "C" fn()>(controlled);
                    replace(vfs, c"fcntl".as_ptr(), Some(ours));
                }
            }
        });
    }

    /// SQLite's `fcntl`. It passes three arguments always, the third of which is a number or a pointer; on 64-bit Linux those
    /// arrive the same way whether or not the function was declared with a variable number of them.
    #[expect(unsafe_code, reason = "called by SQLite, with C's own types")]
    unsafe extern "C" fn controlled(file: c_int, command: c_int, argument: *mut c_void) -> c_int {
        let described = match command {
            F_SETLK => Some(F_OFD_SETLK),
            F_GETLK => Some(F_OFD_GETLK),
            _ => None,
        };
        if let Some(described) = described {
            // SAFETY: with these two commands the argument is a `struct flock` of the caller, which nobody else uses
            // meanwhile.
            let lock = unsafe { &mut *argument.cast::<flock>() };
            if c_int::from(lock.l_whence) == SEEK_SET && LOCKS.contains(&lock.l_start) {
                // The system insists on it; with the plain commands it says nothing.
                lock.l_pid = 0;
                // SAFETY: as the plain call below; the lock is a `struct flock` still.
                let answer = unsafe { libc::fcntl(file, described, &raw mut *lock) };
                if answer != -1 || Errno::last() != Errno::EINVAL {
                    return answer;
                }
                // Where the system knows no such locks, those of the process are what there is.
            }
        }
        // SAFETY: the caller's own call, handed on as it is.
        unsafe { libc::fcntl(file, command, argument) }
    }
}
