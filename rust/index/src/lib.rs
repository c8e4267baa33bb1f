//! Copies of the record for speed: delete them and lose nothing.
//!
//! A [`Partition`] is the index of one context: postings, vectors and bitmaps that follow the record row by row. It opens
//! no database and knows no other context; whatever it holds can be made again from the record.
//!
//! ```
//! use memkura_index::tokens::analyse_query;
//!
//! let terms: Vec<_> = analyse_query("getUserById").into_iter().map(|term| term.term).collect();
//! assert!(terms.contains(&"getuserbyid".to_owned()));
//! ```

mod bits;
mod build;
mod column;
mod contents;
mod error;
mod facets;
mod keys;
mod lists;
mod mapped;
mod numbers;
mod partition;
mod search;
mod sessions;
mod snapshot;
mod text;
pub mod tokens;
mod top;
pub mod vector;

pub use bits::{Among, Bits};
pub use build::Build;
pub use contents::{Contents, FileSum, crc_of, sum_up};
pub use error::IndexError;
pub use partition::{ListOrder, OutOfOrder, Partition};
pub use search::{Found, Query, Results};
pub use snapshot::{Snapshot, Written};
pub use text::TermShare;
