//! What can go wrong with an index. None of it loses data: an index is a copy.

use crate::vector::VectorError;

/// A failure of an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// A vector cannot be taken.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// There is no room for the sealed part. Nothing is missing without it.
    #[error("the disk is full")]
    Full,
    /// The sealed part could not be written or read. Delete it: it is made again from the record.
    #[error("sealed index: {0}")]
    Sealed(String),
}

impl From<std::io::Error> for IndexError {
    fn from(error: std::io::Error) -> Self {
        if is_full(&error) { Self::Full } else { Self::Sealed(error.to_string()) }
    }
}

/// Whether a disk, a quota or the largest file was full.
fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
