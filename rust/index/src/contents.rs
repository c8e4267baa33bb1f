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

/// Reads a whole file that must be what was written.
///
/// # Errors
/// When it cannot be read, or is another file.
pub(crate) fn read_whole(path: &Path, sum: FileSum) -> Result<Vec<u8>, IndexError> {
    let mut file = open_regular(path)?;
    let mut bytes = vec![0; room_for(&file, path, sum.bytes)?];
    let mut hasher = crc32fast::Hasher::new();
    read_summed(&mut file, &mut hasher, &mut bytes)?;
    if hasher.finalize() == sum.crc { Ok(bytes) } else { Err(damaged(path)) }
}

/// Fills `bytes` from `file`, and sums up each piece while it is still in the cache.
pub(crate) fn read_summed(file: &mut File, hasher: &mut crc32fast::Hasher, bytes: &mut [u8]) -> std::io::Result<()> {
    for chunk in bytes.chunks_mut(CHUNK) {
        file.read_exact(chunk)?;
        hasher.update(chunk);
    }
    Ok(())
}

/// Opens a file for reading. Anything else of that name could keep whoever opens it waiting for ever.
pub(crate) fn open_regular(path: &Path) -> Result<File, IndexError> {
    if path.symlink_metadata()?.is_file() { Ok(File::open(path)?) } else { Err(damaged(path)) }
}

/// The file's length, when it is `bytes`: no more memory is asked for than there are bytes on the disk.
pub(crate) fn room_for(file: &File, path: &Path, bytes: u64) -> Result<usize, IndexError> {
    let is_right = file.metadata()?.len() == bytes;
    usize::try_from(bytes).ok().filter(|_| is_right).ok_or_else(|| damaged(path))
}

pub(crate) fn damaged(path: &Path) -> IndexError {
    IndexError::Sealed(format!("{} is not what was written", path.display()))
}
