//! What Python gets back: frozen objects whose fields are built when they are read.

use memkura_engine::{Explanation, Hit, Receipt, Revision};
use memkura_index::vector::Plan;
use memkura_index::{Found, TermShare};
use memkura_model::{Memory, MemoryId};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::clock;
use crate::values::dictionary;

/// One remembered row as it stood when it was read.
#[pyclass(name = "Memory", module = "memkura._core", frozen, subclass)]
pub struct PyMemory(pub Memory);

/// One result of a recall: the memory's fields, and why it is here.
#[pyclass(name = "Hit", module = "memkura._core", frozen, extends = PyMemory)]
pub struct PyHit {
    found: Found,
    terms: Vec<TermShare>,
}

/// What one write did.
#[pyclass(name = "Receipt", module = "memkura._core", frozen)]
pub struct PyReceipt {
    receipt: Receipt,
    warnings: Vec<String>,
}

impl PyHit {
    /// The Python object for a hit.
    pub fn create(py: Python<'_>, hit: Hit) -> PyResult<Py<Self>> {
        Py::new(
            py,
            PyClassInitializer::from(PyMemory(hit.memory)).add_subclass(Self { found: hit.found, terms: hit.terms }),
        )
    }
}

impl PyReceipt {
    /// The Python object for a receipt, with what was mended on the way in.
    pub const fn new(receipt: Receipt, warnings: Vec<String>) -> Self {
        Self { receipt, warnings }
    }
}

fn texts<'py>(py: Python<'py>, ids: &[MemoryId]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, ids.iter().map(ToString::to_string))
}

#[pymethods]
impl PyMemory {
    #[getter]
    fn memory_id(&self) -> String {
        self.0.memory_id.to_string()
    }

    #[getter]
    fn context_id(&self) -> &str {
        &self.0.context_id
    }

    #[getter]
    fn r#type(&self) -> &str {
        &self.0.kind
    }

    #[getter]
    fn scope(&self) -> Option<&str> {
        self.0.scope.as_deref()
    }

    #[getter]
    fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    #[getter]
    fn summary(&self) -> &str {
        &self.0.summary
    }

    #[getter]
    fn content(&self) -> Option<&str> {
        self.0.content.as_deref()
    }

    #[getter]
    fn tags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.tags)
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dictionary(py, &self.0.metadata.object())
    }

    #[getter]
    fn delivery_mode(&self) -> &'static str {
        self.0.delivery_mode.as_str()
    }

    #[getter]
    fn trigger<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.0.trigger.as_ref().map(|trigger| dictionary(py, &trigger.object())).transpose()
    }

    #[getter]
    fn importance(&self) -> f64 {
        self.0.importance
    }

    #[getter]
    fn confidence(&self) -> f64 {
        self.0.confidence
    }

    #[getter]
    fn proof(&self) -> Option<&str> {
        self.0.proof.as_deref()
    }

    #[getter]
    fn status(&self) -> &'static str {
        self.0.status.as_str()
    }

    #[getter]
    fn source_type(&self) -> &'static str {
        self.0.source_type.as_str()
    }

    #[getter]
    fn trust_tier(&self) -> &'static str {
        self.0.trust_tier.as_str()
    }

    #[getter]
    fn derived_from<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        texts(py, &self.0.derived_from)
    }

    #[getter]
    fn superseded_by(&self) -> Option<String> {
        self.0.superseded_by.map(|id| id.to_string())
    }

    #[getter]
    fn session(&self) -> Option<&str> {
        self.0.session.as_deref()
    }

    #[getter]
    fn event_time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.event_time.map(|instant| clock::to_python(py, instant)).transpose()
    }

    #[getter]
    fn expires_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.expires_at.map(|instant| clock::to_python(py, instant)).transpose()
    }

    #[getter]
    fn created_at<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        clock::to_python(py, self.0.created_at)
    }

    #[getter]
    fn updated_at<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        clock::to_python(py, self.0.updated_at)
    }

    #[getter]
    fn last_seen<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.last_seen.map(|instant| clock::to_python(py, instant)).transpose()
    }

    #[getter]
    fn access_count(&self) -> i64 {
        self.0.access_count
    }

    #[getter]
    fn decay_rate(&self) -> f64 {
        self.0.decay_rate
    }

    #[getter]
    fn version(&self) -> i64 {
        self.0.version
    }

    #[getter]
    fn embedded(&self) -> bool {
        self.0.embedded
    }

    /// The fields as a dict.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        fields(py, &self.0)
    }

    fn __repr__(&self) -> String {
        format!("Memory({}, {:?})", self.0.memory_id, self.0.summary)
    }
}

#[pymethods]
impl PyHit {
    #[getter]
    fn score(&self) -> f64 {
        self.found.score
    }

    #[getter]
    fn evidence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, evidence(&self.found))
    }

    #[getter]
    fn explanation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        explanation(py, &self.found, &self.terms)
    }

    /// The memory's fields with score, evidence and explanation, as a dict.
    fn as_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = slf.py();
        let hit = slf.get();
        let out = fields(py, &slf.as_super().get().0)?;
        out.set_item("score", hit.found.score)?;
        out.set_item("evidence", evidence(&hit.found))?;
        out.set_item("explanation", explanation(py, &hit.found, &hit.terms)?)?;
        Ok(out)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let found = &slf.get().found;
        format!("Hit({:.4}, {}, {:?})", found.score, found.memory_id, slf.as_super().get().0.summary)
    }
}

#[pymethods]
impl PyReceipt {
    #[getter]
    fn memory_id(&self) -> String {
        self.receipt.memory_id.to_string()
    }

    #[getter]
    fn created(&self) -> bool {
        self.receipt.created
    }

