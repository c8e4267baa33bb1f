//! The files of a sealed index, each with its length and checksum: one byte that differs is enough to make it all again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::IndexError;

/// The length and the CRC-32 of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSum {
    /// Its length.
    pub bytes: u64,
    /// Its checksum.
    pub crc: u32,
}

/// Every file of a sealed index, by name.
pub type Contents = BTreeMap<String, FileSum>;

/// Bytes read at a time: they fit the second-level cache.
const CHUNK: usize = 256 << 10;

/// The checksum of a text.
#[must_use]
pub fn crc_of(text: &str) -> u32 {
    crc32fast::hash(text.as_bytes())
}

/// Sums up every file in `folder`.
///
/// # Errors
/// When one cannot be read, or has no name in Unicode.
pub fn sum_up(folder: &Path) -> Result<Contents, IndexError> {
    let mut contents = Contents::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| damaged(&entry.path()))?;
        contents.insert(name, sum_of(&entry.path())?);
    }
    Ok(contents)
}

/// The sum of one file, as it is.
pub(crate) fn sum_of(path: &Path) -> Result<FileSum, IndexError> {
    let mut file = open_regular(path)?;
    let (mut hasher, mut bytes, mut chunk) = (crc32fast::Hasher::new(), 0, vec![0; CHUNK]);
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(FileSum { bytes, crc: hasher.finalize() });
        }
        hasher.update(&chunk[..read]);
        bytes += read as u64;
    }
}

/// Opens a file for reading. Anything else of that name could keep whoever opens it waiting for ever.
pub(crate) fn open_regular(path: &Path) -> Result<File, IndexError> {
    if path.symlink_metadata()?.is_file() { Ok(File::open(path)?) } else { Err(damaged(path)) }
}

pub(crate) fn damaged(path: &Path) -> IndexError {
    IndexError::Sealed(format!("{} is not what was written", path.display()))
}
