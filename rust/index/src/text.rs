//! The text leg: which memories share words with a query, over a fresh and a sealed part as one index.
//!
//! ```text
//! text ─▶ tokens ─▶ vocabulary (a number for each term) ─▶ documents (what each says) ─▶ postings (where each term is)
//! query ─▶ asked (what its terms are worth) ─▶ search (the best) ◀─ neighbours (what turns lend each other)
//! ```
//!
//! New documents go to the [`fresh`] part and can be found at once. From time to time all of them become one [`sealed`] part
//! that is mapped from a file. A search reads both with one set of statistics, taken from the live documents alone, so
//! that where a document lies, and what was deleted before, changes no score (I3).

mod asked;
mod documents;
mod fresh;
mod index;
mod neighbours;
mod postings;
mod score;
mod sealed;
mod search;
mod vocabulary;

pub use index::{Analysed, TextIndex};
pub use score::TermShare;
pub use sealed::{Sealed, ToSeal};
pub use search::Matches;