    #[getter]
    fn version(&self) -> i64 {
        self.receipt.version
    }

    #[getter]
    fn duplicates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        texts(py, &self.receipt.duplicates)
    }

    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.warnings)
    }

    #[getter]
    fn embedded(&self) -> bool {
        self.receipt.embedded
    }
}

/// Every field of one state of a memory, and what brought it about.
pub fn state_fields<'py>(py: Python<'py>, state: &Revision) -> PyResult<Bound<'py, PyDict>> {
    let out = fields(py, &state.memory)?;
    out.set_item("action", &state.action)?;
    out.set_item("door", &state.door)?;
    Ok(out)
}

/// Every field of a memory.
fn fields<'py>(py: Python<'py>, memory: &Memory) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("memory_id", memory.memory_id.to_string())?;
    out.set_item("context_id", &*memory.context_id)?;
    out.set_item("type", &memory.kind)?;
    out.set_item("scope", &memory.scope)?;
    out.set_item("key", &memory.key)?;
    out.set_item("summary", &memory.summary)?;
    out.set_item("content", &memory.content)?;
    out.set_item("tags", PyList::new(py, &memory.tags)?)?;
    out.set_item("metadata", dictionary(py, &memory.metadata.object())?)?;
    out.set_item("delivery_mode", memory.delivery_mode.as_str())?;
    out.set_item("trigger", memory.trigger.as_ref().map(|trigger| dictionary(py, &trigger.object())).transpose()?)?;
    out.set_item("importance", memory.importance)?;
    out.set_item("confidence", memory.confidence)?;
    out.set_item("proof", &memory.proof)?;
    out.set_item("status", memory.status.as_str())?;
    out.set_item("source_type", memory.source_type.as_str())?;
    out.set_item("trust_tier", memory.trust_tier.as_str())?;
    out.set_item("derived_from", PyList::new(py, memory.derived_from.iter().map(ToString::to_string))?)?;
    out.set_item("superseded_by", memory.superseded_by.map(|id| id.to_string()))?;
    out.set_item("session", &memory.session)?;
    clock::put(&out, "event_time", memory.event_time)?;
    clock::put(&out, "expires_at", memory.expires_at)?;
    clock::put(&out, "created_at", Some(memory.created_at))?;
    clock::put(&out, "updated_at", Some(memory.updated_at))?;
    clock::put(&out, "last_seen", memory.last_seen)?;
    out.set_item("access_count", memory.access_count)?;
    out.set_item("decay_rate", memory.decay_rate)?;
    out.set_item("version", memory.version)?;
    out.set_item("embedded", memory.embedded)?;
    Ok(out)
}

/// What speaks for a hit.
fn evidence(found: &Found) -> Vec<&'static str> {
    let stamps = [
        (found.key, "key"),
        (found.signals.text_rank.is_some(), "text"),
        (found.signals.vector_rank.is_some(), "vector"),
    ];
    stamps.into_iter().filter(|(holds, _)| *holds).map(|(_, stamp)| stamp).collect()
}

/// The raw signals of a hit and what became of them.
fn explanation<'py>(py: Python<'py>, found: &Found, terms: &[TermShare]) -> PyResult<Bound<'py, PyDict>> {
    let text = PyDict::new(py);
    text.set_item("score", found.signals.text)?;
    text.set_item("rank", found.signals.text_rank)?;
    text.set_item("terms", term_shares(py, terms)?)?;
    let vector = PyDict::new(py);
    vector.set_item("cosine", found.cosine)?;
    vector.set_item("among_neighbours", found.signals.vector)?;
    vector.set_item("feedback", found.signals.feedback)?;
    vector.set_item("rank", found.signals.vector_rank)?;
    let out = PyDict::new(py);
    out.set_item("key", found.key)?;
    out.set_item("text", text)?;
    out.set_item("vector", vector)?;
    out.set_item("relevance", found.relevance)?;
    out.set_item("freshness_factor", found.ageing.freshness)?;
    out.set_item("importance_factor", found.ageing.importance)?;
    out.set_item("score", found.score)?;
    Ok(out)
}

fn term_shares<'py>(py: Python<'py>, terms: &[TermShare]) -> PyResult<Bound<'py, PyList>> {
    let shares = terms.iter().map(|share| {
        let out = PyDict::new(py);
        out.set_item("term", &share.term)?;
        out.set_item("document_frequency", share.document_frequency)?;
        out.set_item("score", share.score)?;
        Ok(out)
    });
    PyList::new(py, shares.collect::<PyResult<Vec<_>>>()?)
}

/// How the vector leg went about a search.
pub fn plan<'py>(py: Python<'py>, plan: &Plan) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("tier", plan.tier.as_str())?;
    out.set_item("matches", plan.matches)?;
    out.set_item("live", plan.live)?;
    out.set_item("scored_exactly", plan.scored_exactly)?;
    out.set_item("kernels", plan.kernels)?;
    Ok(out)
}

/// Why a memory is, or is not, in the answer to a query.
pub fn explained<'py>(py: Python<'py>, explanation_of: &Explanation) -> PyResult<Bound<'py, PyDict>> {
    let out = match &explanation_of.found {
        Some(found) => explanation(py, found, &explanation_of.terms)?,
        None => PyDict::new(py),
    };
    out.set_item("memory_id", explanation_of.memory.memory_id.to_string())?;
    out.set_item("rank", explanation_of.rank)?;
    out.set_item("reason", explanation_of.reason)?;
    out.set_item("plan", explanation_of.plan.as_ref().map(|of| plan(py, of)).transpose()?)?;
    if explanation_of.found.is_none() {
        out.set_item("terms", term_shares(py, &explanation_of.terms)?)?;
    }
    Ok(out)
}
