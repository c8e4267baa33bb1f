//! The record in SQLite.

mod backup;
mod columns;
mod connection;
mod embedding;
mod filesystem;
mod guard;
mod leavings;
mod log;
mod migrate;
mod reader;
mod record;
mod reserve;
mod round;
mod shared_memory;
mod writer;

pub use backup::restore;
pub use connection::{Durability, Options, private_file, sqlite_version, sync_folder};
pub use embedding::{Embedder, EmbedderState, PendingEmbedding};
pub use reader::{Reader, Revision, Totals};
pub use record::Record;
pub use reserve::Reserved;
pub use writer::Writer;
