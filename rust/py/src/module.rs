//! What `memkura._core` holds.

use std::path::Path;

use memkura_engine::EngineError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{check_drafts, check_states};
use crate::embedding::{compact_vectors, embedding_text, split_for_embedding, vector_problem};
use crate::engine::PyEngine;
use crate::error::guarded;
use crate::memory::{PyHit, PyMemory, PyReceipt};
use crate::shape::{msgpack_end, plain_json};

/// Versions and kernels of this build.
#[pyfunction]
fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("sqlite", memkura_engine::sqlite_version())?;
    info.set_item("analyser", memkura_index::tokens::ANALYSER_VERSION.to_string())?;
    info.set_item("kernels", memkura_index::vector::kernel_name())?;
    info.set_item("profile", if cfg!(debug_assertions) { "dev" } else { "release" })?;
    Ok(info)
}

/// Every documented limit by name.
#[pyfunction]
fn limits(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let limits = PyDict::new(py);
    memkura_model::limits::ALL.iter().try_for_each(|(name, limit)| limits.set_item(name, limit))?;
    Ok(limits)
}

/// Makes a store folder from a backup.
#[pyfunction]
fn restore(py: Python<'_>, backup: &str, path: &str) -> PyResult<()> {
    guarded(py, || {
        Ok(py.detach(|| memkura_engine::restore(Path::new(backup), Path::new(path))).map_err(EngineError::from)?)
    })
}

/// Every open engine of this process, whoever holds it.
#[pyfunction]
fn open_engines(py: Python<'_>) -> Vec<PyEngine> {
    py.detach(memkura_engine::open_engines).into_iter().map(PyEngine::of).collect()
}

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyEngine>()?;
    module.add_class::<PyMemory>()?;
    module.add_class::<PyHit>()?;
    module.add_class::<PyReceipt>()?;
    module.add_function(wrap_pyfunction!(build_info, module)?)?;
    module.add_function(wrap_pyfunction!(open_engines, module)?)?;
    module.add_function(wrap_pyfunction!(limits, module)?)?;
    module.add_function(wrap_pyfunction!(restore, module)?)?;
    module.add_function(wrap_pyfunction!(check_drafts, module)?)?;
    module.add_function(wrap_pyfunction!(check_states, module)?)?;
    module.add_function(wrap_pyfunction!(embedding_text, module)?)?;
    module.add_function(wrap_pyfunction!(split_for_embedding, module)?)?;
    module.add_function(wrap_pyfunction!(plain_json, module)?)?;
    module.add_function(wrap_pyfunction!(msgpack_end, module)?)?;
    module.add_function(wrap_pyfunction!(compact_vectors, module)?)?;
    module.add_function(wrap_pyfunction!(vector_problem, module)?)?;
    Ok(())
}
