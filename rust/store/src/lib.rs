//! The record of memkura: the truth that every index is a copy of.
//!
//! One SQLite database holds rows, vectors, revisions and a numbered change log. This is the only crate that speaks
//! SQL. It keeps rows and knows nothing of relevance, embedders or threads' wishes; the verbs live in
//! `memkura-engine`.
//!
//! ```
//! use memkura_store::{Options, Record};
//!
//! let record = Record::open(":memory:", Options::default()).unwrap();
//! assert_eq!(record.read(|reader| reader.last_change()).unwrap(), 0);
//! ```

mod error;
mod patience;
mod sqlite;

pub use error::StoreError;
pub use patience::patiently;
pub use sqlite::{
    Durability, Embedder, EmbedderState, Options, PendingEmbedding, Reader, Record, Reserved, Revision, Totals, Writer,
    private_file, restore, sqlite_version, sync_folder,
};
