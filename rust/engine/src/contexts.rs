//! Contexts: made by name on first use, or explicitly with an origin.

use memkura_model::{Context, Invalid, Origin, Timestamp, check_context_name};

use crate::open::{read, write};
use crate::{Engine, EngineError};

/// The scope of a key that names none.
pub const DEFAULT_SCOPE: &str = "workspace";

impl Engine {
    /// Makes a context with an origin. Making it again with the same origin is harmless.
    ///
    /// # Errors
    /// When the name cannot be taken, or the context has another origin.
    pub fn create_context(&self, name: &str, origin: Origin, now: Timestamp) -> Result<(), EngineError> {
        let _inside = self.enter()?;
        check_context_name(name)?;
        let now = self.steady(now);
        let context = self.record.write(|writer| Ok::<_, EngineError>(writer.context_or_new(name, origin, now)?))?;
        if context.origin == origin {
            return Ok(());
        }
        Err(Invalid::value(
            "origin",
            format!("differs from the context's, {}", context.origin.as_str()),
            origin.as_str(),
            "An origin never changes; make another context",
        )
        .into())
    }

    /// Every context, by name.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn list_contexts(&self) -> Result<Vec<Context>, EngineError> {
        let _inside = self.enter()?;
        self.record.read(|reader| Ok(reader.contexts()?))
    }

    /// The context called `name`; `None` when nothing was ever written to it.
    pub(crate) fn context(&self, name: &str) -> Result<Option<Context>, EngineError> {
        if let Some(context) = read(&self.contexts).get(name) {
            return Ok(Some(context.clone()));
        }
        check_context_name(name)?;
        let found = self.record.read(|reader| Ok::<_, EngineError>(reader.context(name)?))?;
        if let Some(context) = &found {
            // A context is never renamed or removed, so what was read once stays true.
            write(&self.contexts).insert(name.to_owned(), context.clone());
        }
        Ok(found)
    }
}
