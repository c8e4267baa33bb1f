//! The one place where our errors become Python's: the classes are declared in `memkura.errors`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use memkura_engine::EngineError;
use memkura_index::IndexError;
use memkura_model::{Invalid, InvalidKind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::ending::call_with;

/// What a call into the engine can end in: one of our errors, or one that Python raised on the way.
pub enum Fault {
    /// One of ours.
    Engine(EngineError),
    /// Python's own.
    Python(PyErr),
}

impl Fault {
    /// The same fault in the item at `at` of several.
    pub fn in_item(self, at: usize) -> Self {
        match self {
            Self::Engine(error) => error.in_item(at).into(),
            Self::Python(error) => Self::Python(error),
        }
    }
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<Invalid> for Fault {
    fn from(error: Invalid) -> Self {
        Self::Engine(error.into())
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

/// Runs `work`; our errors become exceptions, and so does a panic, which must never reach Python as itself.
pub fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, Fault>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Fault::Python(error))) => Err(error),
        Ok(Err(Fault::Engine(error))) => Err(exception(py, &error)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message");
            Err(raised(py, "InternalError", text, None, None, "This is a fault of memkura; please report it"))
        }
    }
}

fn exception(py: Python<'_>, error: &EngineError) -> PyErr {
    let plain = |class: &str, advice: &str| raised(py, class, &error.to_string(), None, None, advice);
    match error {
        EngineError::Invalid(invalid) => raised(
            py,
            class_of(invalid.kind),
            &invalid.problem,
            Some(&invalid.field),
            Some(&invalid.value),
            &invalid.advice,
        ),
        EngineError::UnknownContext(name) => raised(
            py,
            "NotFound",
            "no context has this name",
            Some("context_id"),
            Some(name),
            "contexts() tells which there are",
        ),
        EngineError::NotFound { field, id } => raised(
            py,
            "NotFound",
            "there is no such memory in this context",
            Some(field),
            Some(&id.to_string()),
            "Check the id and the context",
        ),
        EngineError::KeyTaken { field, key } => raised(
            py,
            "KeyTaken",
            "names a trusted memory, which an outside source may not change",
            Some(field),
            Some(key),
            "Let a person make the change",
        ),
        EngineError::Closed => plain("StoreClosed", "Open the store again"),
        EngineError::Store(store) => {
            let (class, advice) = class_of_store(store);
            plain(class, advice)
        }
        EngineError::Index(IndexError::Full) => plain("StorageFull", "Free some room and try again"),
        EngineError::Index(_) => {
            plain("StoreError", "Close the store and delete its index folder; it is made again from the record")
        }
        _ => plain("MemkuraError", "Nothing was written; see what the message says"),
    }
}

const fn class_of(kind: InvalidKind) -> &'static str {
    match kind {
        InvalidKind::EmptyQuery => "EmptyQuery",
        InvalidKind::TextTooLong => "TextTooLong",
        InvalidKind::LimitExceeded => "LimitExceeded",
        InvalidKind::UnknownField => "UnknownField",
        InvalidKind::Filter => "InvalidFilter",
        InvalidKind::Vector => "InvalidVector",
        InvalidKind::NothingSelected => "NothingSelected",
        _ => "InvalidInput",
    }
}

fn class_of_store(error: &memkura_engine::StoreError) -> (&'static str, &'static str) {
    use memkura_engine::StoreError as Store;
    match error {
        Store::Busy => ("StoreBusy", "Nothing was written; try again, or raise busy_timeout"),
        Store::Full => {
            ("StorageFull", "Nothing was written; free some room, or purge memories, which works on a full disk")
        }
        Store::Failed(_) => ("StoreFailed", "Close the store and open it again; what was acknowledged before is kept"),
        Store::NotAStore(_) => ("NotAStore", "Give the path of a memkura store, or of a folder that is not there yet"),
        Store::NotABackup(_) => ("NotAStore", "Give a file that backup made"),
        Store::Corrupt(_) | Store::Damaged { .. } => (
            "StoreDamaged",
            "Move the folder aside and restore a backup in its place; what can still be read may be exported before",
        ),
        Store::ReadOnly => ("StoreReadOnly", "Copy the store to where it can be written; reading works here"),
        Store::NotPermitted(_) => {
            ("StoreReadOnly", "Open it as the user that owns it, or copy the store to where you may write")
        }
        Store::LogUnreadable(_) => ("StoreReadOnly", "Copy the store to where it can be written, and open the copy"),
        Store::OnNetwork(_) => {
            ("StoreError", "Put it on a local disk; or say allow_network=True and let one process at a time use it")
        }
        Store::Linked(_) => {
            ("StoreError", "Make it a file of its own: copy it without links; memkura backup copies a store in use")
        }
        Store::InTheWay(_) => ("StoreError", "Name a place where nothing is; nothing is ever overwritten"),
        Store::Tampered(_) => ("StoreTampered", "Do not use this file; restore a backup, or ask where it came from"),
        Store::SchemaTooNew { .. } => ("SchemaTooNew", "Upgrade memkura; nothing was touched"),
        Store::Missing(_) => ("NotAStore", "Check the path, or open with create=True"),
        Store::SqliteTooOld(_) => ("StoreError", "Build memkura with the SQLite that it carries"),
        // What else the system or SQLite may say.
        _ => ("StoreError", "Nothing was written; see what the message says, and run memkura doctor"),
    }
}

fn raised(py: Python<'_>, class: &str, message: &str, field: Option<&str>, value: Option<&str>, advice: &str) -> PyErr {
    let made = || {
        let fields = PyDict::new(py);
        fields.set_item("field", field)?;
        fields.set_item("value", value)?;
        fields.set_item("advice", advice)?;
        let (class, message) = (py.import("memkura.errors")?.getattr(class)?, PyTuple::new(py, [message])?);
        call_with(&class, &message, Some(&fields))
    };
    match made() {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(message.to_owned()),
    }
}
