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
mod error;
mod facets;
mod keys;
mod partition;
mod search;
mod sessions;
mod text;
pub mod tokens;
pub mod vector;

pub use error::IndexError;
pub use partition::{ListOrder, OutOfOrder, Partition};
pub use search::{Found, Query, Results};
pub use text::{Checksums, Sealed, SealedDocument, TermShare, ToSeal};
