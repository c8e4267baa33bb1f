//! What can go wrong with a verb.

use memkura_index::IndexError;
use memkura_index::vector::VectorError;
use memkura_model::{Invalid, InvalidKind, MemoryId};
use memkura_store::StoreError;

/// A failure of a verb. Nothing was written, unless the verb's own page says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// An argument cannot be taken.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store has no context of this name.
    #[error("no context is called {0:?}")]
    UnknownContext(String),
    /// No such memory in this context. One of another context counts as none, to the letter.
    #[error("there is no memory {id} in this context")]
    NotFound {
        /// The argument that names it.
        field: String,
        /// The id that was asked for.
        id: MemoryId,
    },
    /// An outside writer may not overwrite a trusted key.
    #[error("the key {key:?} names a trusted memory, which an outside source may not overwrite")]
    KeyTaken {
        /// The argument that names the memory.
        field: String,
        /// Its key, or its id when it has none.
        key: String,
    },
    /// The engine was closed.
    #[error("the store was closed")]
    Closed,
    /// The record could not do what was asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An index could not do what was asked; it is made again from the record.
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl EngineError {
    /// There is no memory `id` in the context.
    #[must_use]
    pub fn not_found(id: MemoryId) -> Self {
        Self::named_nothing("memory_id", id)
    }

    /// The argument `field` names the memory `id`, which is not in the context.
    #[must_use]
    pub fn named_nothing(field: &str, id: MemoryId) -> Self {
        Self::NotFound { field: field.to_owned(), id }
    }

    /// The same fault in the item at `at` of several.
    #[must_use]
    pub fn in_item(self, at: usize) -> Self {
        match self {
            Self::Invalid(invalid) => invalid.in_item(at).into(),
            Self::NotFound { field, id } => Self::NotFound { field: format!("[{at}].{field}"), id },
            Self::KeyTaken { field, key } => Self::KeyTaken { field: format!("[{at}].{field}"), key },
            error => error,
        }
    }
}

/// A vector that a caller gave is an argument like any other.
pub fn invalid_vector(field: &str, error: &VectorError) -> Invalid {
    Invalid::new(
        InvalidKind::Vector,
        field,
        error.to_string(),
        "a vector",
        "Give finite vectors of the store's dimension",
    )
}
