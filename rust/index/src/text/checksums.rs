//! What each file of a sealed part was when it was written.
//!
//! tantivy checks its files too, but reads them first: a file that was cut off, or whose end says something else, is not
//! refused, it panics. So nothing is given to tantivy that is not, byte for byte, what it wrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::IndexError;

/// The length and the CRC-32 of each file, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checksums(pub BTreeMap<String, (u64, u32)>);

impl Checksums {
    /// Those of every file in `folder` as it is now.
    ///
    /// # Errors
    /// When a file cannot be read, or has a name that is no text.
    pub fn of(folder: &Path) -> Result<Self, IndexError> {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string();
            let name = name.map_err(|_| IndexError::Sealed("a file has a name that is no text".to_owned()))?;
            // A lock comes and goes.
            let path = entry.path();
            if entry.file_type()?.is_file() && path.extension().is_none_or(|ending| ending != "lock") {
                files.insert(name, checksum(&path)?);
            }
        }
        Ok(Self(files))
    }

    /// Refuses a folder in which any of these files is missing or another.
    pub(super) fn check(&self, folder: &Path) -> Result<(), IndexError> {
        for (name, expected) in &self.0 {
            // A name must not lead out of the folder.
            let is_plain = Path::new(name).file_name().is_some_and(|file| file == name.as_str());
            if !is_plain || checksum(&folder.join(name))? != *expected {
                return Err(IndexError::Sealed(format!("{name} is damaged")));
            }
        }
        Ok(())
    }
}

fn checksum(path: &Path) -> Result<(u64, u32), IndexError> {
    let mut file = File::open(path)?;
    let mut hash = crc32fast::Hasher::new();
    let mut piece = vec![0; 64 << 10];
    let mut length = 0;
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((length, hash.finalize())),
            read => {
                hash.update(&piece[..read]);
                length += read as u64;
            }
        }
    }
}
