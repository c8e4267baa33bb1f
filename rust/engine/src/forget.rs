//! Forgetting: retiring what was named, or erasing it.

use std::collections::BTreeSet;

use memkura_model::{Action, Context, Door, Filter, Invalid, InvalidKind, Memory, MemoryId, Status, Timestamp};
use memkura_store::{Reserved, StoreError, Writer};

use crate::open::read;
use crate::remember::{key_taken, retired};
use crate::{Engine, EngineError};

/// What to forget. There is no default: a removal is never wider than asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// These memories.
    Ids(Vec<MemoryId>),
    /// Every memory in use that passes, expired or not; with a purge, those that were replaced too.
    Filter(Filter),
    /// Every memory of the context.
    Everything,
}

impl Engine {
    /// Retires memories: they leave every read but their history, until [`Engine::compact`] purges them. With `purge` they
    /// are erased at once, history included. Once `compact` has run, no byte of them is left in any file (I12). Returns the
    /// ids, in the order of writing.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] when an id names nothing in this context, [`EngineError::KeyTaken`] when an outside door
    /// would remove what is trusted; an empty selection is refused.
    pub fn forget(
        &self,
        context_id: &str,
        selection: &Selection,
        purge: bool,
        door: Door,
        now: Timestamp,
    ) -> Result<Vec<MemoryId>, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        check(selection)?;
        let Some(context) = self.context(context_id)? else {
            return match selection {
                Selection::Ids(ids) => Err(EngineError::not_found(ids[0])),
                Selection::Filter(_) | Selection::Everything => Ok(Vec::new()),
            };
        };
        let candidates = self.candidates(&context, selection, purge)?;
        let forget = |writer: &Writer<'_>| {
            let chosen = chosen(writer, &context, selection, &candidates, purge)?;
            if let Some(trusted) = chosen.iter().find(|memory| memory.trust_tier > door.source_type().tier()) {
                return Err(key_taken("memory_id", trusted));
            }
            for memory in &chosen {
                if purge {
                    writer.purge(memory, door, now)?;
                } else {
                    writer.replace(&retired(memory, now), Action::Forget, door)?;
                }
            }
            Ok::<_, EngineError>(chosen.iter().map(|memory| memory.memory_id).collect())
        };
        let reserved = if purge { Reserved::Purging } else { Reserved::Forgetting };
        let forgotten = self.written_for_sure(reserved, forget)?;
        self.follow_own_write();
        Ok(forgotten)
    }

    /// Purges every memory that was forgotten or has expired, and what may quote one that was purged before.
    pub(crate) fn purge_gone(&self, door: Door, now: Timestamp) -> Result<(), EngineError> {
        /// At a time: others write in between.
        const ROWS: usize = 1_000;
        for context in self.record.read(|reader| Ok::<_, EngineError>(reader.contexts()?))? {
            let mut done = 0;
            // Looked for by reading: most of the time there is nothing, and nobody need wait.
            let is_left = |done| {
                self.record.read(|reader| {
                    Ok::<_, EngineError>(!reader.forgotten_or_expired(&context, done, 1, now)?.is_empty())
                })
            };
            while is_left(done)? {
                done = self.written_for_sure(Reserved::Purging, |writer: &Writer<'_>| {
                    let gone = writer.forgotten_or_expired(&context, done, ROWS, now)?;
                    gone.iter().try_for_each(|memory| writer.purge(memory, door, now))?;
                    Ok(gone.last().map_or(i64::MAX, |memory| memory.row))
                })?;
            }
        }
        self.written_for_sure(Reserved::Purging, |writer: &Writer<'_>| Ok(writer.drop_problems()?))
    }

    /// Writes, on a full disk with the room that is kept for it: whoever is out of room wants to forget more than ever.
    fn written_for_sure<T>(
        &self,
        reserved: Reserved,
        work: impl Fn(&Writer<'_>) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let is_full = |outcome: &Result<T, EngineError>| matches!(outcome, Err(EngineError::Store(StoreError::Full)));
        let mut outcome = self.record.write(&work);
        if !is_full(&outcome) {
            return outcome;
        }
        self.record.spend_reserve(reserved);
        outcome = self.record.write(&work);
        if is_full(&outcome) && self.record.empty_log().is_ok() {
            outcome = self.record.write(&work);
        }
        // What the log took is given back, and the reserve is for the next one. When that fails, the disk is full, as is
        // known; the next one tries again.
        let _ = self.record.tidy();
        outcome
    }

    /// The rows that a filter selects; the write looks at each again.
    fn candidates(&self, context: &Context, selection: &Selection, purge: bool) -> Result<Vec<i64>, EngineError> {
        /// No memory had expired by then: what is out of every read can be forgotten all the same.
        const BEFORE_ALL: Timestamp = Timestamp(i64::MIN);
        let Selection::Filter(filter) = selection else { return Ok(Vec::new()) };
        self.catch_up()?;
        let loaded = self.partition(context)?;
        let mut rows = {
            let partition = read(&loaded.partition);
            partition.rows_of(partition.matching(filter, BEFORE_ALL, purge))
        };
        if purge {
            // What was forgotten before is in no index.
            rows.extend(self.forgotten(context, filter)?);
            rows.sort_unstable();
            rows.dedup();
        }
        Ok(rows)
    }

    /// The rows of memories that were forgotten and that a filter selects.
    fn forgotten(&self, context: &Context, filter: &Filter) -> Result<Vec<i64>, EngineError> {
        /// At a time, so that not all of them need room.
        const ROWS: usize = 1_000;
        let (mut rows, mut after) = (Vec::new(), 0);
        loop {
            // Those that have expired are in the index; few had before any store was made.
            let gone = self.record.read(|reader| {
                Ok::<_, EngineError>(reader.forgotten_or_expired(context, after, ROWS, Timestamp(0))?)
            })?;
            let Some(last) = gone.last() else { return Ok(rows) };
            after = last.row;
            rows.extend(gone.iter().filter(|memory| filter.matches(memory)).map(|memory| memory.row));
        }
    }
}

fn check(selection: &Selection) -> Result<(), Invalid> {
    let empty = match selection {
        Selection::Ids(ids) => ids.is_empty(),
        Selection::Filter(filter) => filter.is_everything(),
        Selection::Everything => false,
    };
    if !empty {
        return Ok(());
    }
    let advice = "Name ids or filters; to empty a context say everything=True";
    Err(Invalid::new(InvalidKind::NothingSelected, "memory_id", "says not what to forget", "nothing", advice))
}

fn chosen(
    writer: &Writer<'_>,
    context: &Context,
    selection: &Selection,
    candidates: &[i64],
    purge: bool,
) -> Result<Vec<Memory>, EngineError> {
    match selection {
        Selection::Ids(ids) => BTreeSet::from_iter(ids)
            .into_iter()
            .map(|id| {
                let found = writer.by_id(context, *id)?.filter(|memory| purge || can_be_read(memory));
                found.ok_or(EngineError::not_found(*id))
            })
            .collect(),
        Selection::Filter(filter) => {
            let rows = writer.rows(context, candidates)?;
            Ok(rows
                .into_iter()
                .filter(|memory| (purge || memory.status.is_recallable()) && filter.matches(memory))
                .collect())
        }
        Selection::Everything => {
            let rows = writer.every(context)?;
            Ok(rows.into_iter().filter(|memory| purge || can_be_read(memory)).collect())
        }
    }
}

/// Whether some read can still bring a memory up: it is in use, or was replaced and is kept to be asked for.
fn can_be_read(memory: &Memory) -> bool {
    memory.status != Status::Retired || memory.superseded_by.is_some()
}
