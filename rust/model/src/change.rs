//! The numbered change log: what an index follows.

use crate::MemoryId;

/// What happened to a memory, as its history tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It was written for the first time.
    Remember,
    /// Its text or fields changed.
    Update,
    /// A newer memory took its place.
    Supersede,
    /// It was retired: gone from every read but its history.
    Forget,
    /// It was erased; this entry carries no text.
    Purge,
}

impl Action {
    /// The name that the record and Python use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Remember => "remember",
            Self::Update => "update",
            Self::Supersede => "supersede",
            Self::Forget => "forget",
            Self::Purge => "purge",
        }
    }

    /// Reads [`Action::as_str`]; `None` on any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Remember, Self::Update, Self::Supersede, Self::Forget, Self::Purge]
            .into_iter()
            .find(|action| action.as_str() == text)
    }
}

/// One entry of the log: after change `number`, look again at this memory.
///
/// It says which row changed and not how: an index that reads the row as it is now is right whatever it has missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Grows by at least one from commit to commit.
    pub number: i64,
    /// The context's number.
    pub context: i64,
    /// The record's number for the row.
    pub row: i64,
    /// The memory's id.
    pub memory_id: MemoryId,
}
