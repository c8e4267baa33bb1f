//! `memkura._core.Engine`: each method reads its arguments, lets go of the interpreter, calls one verb, converts the answer.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use memkura_engine::{Embedding, Engine, EngineError, History, OpenOptions, Page, ReindexProgress};
use memkura_model::{Action, Invalid, MemoryId, Patch, Timestamp};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arguments::{
    self, RecallArguments, count, door, draft, filter, id, optional, order, origin, patch, record_options, selection,
    truth, warn, with_vectors,
};
use crate::embedding::Embedded;
use crate::error::{Fault, guarded};
use crate::memory::{PyHit, PyMemory, PyReceipt, explained, plan, state_fields};
use crate::values::name;
use crate::{clock, embedding, transfer};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// One open store.
#[pyclass(name = "Engine", module = "memkura._core", frozen)]
pub struct PyEngine {
    engine: Arc<Engine>,
    clock: Option<Py<PyAny>>,
}

impl PyEngine {
    /// An engine that was opened before.
    pub fn of(engine: Arc<Engine>) -> Self {
        Self { engine, clock: None }
    }

    fn now(&self, py: Python<'_>) -> Result<Timestamp, Fault> {
        clock::now(py, self.clock.as_ref())
    }

    /// Runs `verb` without the interpreter.
    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        verb: impl FnOnce(&Engine) -> Result<T, EngineError> + Send,
    ) -> Result<T, Fault> {
        Ok(py.detach(|| verb(&self.engine))?)
    }
}

#[pymethods]
impl PyEngine {
    #[staticmethod]
    #[pyo3(signature = (path, *, durability, busy_timeout, create, allow_network, memory_budget, clock = None, embedder = None))]
    #[expect(clippy::too_many_arguments, reason = "the options of `memkura.open`")]
    fn open(
        py: Python<'_>,
        path: &str,
        durability: Any<'_, '_>,
        busy_timeout: Any<'_, '_>,
        create: Any<'_, '_>,
        allow_network: Any<'_, '_>,
        memory_budget: Any<'_, '_>,
        clock: Option<Py<PyAny>>,
        embedder: Option<(String, usize)>,
    ) -> PyResult<Self> {
        guarded(py, || {
            let record = record_options(durability, busy_timeout, create, allow_network)?;
            let memory_budget = optional(memory_budget, |budget| count(budget, "memory_budget"))?;
            let now = clock::now(py, clock.as_ref())?;
            let engine = py.detach(|| Engine::open(path, OpenOptions { record, embedder, memory_budget }, now))?;
            Ok(Self { engine, clock })
        })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guarded(py, || {
            py.detach(|| self.engine.close());
            Ok(())
        })
    }

    /// Called before a fork, with the interpreter held: nobody else may come between.
    fn suspend(&self, py: Python<'_>) -> PyResult<()> {
        guarded(py, || {
            py.detach(|| self.engine.suspend());
            Ok(())
        })
    }

    fn resume(&self) {
        self.engine.resume();
    }

    fn resume_in_child(&self) {
        self.engine.resume_in_child();
    }

    #[pyo3(signature = (draft, embedded, *, door = "python"))]
    fn remember(&self, py: Python<'_>, draft: Any<'_, '_>, embedded: Embedded<'_>, door: &str) -> PyResult<PyReceipt> {
        guarded(py, || {
            let now = self.now(py)?;
            let door = arguments::door(door)?;
            let (draft, warnings) = arguments::draft(draft)?;
            let embedding = embedding::document(embedded)?;
            warn(py, &warnings)?;
            let receipt = self.detached(py, |engine| engine.remember(draft, embedding, door, now))?;
            Ok(PyReceipt::new(receipt, warnings))
        })
    }

    #[pyo3(signature = (drafts, embedded, *, first = 0, door = "python"))]
    fn remember_many(
        &self,
        py: Python<'_>,
        drafts: Any<'_, '_>,
        embedded: Vec<Embedded<'_>>,
        first: usize,
        door: &str,
    ) -> PyResult<Vec<PyReceipt>> {
        guarded(py, || {
            let now = self.now(py)?;
            let door = self::door(door)?;
            let rows = with_vectors(drafts, embedded, first, draft)?;
            let (batch, mended): (Vec<_>, Vec<_>) =
                rows.into_iter().map(|(draft, embedding, warnings)| ((draft, embedding), warnings)).unzip();
            warn(py, &mended.concat())?;
            let receipts = self.detached(py, |engine| engine.remember_many(batch, first, door, now))?;
            Ok(receipts.into_iter().zip(mended).map(|(receipt, warnings)| PyReceipt::new(receipt, warnings)).collect())
        })
    }

