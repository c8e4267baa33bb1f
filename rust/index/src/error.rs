//! What can go wrong with an index. None of it loses data: an index is a copy.

use crate::vector::VectorError;

/// A failure of an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// A vector cannot be taken.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// The sealed part could not be written or read. Delete it: it is made again from the record.
    #[error("sealed text index: {0}")]
    Sealed(String),
}

impl From<tantivy::TantivyError> for IndexError {
    fn from(error: tantivy::TantivyError) -> Self {
        Self::Sealed(error.to_string())
    }
}

impl From<std::io::Error> for IndexError {
    fn from(error: std::io::Error) -> Self {
        Self::Sealed(error.to_string())
    }
}
