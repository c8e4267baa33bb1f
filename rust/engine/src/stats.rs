//! What a store holds, and its upkeep.

use memkura_model::{Door, Timestamp};
use memkura_store::Totals;

use crate::open::read;
use crate::seal::CHANGES_KEPT;
use crate::{Engine, EngineError};

/// What a store, or one context of it, holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// What the record holds.
    pub totals: Totals,
    /// Contexts.
    pub contexts: usize,
    /// Contexts whose index is in memory.
    pub loaded: usize,
    /// Texts in the fresh parts of loaded indexes.
    pub fresh: usize,
    /// Texts in the sealed parts of loaded indexes.
    pub sealed: usize,
    /// Vectors in loaded indexes.
    pub embedded: usize,
}

impl Engine {
    /// Counts what the store holds; with `context_id`, one context alone.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn stats(&self, context_id: Option<&str>, now: Timestamp) -> Result<Stats, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        self.catch_up()?;
        let context = context_id.map(|name| self.context(name)).transpose()?;
        if let Some(None) = context {
            return Ok(Stats::default());
        }
        let context = context.flatten();
        let mut stats = self.record.read(|reader| {
            let contexts = if context.is_some() { 1 } else { reader.contexts()?.len() };
            Ok::<_, EngineError>(Stats { totals: reader.totals(context.as_ref(), now)?, contexts, ..Stats::default() })
        })?;
        let wants_vectors = self.wanted().is_some() || crate::open::locked(&self.following).bound.is_some();
        if !wants_vectors {
            stats.totals.unembedded = 0;
        }
        for (number, loaded) in &*read(&self.partitions) {
            if context.as_ref().is_some_and(|context| context.number != *number) {
                continue;
            }
            let partition = read(&loaded.partition);
            let (fresh, sealed) = partition.text_parts();
            stats.loaded += 1;
            stats.fresh += fresh;
            stats.sealed += sealed;
            stats.embedded += partition.embedded();
        }
        Ok(stats)
    }

    /// Purges what was forgotten or has expired, gives space back to the file system and seals the text of every context.
    /// Afterwards no byte of what was forgotten, purged or had expired is left in any file of the store (I12). Returns the number of contexts sealed.
    ///
    /// # Errors
    /// When another process keeps the record busy, or a file cannot be written.
    pub fn compact(&self, door: Door, now: Timestamp) -> Result<usize, EngineError> {
        let _inside = self.enter()?;
        self.record.see_writable()?;
        self.purge_gone(door, self.steady(now))?;
        let sealed = self.seal_everything()?;
        self.record.write(|writer| Ok::<_, EngineError>(writer.trim_changes(CHANGES_KEPT)?))?;
        self.record.compact()?;
        Ok(sealed)
    }

    /// Routine upkeep: empties the record's log into it and seals what has grown large. Returns the number of contexts sealed.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn maintain(&self) -> Result<usize, EngineError> {
        let _inside = self.enter()?;
        self.catch_up()?;
        self.record.tidy()?;
        self.seal_loaded()
    }
}
