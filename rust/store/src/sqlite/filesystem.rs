//! What the file system below a store is like.

use std::path::Path;

#[cfg(target_os = "linux")]
use super::connection::DATABASE;
#[cfg(target_os = "linux")]
use super::log::beside;
use crate::StoreError;

/// The name of the network file system that `folder` lies on, as far as the system tells; `None` on a local one.
///
/// A write-ahead log needs memory that every process shares and locks that all of them obey; network file systems have
/// neither between machines. FUSE is not among them: it says nothing of where the files are.
#[cfg(target_os = "linux")]
pub fn network(folder: &Path) -> Option<&'static str> {
    // The type differs between architectures, the numbers have 32 bits.
    named(nix::sys::statfs::statfs(folder).ok()?.filesystem_type().0 as u32)
}

#[cfg(target_os = "linux")]
fn named(magic: u32) -> Option<&'static str> {
    NETWORK.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

/// Magic numbers of statfs(2).
#[cfg(target_os = "linux")]
const NETWORK: &[(u32, &str)] = &[
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb2"),
    (0x0102_1997, "9p"),
    (0x5346_414F, "afs"),
    (0x7375_7245, "coda"),
    (0x00C3_6400, "ceph"),
    (0x0BD0_0BD0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x0116_1970, "gfs2"),
    (0x7461_636F, "ocfs2"),
    (0x786F_4256, "vboxsf"),
];

#[cfg(not(target_os = "linux"))]
pub fn network(_: &Path) -> Option<&'static str> {
    None
}

/// Whether the file system that `path` lies on is mounted read-only. Asked without opening the file, since closing it would
/// drop the locks of every connection to it.
#[cfg(target_os = "linux")]
pub fn is_read_only(path: &Path) -> bool {
    use nix::sys::statvfs::{FsFlags, statvfs};
    statvfs(path).is_ok_and(|found| found.flags().contains(FsFlags::ST_RDONLY))
}

#[cfg(not(target_os = "linux"))]
pub fn is_read_only(_: &Path) -> bool {
    false
}

/// Bytes that can still be written beside `path`; `None` when the system does not tell.
#[cfg(unix)]
pub fn room(path: &Path) -> Option<u64> {
    let found = nix::sys::statvfs::statvfs(path).ok()?;
    // Their widths differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "not on every system")]
    Some((found.blocks_available() as u64).saturating_mul(found.fragment_size() as u64))
}

#[cfg(not(unix))]
pub fn room(_: &Path) -> Option<u64> {
    None
}

/// Refuses the store in `folder` when this process may not write there, or not read and write a file that SQLite needs. Said
/// before anything is opened: SQLite would read what it can, and fail at some later write. Reading alone needs to write
/// too, to where processes say what they read, unless nobody at all can write.
#[cfg(target_os = "linux")]
pub fn see_permitted(folder: &Path) -> Result<(), StoreError> {
    use nix::errno::Errno;
    use nix::unistd::{AccessFlags, eaccess};

    if !folder.is_dir() {
        return Ok(());
    }
    let see = |path: &Path, wanted: AccessFlags| match eaccess(path, wanted) {
        Err(Errno::EACCES | Errno::EPERM) => Err(StoreError::NotPermitted(path.display().to_string())),
        _ => Ok(()),
    };
    see(folder, AccessFlags::W_OK | AccessFlags::X_OK)?;
    let database = folder.join(DATABASE);
    ["", "-wal", "-shm"]
        .into_iter()
        .try_for_each(|suffix| see(&beside(&database, suffix), AccessFlags::R_OK | AccessFlags::W_OK))
}

#[cfg(not(target_os = "linux"))]
pub fn see_permitted(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// A share is known by its number; a local disk has no such name.
    #[test]
    fn shares_have_names() {
        assert_eq!(named(0x6969), Some("nfs"));
        assert_eq!(named(0xFF53_4D42), Some("cifs"));
        for local in [0xEF53, 0x0102_1994, 0x9123_683E, 0x5846_5342] {
            assert_eq!(named(local), None);
        }
        assert!(network(Path::new("/proc")).is_none());
    }
}
