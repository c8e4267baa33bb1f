//! Whether a store is sound: the record by itself, and the indexes beside it.

use std::path::Path;

use memkura_index::Partition;
use memkura_model::Context;

use crate::open::{locked, read};
use crate::{Engine, EngineError};

/// What an examination of a store found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// What is wrong with the record.
    pub problems: Vec<String>,
    /// Memories that an index shows otherwise than the record does.
    pub drift: usize,
    /// Memories that were compared.
    pub compared: usize,
}

impl Engine {
    /// Writes everything that was committed before into one new file at `destination`, while others go on writing.
    ///
    /// # Errors
    /// When something is there already, or a file cannot be written.
    pub fn back_up(&self, destination: &Path) -> Result<(), EngineError> {
        let _inside = self.enter()?;
        Ok(self.record.back_up(destination)?)
    }

    /// What is wrong with the record, as far as its database can tell; nothing in a sound one. Reads all of it.
    ///
    /// # Errors
    /// When the record cannot be read at all, or its schema is not ours.
    pub fn verify(&self) -> Result<Vec<String>, EngineError> {
        let _inside = self.enter()?;
        Ok(self.record.verify()?)
    }

    /// Examines the record, and compares every index with one that is made afresh from the record.
    ///
    /// # Errors
    /// As [`Engine::verify`].
    pub fn examine(&self) -> Result<Health, EngineError> {
        let _inside = self.enter()?;
        let mut health = Health { problems: self.record.verify()?, ..Health::default() };
        for context in self.record.read(|reader| Ok::<_, EngineError>(reader.contexts()?))? {
            let (drift, compared) = self.drift(&context)?;
            health.drift += drift;
            health.compared += compared;
        }
        Ok(health)
    }

    fn drift(&self, context: &Context) -> Result<(usize, usize), EngineError> {
        /// Others may write between the making of one index and the catching up of the other.
        const TRIES: usize = 3;
        let mut outcome = (0, 0);
        for _ in 0..TRIES {
            let bound = locked(&self.following).bound.clone();
            let afresh = self.build(context, bound.as_ref())?;
            self.catch_up()?;
            let loaded = self.partition(context)?;
            let afresh: &Partition = &read(&afresh.partition);
            outcome = (read(&loaded.partition).differences(afresh).len(), afresh.len());
            if outcome.0 == 0 {
                break;
            }
        }
        Ok(outcome)
    }
}
