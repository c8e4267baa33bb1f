//! Why a vector was refused.

use super::limits::{DIMENSIONS_MAX, ORDINAL_MAX};

/// A vector that may not enter the index, or a query that may not be asked.
///
/// Nothing was changed when one of these is returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// The vector, or the last of several, has another length than the index holds. Embed the text
    /// with the embedder that the index was made for.
    #[error("a vector of {expected} numbers is needed, {found} were given")]
    WrongLength {
        /// Numbers in each vector of the index.
        expected: usize,
        /// Numbers that were given; for several rows at once, of all rows together.
        found: usize,
    },
    /// Every number is zero, so the vector has no direction to compare. Keep the text unembedded.
    #[error("vector {row} is all zeros and has no direction")]
    Zero {
        /// Which of the rows given, from 0.
        row: usize,
    },
    /// A number is NaN. The embedder failed on this text; keep it unembedded or embed it again.
    #[error("number {position} of vector {row} is NaN")]
    NotANumber {
        /// Which of the rows given, from 0.
        row: usize,
        /// Which number of that row, from 0.
        position: usize,
    },
    /// A number is infinite. The embedder failed on this text; keep it unembedded or embed it again.
    #[error("number {position} of vector {row} is infinite")]
    Infinite {
        /// Which of the rows given, from 0.
        row: usize,
        /// Which number of that row, from 0.
        position: usize,
    },
    /// The vector is longer than any index can hold. Choose an embedder with fewer dimensions.
    #[error("a vector of {found} numbers is given, at most {DIMENSIONS_MAX} are possible")]
    TooManyDimensions {
        /// Numbers in the vector.
        found: usize,
    },
    /// The ordinal is not a dense one. Number memories from 0 upwards.
    #[error("ordinal {ordinal} is given, at most {ORDINAL_MAX} is possible")]
    OrdinalTooLarge {
        /// The ordinal that was given.
        ordinal: u32,
    },
    /// The index has no row numbers left. Rebuild it with `compacted`.
    #[error("the index holds {rows} rows, dead ones included, and no more can be numbered")]
    Full {
        /// Rows that the index holds.
        rows: usize,
    },
}
