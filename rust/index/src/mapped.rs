//! Files that are mapped into memory instead of being read: the system fetches what is asked for, shares it between
//! processes, and takes the memory back when it is short.

use std::fs::File;
use std::path::Path;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::IndexError;
use crate::contents::{FileSum, damaged, open_regular};

/// A mapped file.
///
/// No file of a sealed index is ever written again once it has its name, and one that is removed while it is mapped lives
/// until the mapping goes. Who cuts such a file short by hand ends the process with the signal SIGBUS at the next read
/// beyond its end. That is left so, as it is for the mapped postings: the folder is its owner's alone, a file that was cut
/// before is refused when it is opened, and to read everything instead would cost each process the memory and the time that
/// mapping saves.
#[derive(Debug)]
pub struct Mapped(Option<Mmap>);

impl Mapped {
    /// Maps `path`, once it has been found to be what was written.
    ///
    /// # Errors
    /// When it cannot be mapped, or is another file.
    pub fn open(path: &Path, sum: FileSum) -> Result<Self, IndexError> {
        let file = open_regular(path)?;
        if file.metadata()?.len() != sum.bytes {
            return Err(damaged(path));
        }
        // Nothing cannot be mapped everywhere.
        let mapped = Self(if sum.bytes == 0 { None } else { Some(map(&file)?) });
        let bytes = mapped.bytes();
        if bytes.len() as u64 == sum.bytes && crc32fast::hash(bytes) == sum.crc {
            Ok(mapped)
        } else {
            Err(damaged(path))
        }
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The `count` numbers from byte `start` on, in this machine's order of bytes; `None` when they are not all there, or
    /// do not stand where such numbers can.
    pub fn numbers<T: Pod>(&self, start: usize, count: usize) -> Option<&[T]> {
        let end = start.checked_add(count.checked_mul(size_of::<T>())?)?;
        let bytes = self.bytes().get(start..end)?;
        // An empty slice may stand anywhere.
        if bytes.is_empty() { Some(&[]) } else { bytemuck::try_cast_slice(bytes).ok() }
    }
}

#[expect(unsafe_code, reason = "a mapping has no safe form")]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the bytes are only read. That nobody changes them meanwhile is the rule of this folder (see `Mapped`). Only
    // numbers are made of them, and any bytes are valid ones: a breach gives wrong scores, never values that cannot be.
    unsafe { Mmap::map(file) }
}