    /// Gives `sink` the states of memories in lists, all of one moment.
    #[pyo3(signature = (sink, *, context_id, filters, history))]
    fn export(
        &self,
        py: Python<'_>,
        sink: Any<'_, '_>,
        context_id: Option<Any<'_, '_>>,
        filters: Option<Any<'_, '_>>,
        history: Any<'_, '_>,
    ) -> PyResult<()> {
        guarded(py, || {
            let now = self.now(py)?;
            let context = context_id.map(|context| name(context, "context_id")).transpose()?;
            let (filter, history) = (filter(filters)?, truth(history, "history")?);
            let sink = sink.clone().unbind();
            let mut raised = None;
            self.detached(py, |engine| {
                engine.export(context.as_deref(), &filter, history, now, |piece| {
                    // Without an interpreter there is nobody left to hand anything to, or to say so.
                    let taken = Python::try_attach(|py| transfer::hand_over(py, &sink, &piece));
                    let goes_on = matches!(taken, Some(Ok(())));
                    raised = taken.and_then(Result::err);
                    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })
            })?;
            Ok(raised.map_or(Ok(()), Err)?)
        })
    }

    /// What is known of each row by its context, id and words: `new`, `expired`, `here`, `forgotten` or `purged`, and of which
    /// memory.
    fn standings(&self, py: Python<'_>, rows: Vec<transfer::Named<'_>>) -> PyResult<Vec<transfer::Standing>> {
        guarded(py, || {
            let now = self.now(py)?;
            let rows = rows.into_iter().map(transfer::named).collect::<Result<Vec<_>, _>>()?;
            let standings = self.detached(py, |engine| engine.standings(&rows, now))?;
            Ok(standings.into_iter().map(transfer::standing).collect())
        })
    }

    fn import_drafts(
        &self,
        py: Python<'_>,
        drafts: Any<'_, '_>,
        embedded: Vec<Embedded<'_>>,
        ids: Vec<Option<String>>,
        again: Any<'_, '_>,
    ) -> PyResult<Vec<transfer::Taken>> {
        guarded(py, || {
            let (now, again) = (self.now(py)?, truth(again, "again")?);
            let (rows, mended) = transfer::drafts(drafts, embedded, ids)?;
            warn(py, &mended.concat())?;
            let taken = self.detached(py, |engine| engine.import(rows, again, now))?;
            Ok(transfer::taken(taken, mended))
        })
    }

    fn adopt(
        &self,
        py: Python<'_>,
        states: Any<'_, '_>,
        embedded: Vec<Embedded<'_>>,
        again: Any<'_, '_>,
    ) -> PyResult<Vec<transfer::Taken>> {
        guarded(py, || {
            let (now, again) = (self.now(py)?, truth(again, "again")?);
            let (rows, mended) = transfer::states(states, embedded)?;
            warn(py, &mended.concat())?;
            let taken = self.detached(py, |engine| engine.adopt(rows, again, now))?;
            Ok(transfer::taken(taken, mended))
        })
    }

    #[pyo3(signature = (context_id, memory_id, changes, embedded, *, expected = None, door = "python"))]
    #[expect(clippy::too_many_arguments, reason = "the verb's own fields")]
    fn update(
        &self,
        py: Python<'_>,
        context_id: Any<'_, '_>,
        memory_id: Any<'_, '_>,
        changes: Any<'_, '_>,
        embedded: Embedded<'_>,
        expected: Option<i64>,
        door: &str,
    ) -> PyResult<Option<PyReceipt>> {
        guarded(py, || {
            let now = self.now(py)?;
            let door = self::door(door)?;
            let (context, id) = (name(context_id, "context_id")?, id(memory_id, "memory_id")?);
            let (patch, warnings) = patch(changes)?;
            let patch = Patch { expected, ..patch };
            let embedding = embedding::document(embedded)?;
            warn(py, &warnings)?;
            let receipt = self.detached(py, |engine| engine.update(&context, id, &patch, embedding, door, now))?;
            Ok(receipt.map(|receipt| PyReceipt::new(receipt, warnings)))
        })
    }

