//! The vector leg: which memories lie nearest to a query, exactly and under any filter.
//!
//! Each vector is normalised once and kept three times: as signs, as i8 codes and as f32. A
//! search reads the cheapest of them that still finds the right hits, and scores those by f32:
//!
//! - few matches, or nearly all wanted: every match by f32;
//! - up to some ten thousand matches: i8 codes, whose error bound makes the result exact;
//! - more: estimates from signs, with the error that each may have, leave those that are likely enough
//!   to be hits, and codes rank these; if that leaves too many, the codes of all matches are read.
//!
//! This is a copy for speed. It holds no text and knows no filter but the bitmap that it is given.
//! A snapshot ([`kept`]) keeps all three forms, so that none is made twice.
//!
//! ```
//! use memkura_index::vector::{UnitQuery, Vectors};
//!
//! let mut vectors = Vectors::new(2);
//! vectors.put(0, &[3.0, 4.0])?;
//! vectors.put(1, &[1.0, 0.0, 0.0, 1.0])?; // one memory, two rows: the nearer one counts
//! let query = UnitQuery::new(&[0.0, 2.0], 2)?;
//! let found = vectors.search(&query, None, 10, 10);
//! assert_eq!(found.hits, [(1, 1.0), (0, 0.8)]);
//! # Ok::<(), memkura_index::vector::VectorError>(())
//! ```

mod best;
mod cells;
mod codes;
mod error;
#[cfg(test)]
mod gate;
pub(crate) mod kept;
#[expect(unsafe_code, reason = "SIMD loads and prefetches have no safe form")]
mod kernels;
mod limits;
mod plan;
mod rows;
mod scan;
mod search;
mod shortlist;
mod signs;
mod table;
mod unit;
mod vectors;
mod walk;

pub use error::VectorError;
pub use limits::{DIMENSIONS_MAX, ORDINAL_MAX};
pub use plan::{Plan, Tier};
pub use search::Search;
pub use unit::{UnitQuery, normalise};
pub use vectors::Vectors;

/// The instruction set that this processor's kernels were chosen for.
#[must_use]
pub fn kernel_name() -> &'static str {
    kernels::kernels().name
}
