//! Some room that is kept for forgetting: on a full disk it takes a write to give any back.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Enough for the log of a transaction that forgets, and for the memory that its readers share: each page once.
const BYTES: usize = 512 << 10;

/// Sees that the room is taken. Where there is none now, it is taken when the store is opened or maintained again.
pub fn keep(database: &Path) {
    let path = path(database);
    if path.exists() {
        return;
    }
    let mut new = OpenOptions::new();
    new.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut new, 0o600);
    let written = new.open(&path).and_then(|mut file: File| file.write_all(&vec![0; BYTES]));
    if written.is_err() {
        spend(database);
    }
}

/// Gives the room back. What cannot be removed was not there, or is missed by nobody.
pub fn spend(database: &Path) {
    let _ = std::fs::remove_file(path(database));
}

fn path(database: &Path) -> PathBuf {
    database.with_file_name("reserve")
}
