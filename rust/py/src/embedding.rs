//! Vectors across the door, and the texts that vectors are made of.

use memkura_engine::Embedding;
use memkura_index::vector::normalise;
use memkura_model::limits::{CHUNKS_MAX, DIMENSIONS_MAX};
use memkura_model::{Invalid, InvalidKind};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PySet, PyString, PyTuple};

use crate::ending::listed;
use crate::error::{Fault, guarded};

/// A matrix of floats as it came in: one row, or several of equal length.
pub struct Rows {
    pub width: usize,
    pub values: Vec<f32>,
}

/// Reads one vector or several: a buffer of one or two dimensions, a sequence of numbers, or a sequence of vectors.
pub fn rows(value: &Bound<'_, PyAny>) -> Result<Rows, Fault> {
    if let Some(rows) = one_buffer(value)? {
        return Ok(rows);
    }
    let mut parts = Vec::new();
    let mut values = Vec::new();
    for part in bounded(value, CHUNKS_MAX.max(DIMENSIONS_MAX))? {
        match number(&part)? {
            Some(number) => values.push(number),
            None => parts.push(vector(&part)?),
        }
    }
    if parts.is_empty() {
        return Ok(Rows { width: values.len(), values });
    }
    let width = parts[0].len();
    if !values.is_empty() || parts.iter().any(|part| part.len() != width) {
        return Err(unequal(width));
    }
    Ok(Rows { width, values: parts.concat() })
}

/// One vector of a sequence of them: whatever holds numbers and nothing deeper.
fn vector(value: &Bound<'_, PyAny>) -> Result<Vec<f32>, Fault> {
    if let Some(rows) = one_buffer(value)? {
        return if rows.values.len() == rows.width { Ok(rows.values) } else { Err(wrong(value)) };
    }
    let numbers = bounded(value, DIMENSIONS_MAX)?;
    numbers.iter().map(|part| number(part)?.ok_or_else(|| wrong(value))).collect()
}

/// A component; `None` when it is no single number. Truth values and complex numbers convert to floats, but mean none.
fn number(value: &Bound<'_, PyAny>) -> Result<Option<f32>, Fault> {
    if !value.is_exact_instance_of::<PyFloat>() {
        let kind = value.get_type().name()?;
        let kind = kind.to_str()?;
        if kind.starts_with("bool") || kind.starts_with("complex") {
            return Err(wrong(value));
        }
    }
    Ok(value.extract::<f32>().ok())
}

fn one_buffer(value: &Bound<'_, PyAny>) -> Result<Option<Rows>, Fault> {
    if let Some(mask) = value.getattr_opt("mask")?
        && mask.call_method0("any")?.is_truthy()?
    {
        return Err(not_a_vector("has masked components", "an array with a mask"));
    }
    match buffer::<f32>(value, |float| float)? {
        Some(rows) => Ok(Some(rows)),
        None => buffer::<f64>(value, |float| float as f32),
    }
}

/// The items of a sequence, at most `max`: neither its own word for its length nor an endless one is trusted. A text is
/// a sequence of texts without end, bytes are no numbers, and sets and dictionaries have no order of components.
fn bounded<'py>(value: &Bound<'py, PyAny>, max: usize) -> Result<Vec<Bound<'py, PyAny>>, Fault> {
    let has_no_components = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
        || value.is_instance_of::<PyDict>();
    if has_no_components {
        return Err(wrong(value));
    }
    let items = listed(value, max + 1, || wrong(value))?;
    if items.len() > max {
        return Err(Invalid::over_limit("embedding", max + 1, max, "components").into());
    }
    Ok(items)
}

fn unequal(width: usize) -> Fault {
    Invalid::new(
        InvalidKind::Vector,
        "embedding",
        "has vectors of different lengths",
        width,
        "Give vectors of one length",
    )
    .into()
}

/// The one vector of a query.
pub fn query(value: &Bound<'_, PyAny>) -> Result<Vec<f32>, Fault> {
    let rows = rows(value)?;
    if rows.values.len() == rows.width { Ok(rows.values) } else { Err(wrong(value)) }
}

