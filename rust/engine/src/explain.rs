//! Why one memory is, or is not, in the answer to a query.

use memkura_index::vector::Plan;
use memkura_index::{Found, TermShare};
use memkura_model::limits::K_MAX;
use memkura_model::{Memory, MemoryId, Timestamp};

use crate::open::read;
use crate::recall::check;
use crate::{Engine, EngineError, Recall};

/// How a query and a memory relate.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The memory.
    pub memory: Memory,
    /// Its place among all that the query brings up, from 1; `None` when it is not among them.
    pub rank: Option<usize>,
    /// What the legs say of it.
    pub found: Option<Found>,
    /// What each term of the query gave.
    pub terms: Vec<TermShare>,
    /// Why it is not there, when it is not.
    pub reason: Option<&'static str>,
    /// How the vector leg went about it.
    pub plan: Option<Plan>,
    /// The text score that no memory can exceed.
    pub mass: f64,
}

impl Engine {
    /// Says how `id` fares under `recall` (whose `k` and `offset` are not looked at).
    ///
    /// # Errors
    /// [`EngineError::NotFound`] when this context never had such a memory; otherwise as [`Engine::recall`].
    pub fn explain(
        &self,
        context_id: &str,
        id: MemoryId,
        recall: &Recall,
        now: Timestamp,
    ) -> Result<Explanation, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        check(recall)?;
        let context = self.context(context_id)?.ok_or(EngineError::not_found(id))?;
        self.catch_up()?;
        let memory = self
            .record
            .read(|reader| Ok::<_, EngineError>(reader.by_id(&context, id)?))?
            .ok_or(EngineError::not_found(id))?;
        let recall = Recall { k: K_MAX, offset: 0, ..recall.clone() };
        let loaded = self.partition(&context)?;
        let prepared = self.prepare(&recall, loaded.bound.as_ref())?;
        let query = prepared.query(&recall, now);
        let partition = read(&loaded.partition);
        let results = partition.search(&query);
        let at = results.found.iter().position(|found| found.memory_id == id);
        let terms = match partition.ordinal(memory.row) {
            Some(ordinal) => partition.term_shares(&query, ordinal),
            None => Vec::new(),
        };
        let is_in_use = memory.status.is_recallable() || (recall.include_superseded && memory.superseded_by.is_some());
        let reason = match at {
            Some(_) => None,
            None if !is_in_use => Some("it is not in use"),
            None if memory.has_expired(now) => Some("it has expired"),
            None if !recall.filter.matches(&memory) => Some("a filter excludes it"),
            None if recall.min_similarity.is_some() => Some("its cosine is below min_similarity, or no leg finds it"),
            None => Some(match (query.text.is_some(), query.vector.is_some()) {
                (true, true) => "it shares no word with the query and has no vector near it",
                (true, false) => "it shares no word with the query",
                (false, true) => "it has no vector near the query",
                (false, false) => "the query does not name its key",
            }),
        };
        Ok(Explanation {
            memory,
            rank: at.map(|at| at + 1),
            found: at.map(|at| results.found[at]),
            terms,
            reason,
            plan: results.plan,
            mass: results.mass,
        })
    }
}