    #[pyo3(signature = (context_id, *, memory_ids = None, filters = None, everything, purge, door = "python"))]
    #[expect(clippy::too_many_arguments, reason = "the verb's own fields")]
    fn forget(
        &self,
        py: Python<'_>,
        context_id: Any<'_, '_>,
        memory_ids: Option<Any<'_, '_>>,
        filters: Option<Any<'_, '_>>,
        everything: Any<'_, '_>,
        purge: Any<'_, '_>,
        door: &str,
    ) -> PyResult<Vec<String>> {
        guarded(py, || {
            let now = self.now(py)?;
            let door = self::door(door)?;
            let (everything, purge) = (truth(everything, "everything")?, truth(purge, "purge")?);
            let context = name(context_id, "context_id")?;
            let selection = selection(memory_ids, filters, everything)?;
            let forgotten = self.detached(py, |engine| engine.forget(&context, &selection, purge, door, now))?;
            Ok(forgotten.iter().map(MemoryId::to_string).collect())
        })
    }

    #[pyo3(signature = (context_id, *, memory_id = None, key = None, scope = None))]
    fn get(
        &self,
        py: Python<'_>,
        context_id: Any<'_, '_>,
        memory_id: Option<Any<'_, '_>>,
        key: Option<Any<'_, '_>>,
        scope: Option<Any<'_, '_>>,
    ) -> PyResult<Option<PyMemory>> {
        guarded(py, || {
            let now = self.now(py)?;
            let context = name(context_id, "context_id")?;
            let scope = scope.map(|scope| name(scope, "scope")).transpose()?;
            let memory = match (memory_id, key) {
                (Some(memory_id), None) => {
                    let id = id(memory_id, "memory_id")?;
                    self.detached(py, |engine| engine.get(&context, id, now))?
                }
                (None, Some(key)) => {
                    let key = name(key, "key")?;
                    self.detached(py, |engine| engine.get_by_key(&context, scope.as_deref(), &key, now))?
                }
                _ => {
                    return Err(Invalid::value(
                        "memory_id",
                        "needs an id or a key, and only one of them",
                        "neither or both",
                        "Give memory_id or key",
                    )
                    .into());
                }
            };
            Ok(memory.map(PyMemory))
        })
    }

    #[pyo3(signature = (context_id, *, filters = None, limit = None, offset = None, order = None, descending))]
    #[expect(clippy::too_many_arguments, reason = "the verb's own fields")]
    fn list(
        &self,
        py: Python<'_>,
        context_id: Any<'_, '_>,
        filters: Option<Any<'_, '_>>,
        limit: Option<Any<'_, '_>>,
        offset: Option<Any<'_, '_>>,
        order: Option<Any<'_, '_>>,
        descending: Any<'_, '_>,
    ) -> PyResult<Vec<PyMemory>> {
        guarded(py, || {
            let now = self.now(py)?;
            let context = name(context_id, "context_id")?;
            let filter = filter(filters)?;
            let limit = limit.map_or(Ok(100), |value| count(value, "limit"))?;
            let offset = offset.map_or(Ok(0), |value| count(value, "offset"))?;
            let descending = truth(descending, "descending")?;
            let page = Page { limit, offset, order: self::order(order)?, descending };
            let memories = self.detached(py, |engine| engine.list(&context, &filter, page, now))?;
            Ok(memories.into_iter().map(PyMemory).collect())
        })
    }

    #[pyo3(signature = (context_id, *, filters = None))]
    fn count(&self, py: Python<'_>, context_id: Any<'_, '_>, filters: Option<Any<'_, '_>>) -> PyResult<u64> {
        guarded(py, || {
            let now = self.now(py)?;
            let context = name(context_id, "context_id")?;
            let filter = filter(filters)?;
            self.detached(py, |engine| engine.count(&context, &filter, now))
        })
    }