fn buffer<T: Element>(value: &Bound<'_, PyAny>, float: impl Fn(T) -> f32) -> Result<Option<Rows>, Fault> {
    let Ok(buffer) = PyBuffer::<T>::get(value) else { return Ok(None) };
    // Of another byte order than ours: its items, read one by one, are numbers all the same.
    if matches!(buffer.format().to_bytes().first(), Some(b'>' | b'!')) == cfg!(target_endian = "little") {
        return Ok(None);
    }
    let width = match buffer.shape() {
        [width] | [_, width] => *width,
        shape => {
            let shape = PyTuple::new(value.py(), shape)?;
            return Err(not_a_vector("has the wrong shape", shape));
        }
    };
    Ok(Some(Rows { width, values: buffer.to_vec(value.py())?.into_iter().map(float).collect() }))
}

fn wrong(value: &Bound<'_, PyAny>) -> Fault {
    not_a_vector("is no vector", value.get_type())
}

fn not_a_vector(problem: &str, value: impl std::fmt::Display) -> Fault {
    let advice = "Give a sequence or buffer of floats, or several of them";
    Invalid::new(InvalidKind::Vector, "embedding", problem, value, advice).into()
}

/// What an embedder made of a document, as Python passes it: its vectors, why there are none, and the embedder's id.
pub type Embedded<'py> = (Option<Bound<'py, PyAny>>, Option<String>, Option<String>);

/// The embedding of a document: vectors, a failure, or neither.
pub fn document(embedded: Embedded<'_>) -> Result<Embedding, Fault> {
    match embedded {
        (Some(vectors), _, made_by) => {
            let Rows { width, values } = rows(&vectors)?;
            Ok(Embedding::Vectors { dimensions: width, values, made_by })
        }
        (None, Some(reason), _) => Ok(Embedding::Failed(reason)),
        (None, None, _) => Ok(Embedding::None),
    }
}

/// Why a vector cannot be kept, or `None`.
#[pyfunction]
pub fn vector_problem(py: Python<'_>, vector: &Bound<'_, PyAny>, dim: usize) -> PyResult<Option<String>> {
    guarded(py, || {
        let rows = match rows(vector) {
            Ok(rows) => rows,
            Err(Fault::Engine(error)) => return Ok(Some(error.to_string())),
            Err(fault) => return Err(fault),
        };
        if rows.width != dim || rows.values.len() != dim {
            return Ok(Some(format!("the vector has {} components, the embedder says {dim}", rows.values.len())));
        }
        Ok(normalise(&rows.values).err().map(|error| error.to_string()))
    })
}

/// The components of one vector or several in as few bytes as they take, and how many each vector has: a list of numbers
/// takes eight times as much. Vectors that no index could hold are refused.
#[pyfunction]
pub fn compact_vectors<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<(usize, Bound<'py, PyBytes>)> {
    guarded(py, || {
        let Rows { width, values } = rows(value)?;
        let embedding = Embedding::Vectors { dimensions: width, values, made_by: None };
        memkura_engine::check_vectors(&embedding, width)?;
        let Embedding::Vectors { values, .. } = embedding else { return Ok((0, PyBytes::new(py, &[]))) };
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Ok((width, PyBytes::new(py, &bytes)))
    })
}

/// The text that a memory's vector describes. Changing this recipe changes every embedder's fingerprint.
#[pyfunction]
#[pyo3(signature = (summary, content))]
pub fn embedding_text(summary: &str, content: Option<&str>) -> String {
    match content.filter(|content| !content.trim().is_empty()) {
        Some(content) => format!("{summary}\n{content}"),
        None => summary.to_owned(),
    }
}

/// The parts of a long text that get a vector each.
#[pyfunction]
pub fn split_for_embedding(text: &str) -> Vec<String> {
    memkura_model::parts(text).map(str::to_owned).collect()
}
