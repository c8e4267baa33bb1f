//! Reads that ask for no relevance: one memory, a page of them, a count, a history.

use memkura_index::ListOrder;
use memkura_model::limits::{CONTEXT_MEMORIES_MAX, K_MAX};
use memkura_model::{Filter, Invalid, Memory, MemoryId, Timestamp, folded_key};
use memkura_store::Revision;

use crate::contexts::DEFAULT_SCOPE;
use crate::open::read;
use crate::{Engine, EngineError};

/// Which part of a list is wanted, and in which order.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Most rows.
    pub limit: usize,
    /// Rows to pass over.
    pub offset: usize,
    /// What the list is ordered by; ties are ordered by id.
    pub order: ListOrder,
    /// Newest first.
    pub descending: bool,
}

/// What became of one memory.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Its states, oldest first; none of a purged memory.
    pub states: Vec<Revision>,
    /// When it was purged, and through which door.
    pub purged: Option<(Timestamp, String)>,
}

impl Engine {
    /// The memory with this id, or `None` when this context has none in use.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn get(&self, context_id: &str, id: MemoryId, now: Timestamp) -> Result<Option<Memory>, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        let Some(context) = self.context(context_id)? else { return Ok(None) };
        let memory = self.record.read(|reader| Ok::<_, EngineError>(reader.by_id(&context, id)?))?;
        Ok(memory.filter(|memory| memory.is_visible(now)))
    }

    /// The memory that `key` names in `scope` (`workspace` when not given), or `None`.
    ///
    /// # Errors
    /// When the key cannot be one, or the record cannot be read.
    pub fn get_by_key(
        &self,
        context_id: &str,
        scope: Option<&str>,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Memory>, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        let folded = folded_key(key)?;
        let Some(context) = self.context(context_id)? else { return Ok(None) };
        let scope = scope.unwrap_or(DEFAULT_SCOPE);
        let memory = self.record.read(|reader| Ok::<_, EngineError>(reader.by_key(&context, scope, &folded)?))?;
        Ok(memory.filter(|memory| memory.is_visible(now)))
    }

    /// A page of the memories in use that pass `filter`.
    ///
    /// # Errors
    /// When the page is over its limit, or the record cannot be read.
    pub fn list(
        &self,
        context_id: &str,
        filter: &Filter,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<Memory>, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        if page.limit > K_MAX {
            return Err(Invalid::over_limit("limit", page.limit, K_MAX, "rows").into());
        }
        if page.offset > CONTEXT_MEMORIES_MAX {
            return Err(Invalid::over_limit("offset", page.offset, CONTEXT_MEMORIES_MAX, "rows").into());
        }
        let Some(context) = self.context(context_id)? else { return Ok(Vec::new()) };
        self.catch_up()?;
        let loaded = self.partition(&context)?;
        let rows = {
            let partition = read(&loaded.partition);
            partition.ordered(&partition.matching(filter, now, false), page.order, page.descending)
        };
        let wanted: Vec<i64> = rows.into_iter().skip(page.offset).take(page.limit).collect();
        let memories = self.record.read(|reader| Ok::<_, EngineError>(reader.rows(&context, &wanted)?))?;
        Ok(memories.into_iter().filter(|memory| memory.is_visible(now) && filter.matches(memory)).collect())
    }

    /// How many memories in use pass `filter`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn count(&self, context_id: &str, filter: &Filter, now: Timestamp) -> Result<u64, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        let Some(context) = self.context(context_id)? else { return Ok(0) };
        self.catch_up()?;
        let loaded = self.partition(&context)?;
        let partition = read(&loaded.partition);
        Ok(partition.matching(filter, now, false).len())
    }

    /// Every state of a memory, oldest first, and when it was purged if it was.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] when this context never had it.
    pub fn history(&self, context_id: &str, id: MemoryId) -> Result<History, EngineError> {
        let _inside = self.enter()?;
        let context = self.context(context_id)?.ok_or(EngineError::not_found(id))?;
        let (states, purged) = self.record.read(|reader| {
            let present = reader.by_id(&context, id)?;
            let states = present.map(|memory| reader.history(&context, memory.row)).transpose()?;
            Ok::<_, EngineError>((states.unwrap_or_default(), reader.purged(&context, id)?))
        })?;
        if states.is_empty() && purged.is_none() {
            Err(EngineError::not_found(id))
        } else {
            Ok(History { states, purged })
        }
    }
}
