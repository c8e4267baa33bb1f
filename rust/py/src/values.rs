//! JSON-like values and texts across the door.

use memkura_model::limits::{FILTER_CONDITIONS_MAX, FILTER_VALUES_MAX, METADATA_BYTES_MAX, METADATA_DEPTH_MAX};
use memkura_model::{Invalid, Timestamp};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

use crate::clock;
use crate::error::Fault;

/// What a dictionary is for, which decides what may stand in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Values come back with the same type, so only what JSON has may go in.
    Metadata,
    /// Values are only compared: instants may be `datetime`s and lists may be tuples or sets.
    Filter,
}

impl Use {
    /// Most values that are read at all, those that hold others included: the exact bounds are the model's.
    const fn values_max(self) -> usize {
        match self {
            // In JSON each takes two bytes, with the comma.
            Self::Metadata => METADATA_BYTES_MAX / 2,
            // A condition is an object in an object, with a list.
            Self::Filter => FILTER_VALUES_MAX + 4 * FILTER_CONDITIONS_MAX,
        }
    }
}

/// Deepest nesting that is read at all, whatever it is for: the exact bounds are the model's.
const DEPTH_MAX: usize = METADATA_DEPTH_MAX + 40;

/// The object in a Python mapping; `path` names it in errors.
pub fn object(value: &Bound<'_, PyAny>, path: &str, purpose: Use) -> Result<Map<String, Value>, Fault> {
    match (Reading { purpose, left: purpose.values_max() }).json(value, path, 0)? {
        Value::Object(object) => Ok(object),
        _ => Err(Invalid::value(path, "is not a mapping", value.get_type(), "Give a dict").into()),
    }
}

/// A value being read.
struct Reading {
    purpose: Use,
    /// How many more values it may hold.
    left: usize,
}

impl Reading {
    fn json(&mut self, value: &Bound<'_, PyAny>, path: &str, depth: usize) -> Result<Value, Fault> {
        self.count(path)?;
        if depth > DEPTH_MAX {
            return Err(Invalid::over_limit(short(path), depth, DEPTH_MAX, "levels").into());
        }
        if value.is_none() {
            return Ok(Value::Null);
        }
        if let Ok(value) = value.cast_exact::<PyBool>() {
            return Ok(Value::Bool(value.is_true()));
        }
        if value.is_instance_of::<PyString>() {
            return Ok(Value::String(name(value, path)?));
        }
        if let Ok(value) = value.cast_exact::<PyInt>() {
            let number = value.extract::<i64>();
            return number.map(Value::from).map_err(|_| {
                Invalid::value(short(path), "is an integer outside the signed 64 bits", value, "Write it as text")
                    .into()
            });
        }
        if let Ok(value) = value.cast_exact::<PyFloat>() {
            let number = Number::from_f64(value.value());
            return number.map(Value::Number).ok_or_else(|| {
                Invalid::value(short(path), "is not a finite number", value, "Give a finite number").into()
            });
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            return self.items(list.iter(), path, depth);
        }
        if let Ok(mapping) = value.cast::<PyDict>() {
            let mut object = Map::new();
            let path = &short(path);
            for (key, item) in mapping {
                let key = key.cast::<PyString>().map_err(|_| {
                    Invalid::value(short(path), "has a key that is not a text", &key, "Use texts as keys")
                })?;
                let key = name(key, path)?;
                let item = self.json(&item, &format!("{path}.{key}"), depth + 1)?;
                object.insert(key, item);
            }
            return Ok(Value::Object(object));
        }
        if self.purpose == Use::Filter {
            // A number of numpy's, say: it is only compared.
            if value.hasattr("__float__")? {
                let number = value.extract::<f64>().ok().and_then(Number::from_f64);
                let wrong = || Invalid::value(short(path), "is not a finite number", value, "Give a finite number");
                return Ok(Value::Number(number.ok_or_else(wrong)?));
            }
            if value.hasattr("utcoffset")? {
                if path.contains("metadata.") {
                    let advice = "Give the text or number that was stored";
                    let problem = "is an instant, which metadata does not hold";
                    return Err(Invalid::value(short(path), problem, value, advice).into());
                }
                return Ok(Value::String(clock::from_python(value, path)?.to_string()));
            }
            if value.is_instance_of::<PyTuple>()
                || value.is_instance_of::<pyo3::types::PySet>()
                || value.is_instance_of::<pyo3::types::PyFrozenSet>()
            {
                let all = value.try_iter()?.collect::<PyResult<Vec<_>>>()?;
                return self.items(all.into_iter(), path, depth);
            }
        }
        Err(Invalid::value(
            short(path),
            "has a type that cannot come back as it was",
            value.get_type(),
            "Use None, bool, int, float, str, list or dict",
        )
        .into())
    }

    fn items<'py>(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        path: &str,
        depth: usize,
    ) -> Result<Value, Fault> {
        // A long name above a long list would be written out for each of its items.
        let path = short(path);
        let items = items.enumerate().map(|(at, item)| self.json(&item, &format!("{path}[{at}]"), depth + 1));
        Ok(Value::Array(items.collect::<Result<_, _>>()?))
    }

    /// Counts a value before it is read: what is too much is refused before it has cost anything.
    fn count(&mut self, path: &str) -> Result<(), Fault> {
        let max = self.purpose.values_max();
        self.left =
            self.left.checked_sub(1).ok_or_else(|| Invalid::over_limit(short(path), max + 1, max, "values in all"))?;
        Ok(())
    }
}

/// A path fit for a message, however deep it led.
fn short(path: &str) -> String {
    path.chars().take(120).collect()
}

/// A text that must be legal as it is: a name, a key, a value.
pub fn name(value: &Bound<'_, PyAny>, field: &str) -> Result<String, Fault> {
    let text = value
        .cast::<PyString>()
        .map_err(|_| Invalid::value(short(field), "is not a text", value.get_type(), "Give a str"))?;
    text.extract::<String>().map_err(|_| {
        Invalid::value(short(field), "holds half a surrogate pair", "a text that is not Unicode", "Mend the text")
            .into()
    })
}

/// A text of which half surrogate pairs, which no encoding can hold, become U+FFFD; and whether any did.
pub fn mended(value: &Bound<'_, PyAny>, field: &str) -> Result<(String, bool), Fault> {
    let text =
        value.cast::<PyString>().map_err(|_| Invalid::value(field, "is not a text", value.get_type(), "Give a str"))?;
    if let Ok(text) = text.extract::<String>() {
        return Ok((text, false));
    }
    let bytes: Vec<u8> = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?.extract()?;
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    Ok((char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect(), true))
}

/// The Python value for JSON.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::String(text) => text.into_bound_py_any(py),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into_bound_py_any(py),
            None => number.as_f64().unwrap_or_default().into_bound_py_any(py),
        },
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_bound_py_any(py)
        }
        Value::Object(object) => dictionary(py, object)?.into_bound_py_any(py),
    }
}

/// The Python dictionary for a JSON object.
pub fn dictionary<'py>(py: Python<'py>, object: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (key, value) in object {
        out.set_item(key, to_python(py, value)?)?;
    }
    Ok(out)
}

/// An optional instant.
pub fn instant(value: &Bound<'_, PyAny>, field: &str) -> Result<Option<Timestamp>, Fault> {
    if value.is_none() { Ok(None) } else { clock::from_python(value, field).map(Some) }
}
