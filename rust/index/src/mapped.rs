//! Numbers of a file that is mapped into memory instead of being read: the system fetches what is asked for, and gives
//! the memory back when it is short.

use std::path::Path;

use memmap2::Mmap;

use crate::IndexError;
use crate::contents::{FileSum, damaged, open_regular};

/// A file of f32, in this machine's order of bytes.
///
/// No file of a sealed index is ever written again once it has its name, and one that is removed while it is mapped lives
/// until the mapping goes. Who cuts such a file short by hand ends the process with the signal SIGBUS at the next read
/// beyond its end, as with the mapped postings. That is left so: the folder is its owner's alone, and the remedy, to
/// read all vectors into memory, would double what every process needs. Everything else of a snapshot is read, not mapped.
#[derive(Debug)]
pub struct Mapped(Mmap);

impl Mapped {
    /// Maps `path`, once it has been found to be what was written.
    ///
    /// # Errors
    /// When it cannot be mapped, or is another file.
    #[expect(unsafe_code, reason = "a mapping has no safe form")]
    pub fn open(path: &Path, sum: FileSum) -> Result<Self, IndexError> {
        let file = open_regular(path)?;
        if file.metadata()?.len() != sum.bytes || !sum.bytes.is_multiple_of(4) {
            return Err(damaged(path));
        }
        // SAFETY: the bytes are only read. That nobody changes them meanwhile is the rule of this folder (see above);
        // any bytes are valid f32, so that a breach of it can give wrong scores and never undefined values.
        let map = unsafe { Mmap::map(&file)? };
        if map.len() as u64 != sum.bytes || crc32fast::hash(&map) != sum.crc {
            return Err(damaged(path));
        }
        Ok(Self(map))
    }

    /// The numbers.
    pub fn floats(&self) -> &[f32] {
        // A mapping begins at a page, and its length was seen to be one of whole numbers.
        bytemuck::cast_slice(&self.0)
    }
}