    fn history<'py>(
        &self,
        py: Python<'py>,
        context_id: Any<'_, 'py>,
        memory_id: Any<'_, 'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        guarded(py, || {
            let (context, id) = (name(context_id, "context_id")?, id(memory_id, "memory_id")?);
            let History { states, purged } = self.detached(py, |engine| engine.history(&context, id))?;
            let history = PyList::empty(py);
            for state in &states {
                let entry = state_fields(py, state)?;
                clock::put(&entry, "replaced_at", state.replaced_at)?;
                history.append(entry)?;
            }
            if let Some((at, door)) = purged {
                let entry = PyDict::new(py);
                entry.set_item("memory_id", id.to_string())?;
                entry.set_item("action", Action::Purge.as_str())?;
                entry.set_item("door", door)?;
                clock::put(&entry, "updated_at", Some(at))?;
                history.append(entry)?;
            }
            Ok(history)
        })
    }

    #[pyo3(signature = (context_id, query = None, *, embedding = None, **options))]
    fn recall<'py>(
        &self,
        py: Python<'py>,
        context_id: Any<'_, 'py>,
        query: Option<Any<'_, 'py>>,
        embedding: Option<Any<'_, 'py>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Vec<Py<PyHit>>, Bound<'py, PyDict>)> {
        guarded(py, || {
            let now = self.now(py)?;
            let context = name(context_id, "context_id")?;
            let recall = RecallArguments::read(options)?.recall(query, embedding)?;
            let recalled = self.detached(py, |engine| engine.recall(&context, &recall, now))?;
            let report = PyDict::new(py);
            report.set_item("mode", recalled.mode)?;
            report.set_item("degraded", recalled.degraded)?;
            report.set_item("matching", recalled.matching)?;
            report.set_item("mass", recalled.mass)?;
            report.set_item("plan", recalled.plan.as_ref().map(|of| plan(py, of)).transpose()?)?;
            let hits = recalled.hits.into_iter().map(|hit| PyHit::create(py, hit)).collect::<PyResult<_>>()?;
            Ok((hits, report))
        })
    }

    #[pyo3(signature = (context_id, memory_id, query = None, *, embedding = None, **options))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        context_id: Any<'_, 'py>,
        memory_id: Any<'_, 'py>,
        query: Option<Any<'_, 'py>>,
        embedding: Option<Any<'_, 'py>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        guarded(py, || {
            let now = self.now(py)?;
            let (context, id) = (name(context_id, "context_id")?, id(memory_id, "memory_id")?);
            let recall = RecallArguments::read(options)?.recall(query, embedding)?;
            let explanation = self.detached(py, |engine| engine.explain(&context, id, &recall, now))?;
            Ok(explained(py, &explanation)?)
        })
    }

    #[pyo3(signature = (context_id, *, origin = None))]
    fn create_context(&self, py: Python<'_>, context_id: Any<'_, '_>, origin: Option<Any<'_, '_>>) -> PyResult<()> {
        guarded(py, || {
            let now = self.now(py)?;
            let (name, origin) = (name(context_id, "context_id")?, self::origin(origin)?);
            self.detached(py, |engine| engine.create_context(&name, origin, now))
        })
    }

    fn contexts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(py, || {
            let contexts = self.detached(py, Engine::list_contexts)?;
            let out = PyList::empty(py);
            for context in contexts {
                let entry = PyDict::new(py);
                entry.set_item("context_id", context.name)?;
                entry.set_item("origin", context.origin.as_str())?;
                out.append(entry)?;
            }
            Ok(out)
        })
    }

    fn embedder<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        guarded(py, || {
            let status = self.detached(py, Engine::embedder)?;
            let Some(bound) = status.bound else { return Ok(None) };
            let out = PyDict::new(py);
            out.set_item("id", bound.name)?;
            out.set_item("dim", bound.dimensions)?;
            out.set_item("state", if status.is_other { "mismatch" } else { "bound" })?;
            out.set_item("building", status.building.map(|building| building.name))?;
            Ok(Some(out))
        })
    }

    /// The id and dimension of the embedder whose vectors recall uses.
    fn bound_embedder(&self, py: Python<'_>) -> PyResult<Option<(String, usize)>> {
        guarded(py, || {
            let bound = self.detached(py, Engine::bound_embedder)?;
            Ok(bound.map(|embedder| (embedder.name, embedder.dimensions)))
        })
    }

    fn begin_reindex<'py>(&self, py: Python<'py>, embedder_id: &str, dim: usize) -> PyResult<Bound<'py, PyDict>> {
        guarded(py, || {
            let now = self.now(py)?;
            let progress = self.detached(py, |engine| engine.begin_reindex(embedder_id, dim, now))?;
            Ok(progress_report(py, &progress)?)
        })
    }

    #[pyo3(signature = (embedder_id, *, limit = 256, after = 0))]
    fn pending_embeddings(
        &self,
        py: Python<'_>,
        embedder_id: &str,
        limit: usize,
        after: i64,
    ) -> PyResult<Vec<(i64, i64, String)>> {
        guarded(py, || {
            let now = self.now(py)?;
            let pending = self.detached(py, |engine| engine.pending_embeddings(embedder_id, after, limit, now))?;
            let texts = pending.into_iter().map(|one| {
                (one.row, one.text_version, embedding::embedding_text(&one.summary, one.content.as_deref()))
            });
            Ok(texts.collect())
        })
    }

    fn store_embeddings(
        &self,
        py: Python<'_>,
        embedder_id: &str,
        items: Vec<(i64, i64, Bound<'_, PyAny>)>,
    ) -> PyResult<usize> {
        guarded(py, || {
            let read = |(row, version, vector): (i64, i64, Bound<'_, PyAny>)| {
                Ok((row, version, embedding::document((Some(vector), None, None))?))
            };
            let items = items.into_iter().map(read).collect::<Result<Vec<_>, Fault>>()?;
            self.detached(py, |engine| engine.store_embeddings(embedder_id, &items))
        })
    }

    fn fail_embeddings(&self, py: Python<'_>, embedder_id: &str, items: Vec<(i64, i64)>, reason: &str) -> PyResult<()> {
        guarded(py, || {
            let items: Vec<_> =
                items.into_iter().map(|(row, version)| (row, version, Embedding::Failed(reason.to_owned()))).collect();
            self.detached(py, |engine| engine.store_embeddings(embedder_id, &items))?;
            Ok(())
        })
    }

    fn finish_reindex<'py>(&self, py: Python<'py>, embedder_id: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        guarded(py, || {
            let now = self.now(py)?;
            let progress = self.detached(py, |engine| engine.finish_reindex(embedder_id, now))?;
            Ok(progress.map(|progress| progress_report(py, &progress)).transpose()?)
        })
    }

    fn back_up(&self, py: Python<'_>, destination: &str) -> PyResult<()> {
        guarded(py, || self.detached(py, |engine| engine.back_up(Path::new(destination))))
    }

    fn verify(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        guarded(py, || self.detached(py, Engine::verify))
    }

    fn examine<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(py, || {
            let health = self.detached(py, Engine::examine)?;
            let out = PyDict::new(py);
            out.set_item("problems", health.problems)?;
            out.set_item("drift", health.drift)?;
            out.set_item("compared", health.compared)?;
            Ok(out)
        })
    }

    #[pyo3(signature = (*, door = "python"))]
    fn compact<'py>(&self, py: Python<'py>, door: &str) -> PyResult<Bound<'py, PyDict>> {
        guarded(py, || {
            let (door, now) = (self::door(door)?, self.now(py)?);
            let sealed = self.detached(py, |engine| engine.compact(door, now))?;
            let out = PyDict::new(py);
            out.set_item("sealed", sealed)?;
            Ok(out)
        })
    }

    fn maintain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(py, || {
            let sealed = self.detached(py, Engine::maintain)?;
            let out = PyDict::new(py);
            out.set_item("sealed", sealed)?;
            Ok(out)
        })
    }

    #[pyo3(signature = (context_id = None))]
    fn stats<'py>(&self, py: Python<'py>, context_id: Option<Any<'_, 'py>>) -> PyResult<Bound<'py, PyDict>> {
        guarded(py, || {
            let now = self.now(py)?;
            let context = context_id
                .filter(|context| !context.is_none())
                .map(|context| name(context, "context_id"))
                .transpose()?;
            let stats = self.detached(py, |engine| engine.stats(context.as_deref(), now))?;
            let out = PyDict::new(py);
            out.set_item("memories", stats.totals.memories)?;
            out.set_item("retired", stats.totals.retired)?;
            out.set_item("unembedded", stats.totals.unembedded)?;
            out.set_item("expired", stats.totals.expired)?;
            out.set_item("revisions", stats.totals.revisions)?;
            out.set_item("contexts", stats.contexts)?;
            out.set_item("loaded_contexts", stats.loaded)?;
            out.set_item("fresh_texts", stats.fresh)?;
            out.set_item("sealed_texts", stats.sealed)?;
            out.set_item("loaded_vectors", stats.embedded)?;
            Ok(out)
        })
    }
}

fn progress_report<'py>(py: Python<'py>, progress: &ReindexProgress) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("total", progress.total)?;
    out.set_item("done", progress.done)?;
    out.set_item("failed", progress.failed)?;
    out.set_item("state", if progress.done == progress.total && progress.is_bound { "complete" } else { "partial" })?;
    out.set_item("reasons", progress.reasons.clone())?;
    Ok(out)
}
