//! Whether a store is sound: the record by itself, and the indexes beside it.

use std::path::Path;
use std::sync::atomic::Ordering;

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

    /// Examines the record, and compares every index with one that is made afresh from the record. What others write
    /// meanwhile is left out of the comparison. Writes no file.
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
        /// Another process may cut off the log, or go over to another embedder, between the two indexes.
        const TRIES: usize = 3;
        let mut outcome = (0, 0);
        for _ in 0..TRIES {
            let bound = locked(&self.following).bound.clone();
            let afresh = self.build(context, bound.as_ref())?;
            self.catch_up()?;
            let loaded = self.partition_as_it_is(context)?;
            let position = afresh.position.load(Ordering::Acquire);
            let afresh: &Partition = &read(&afresh.partition);
            let differences = read(&loaded.partition).differences(afresh);
            // Asked last: whatever was written since the one index was made, the other one may show.
            let written = self.record.read(|reader| Ok::<_, EngineError>(reader.rows_changed(context, position)?))?;
            outcome = (differences.difference(&written).count(), afresh.len());
            if outcome.0 == 0 {
                break;
            }
        }
        Ok(outcome)
    }
}
