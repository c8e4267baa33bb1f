//! Vectors across the door, and the texts that vectors are made of.

use memkura_engine::Embedding;
use memkura_index::vector::normalise;
use memkura_model::{Invalid, InvalidKind};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;

use crate::error::{Fault, guarded};

/// A matrix of floats as it came in: one row, or several of equal length.
pub struct Rows {
    pub width: usize,
    pub values: Vec<f32>,
}

/// Reads one vector or several: a buffer of one or two dimensions, a sequence of numbers, or a sequence of vectors.
pub fn rows(value: &Bound<'_, PyAny>) -> Result<Rows, Fault> {
    if let Some(rows) = buffer::<f32>(value, |float| float)? {
        return Ok(rows);
    }
    if let Some(rows) = buffer::<f64>(value, |float| float as f32)? {
        return Ok(rows);
    }
    if let Ok(values) = value.extract::<Vec<f32>>() {
        return Ok(Rows { width: values.len(), values });
    }
    let parts = value.try_iter().map_err(|_| wrong(value))?.map(|part| rows(&part?)).collect::<Result<Vec<_>, _>>()?;
    let width = parts.first().map_or(0, |part| part.width);
    if parts.iter().any(|part| part.width != width) {
        return Err(Invalid::new(
            InvalidKind::Vector,
            "embedding",
            "has vectors of different lengths",
            width,
            "Give vectors of one length",
        )
        .into());
    }
    Ok(Rows { width, values: parts.into_iter().flat_map(|part| part.values).collect() })
}

fn buffer<T: Element>(value: &Bound<'_, PyAny>, float: impl Fn(T) -> f32) -> Result<Option<Rows>, Fault> {
    let Ok(buffer) = PyBuffer::<T>::get(value) else { return Ok(None) };
    let width = match buffer.shape() {
        [width] | [_, width] => *width,
        _ => return Err(wrong(value)),
    };
    Ok(Some(Rows { width, values: buffer.to_vec(value.py())?.into_iter().map(float).collect() }))
}

fn wrong(value: &Bound<'_, PyAny>) -> Fault {
    Invalid::new(
        InvalidKind::Vector,
        "embedding",
        "is no vector",
        value.get_type(),
        "Give a sequence or buffer of floats, or several of them",
    )
    .into()
}

/// The embedding of a document: vectors, a failure, or neither.
pub fn document(value: Option<&Bound<'_, PyAny>>, error: Option<String>) -> Result<Embedding, Fault> {
    match (value.filter(|value| !value.is_none()), error) {
        (Some(value), _) => {
            let Rows { width, values } = rows(value)?;
            Ok(Embedding::Vectors { dimensions: width, values })
        }
        (None, Some(reason)) => Ok(Embedding::Failed(reason)),
        (None, None) => Ok(Embedding::None),
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
