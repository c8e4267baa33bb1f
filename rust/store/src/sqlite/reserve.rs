//! Some room that is kept for forgetting: on a full disk it takes a write to give any back.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::connection::private_file;

/// Enough for the log of a transaction that forgets, and for the memory that its readers share: each page once.
const BYTES: usize = 512 << 10;

/// Sees that the room is taken. Where there is none now, it is taken when the store is opened or maintained again.
pub fn keep(database: &Path) {
    let path = path(database);
    if path.exists() {
        return;
    }
    let written = private_file().create_new(true).open(&path).and_then(|mut file| file.write_all(&vec![0; BYTES]));
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
