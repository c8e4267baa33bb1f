//! Instants across the door, exact to the microsecond.

use memkura_model::{Invalid, Timestamp};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::ending::call;
use crate::error::Fault;

/// Python's 1970-01-01T00:00Z, and its `timedelta`.
struct Calendar {
    epoch: Py<PyAny>,
    timedelta: Py<PyAny>,
}

static CALENDAR: PyOnceLock<Calendar> = PyOnceLock::new();

fn calendar(py: Python<'_>) -> PyResult<&'static Calendar> {
    CALENDAR.get_or_try_init(py, || {
        let datetime = py.import("datetime")?;
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        let epoch = datetime.getattr("datetime")?.call_method1("fromtimestamp", (0, utc))?;
        Ok(Calendar { epoch: epoch.unbind(), timedelta: datetime.getattr("timedelta")?.unbind() })
    })
}

/// The `datetime` in UTC for an instant.
pub fn to_python(py: Python<'_>, instant: Timestamp) -> PyResult<Bound<'_, PyAny>> {
    let calendar = calendar(py)?;
    let delta =
        calendar.timedelta.bind(py).call1((0, instant.0.div_euclid(1_000_000), instant.0.rem_euclid(1_000_000)))?;
    calendar.epoch.bind(py).add(delta)
}

/// The instant that a `datetime` with an offset, or an RFC 3339 text, names.
pub fn from_python(value: &Bound<'_, PyAny>, field: &str) -> Result<Timestamp, Fault> {
    let py = value.py();
    if let Ok(text) = value.extract::<String>() {
        return Ok(Timestamp::parse(&text).map_err(|fault| Invalid { field: field.to_owned(), ..fault })?);
    }
    let wrong = || {
        // A datetime asks its zone for the offset when it is shown, too.
        let shown = value.str().map_or_else(|_| value.get_type().to_string(), |text| text.to_string());
        Invalid::value(
            field,
            "names no instant",
            shown,
            "Give a datetime with an offset, such as datetime.now(timezone.utc)",
        )
    };
    // A zone is somebody's own code, too.
    let since = |epoch: &Bound<'_, PyAny>| {
        if call(&value.getattr("utcoffset")?, &PyTuple::empty(py))?.is_none() {
            return Ok(None);
        }
        let delta = call(&value.getattr("__sub__")?, &PyTuple::new(py, [epoch])?)?;
        let part = |name: &str| delta.getattr(name)?.extract::<i64>();
        PyResult::Ok(Some((part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?))
    };
    match since(calendar(py)?.epoch.bind(py)) {
        Ok(Some(micros)) => Ok(Timestamp::from_micros(field, micros)?),
        Ok(None) => Err(wrong().into()),
        // What is no exception proper, an interrupt above all, is none of the value's.
        Err(error) if error.is_instance_of::<PyException>(py) => Err(wrong().into()),
        Err(error) => Err(error.into()),
    }
}

/// Reads the caller's clock, or the system's when there is none.
pub fn now(py: Python<'_>, clock: Option<&Py<PyAny>>) -> Result<Timestamp, Fault> {
    match clock {
        Some(clock) => from_python(&call(clock.bind(py), &PyTuple::empty(py))?, "clock"),
        None => Ok(system_now()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where the system's clock enters")]
fn system_now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| since.as_micros() as i64))
}

/// Puts an optional instant into a dictionary.
pub fn put(fields: &Bound<'_, PyDict>, name: &str, instant: Option<Timestamp>) -> PyResult<()> {
    let py = fields.py();
    fields.set_item(name, instant.map(|instant| to_python(py, instant)).transpose()?)
}
