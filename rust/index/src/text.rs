//! The text leg: which memories share words with a query, over a fresh and a sealed part as one index.
//!
//! New documents go to a posting table in memory and can be found at once ([`fresh`]). From time to time all of them are
//! sealed into one immutable tantivy segment ([`sealed`]). A search walks the postings of both parts term by term and
//! scores them with one set of statistics, taken from the live documents alone, so that where a document lies, and
//! what was deleted before, changes no score (I3).

mod fresh;
mod postings;
mod score;
mod sealed;
mod terms;

pub use postings::TextIndex;
pub use score::{TermShare, TextScores};
pub use sealed::{Sealed, SealedDocument, ToSeal};
