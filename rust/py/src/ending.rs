//! Calls into Python code, by threads that may be in it when the interpreter ends.
//!
//! Before 3.14, Python takes a daemon thread back with `pthread_exit` wherever it next waits for the interpreter, which unwinds
//! the stack from within whatever called into Python. PyO3 stops a thread that comes back from work of its own, and declares the
//! rest of Python's functions as ones that never unwind: caught or dropped through, it aborts the process.

use std::hint::black_box;
use std::thread::{panicking, park};

use pyo3::ffi::{PyObject, PyObject_Call};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::error::Fault;

/// Lets nothing past when it is dropped but a panic: the thread stays here, and ends with the process.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        while !panicking() {
            park();
        }
    }
}

/// As [`PyObject_Call`], of which the compiler may not assume that it always returns.
type Call = unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;

/// What `callable` answers. Where Python ends meanwhile, this never returns.
pub fn call<'py>(callable: &Bound<'py, PyAny>, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    call_with(callable, arguments, None)
}

/// [`call`], with arguments by name.
pub fn call_with<'py>(
    callable: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let named = named.map_or(std::ptr::null_mut(), Bound::as_ptr);
    #[expect(unsafe_code, reason = "PyO3 has no call that may be unwound")]
    // SAFETY: the two types differ in that one may unwind; the three objects live as long as their references here, and the
    // answer is a new reference, or null with an exception set.
    unsafe {
        let call: Call = std::mem::transmute(black_box(PyObject_Call as *const ()));
        let ended = Ended;
        let answer = call(callable.as_ptr(), arguments.as_ptr(), named);
        std::mem::forget(ended);
        Bound::from_owned_ptr_or_err(callable.py(), answer)
    }
}

/// The items of somebody's sequence, and no more than `max` of them, since it may have no end; `wrong` when it is none.
pub fn listed<'py>(
    value: &Bound<'py, PyAny>,
    max: usize,
    wrong: impl FnOnce() -> Fault,
) -> Result<Vec<Bound<'py, PyAny>>, Fault> {
    let py = value.py();
    let islice = py.import("itertools")?.getattr("islice")?;
    let items = call(&islice, &(value, max).into_pyobject(py)?).map_err(|_| wrong())?;
    let listed = call(py.get_type::<PyList>().as_any(), &PyTuple::new(py, [items])?)?;
    Ok(listed.cast_into::<PyList>().map_err(PyErr::from)?.iter().collect())
}
