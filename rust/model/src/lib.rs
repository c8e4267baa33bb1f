//! The words and rules of memkura.
//!
//! This crate is pure: it opens no file, speaks no SQL, starts no thread and never reads a clock. It says what a
//! memory is, which values are legal, what a filter means and how two legs of a search become one order. Every other
//! crate depends on it; it depends on none of ours.
//!
//! ```
//! use memkura_model::{Draft, Timestamp};
//!
//! let draft = Draft { summary: "Deploys go out on Tuesdays".into(), ..Draft::default() };
//! assert!(draft.check().is_ok());
//! assert_eq!(Timestamp::parse("2030-01-16T00:00:00+09:00").unwrap().to_string(), "2030-01-15T15:00:00.000000Z");
//! ```

mod change;
mod clock;
mod context;
mod delivery;
mod drawer;
mod duplicate;
mod error;
pub mod filter;
mod id;
pub mod limits;
mod memory;
mod metadata;
mod part;
pub mod recall;
mod text;
mod trust;

pub use change::{Action, Change};
pub use clock::{SteadyClock, Timestamp};
pub use context::{Context, check_context_name};
pub use delivery::DeliveryMode;
pub use drawer::folded_key;
pub use duplicate::{exact_hash, fingerprint, is_same_text, plain_words};
pub use error::{Invalid, InvalidKind};
pub use filter::Filter;
pub use id::{IdSource, MemoryId};
pub use memory::{Draft, Memory, Patch, Status, is_exempt_from_ageing};
pub use metadata::Metadata;
pub use part::{PART_BYTES_MIN, parts};
pub use text::{check_normalised, fold, repaired};
pub use trust::{Door, Origin, SourceType, Tier};
