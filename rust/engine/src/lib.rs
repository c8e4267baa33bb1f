//! The verbs of memkura: the only crate that knows both the record and its indexes.
//!
//! A write goes to the record first and is durable when it is acknowledged; the indexes then follow the record's change
//! log. A read looks whether anyone has written, catches up, and searches. Nothing here calls an embedder: vectors come
//! in as arguments, so no lock is ever held across somebody else's code.
//!
//! ```
//! use memkura_engine::{Engine, OpenOptions, Recall};
//! use memkura_model::{Door, Draft, Timestamp};
//!
//! let now = Timestamp::parse("2030-01-15T12:00:00Z").unwrap();
//! let engine = Engine::open(":memory:", OpenOptions::default(), now).unwrap();
//! let draft = Draft { context_id: "ops".into(), summary: "Deploys go out on Tuesdays".into(), ..Draft::default() };
//! let receipt = engine.remember(draft, Default::default(), Door::Python, now).unwrap();
//!
//! let recall = Recall { query: Some("when do deploys go out".into()), ..Recall::default() };
//! let found = engine.recall("ops", &recall, now).unwrap();
//! assert_eq!(found.hits[0].memory.memory_id, receipt.memory_id);
//! ```

mod catch_up;
mod contexts;
mod error;
mod explain;
mod forget;
mod gate;
mod health;
mod open;
mod read;
mod recall;
mod reindex;
mod remember;
mod seal;
mod stats;
mod transfer;
mod trust;
mod update;

pub use contexts::DEFAULT_SCOPE;
pub use error::EngineError;
pub use explain::Explanation;
pub use forget::Selection;
pub use health::Health;
pub use memkura_index::ListOrder;
pub use memkura_store::{Durability, Options as RecordOptions, Revision, StoreError, restore, sqlite_version};
pub use open::{Engine, OpenOptions, open_engines};
pub use read::{History, Page};
pub use recall::{Hit, Legs, Recall, Recalled};
pub use reindex::{EmbedderStatus, ReindexProgress};
pub use remember::{Embedding, Receipt, check_vectors};
pub use stats::Stats;
pub use transfer::{Drafted, Kept, Leaving, Named, Standing, Taken};
