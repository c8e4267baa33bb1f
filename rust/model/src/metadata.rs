//! The caller's own fields on a memory: JSON that comes back exactly as it was given.

use serde_json::{Map, Value};

use crate::Invalid;
use crate::limits::{METADATA_BYTES_MAX, METADATA_DEPTH_MAX, METADATA_PATHS_BYTES_MAX};

/// A checked JSON object, kept as its text: most reads never look inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata(String);

/// Names that speak of trust. Callers cannot claim them (I6), so metadata may not look as if they had.
const RESERVED: [&str; 4] = ["trust_tier", "provenance", "source_type", "trust"];

impl Default for Metadata {
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl Metadata {
    /// Checks an object given as `field`: nesting, size, reserved names and the numbers that every backend can give back.
    ///
    /// # Errors
    /// Names the path of the first value at fault.
    pub fn new(field: &str, object: &Map<String, Value>) -> Result<Self, Invalid> {
        // First, and the paths before any is made.
        let text = serde_json::to_string(object)
            .map_err(|error| Invalid::value(field, error.to_string(), "an object", "Give JSON-like values"))?;
        if text.len() > METADATA_BYTES_MAX {
            return Err(Invalid::over_limit(field, text.len(), METADATA_BYTES_MAX, "bytes as JSON"));
        }
        let paths = object.iter().map(|(name, value)| paths_bytes(name.len(), value, 1)).sum();
        if paths > METADATA_PATHS_BYTES_MAX {
            return Err(Invalid::over_limit(field, paths, METADATA_PATHS_BYTES_MAX, "bytes of paths"));
        }
        for (name, value) in object {
            let path = format!("{field}.{name}");
            if RESERVED.contains(&name.as_str()) {
                return Err(Invalid::value(
                    path,
                    "is a reserved name",
                    name,
                    "Trust is stamped by the engine; choose another name",
                ));
            }
            check_named(&path, name, value, 1)?;
        }
        Ok(Self(text))
    }

    /// Takes text that this type wrote earlier, as it stands in the record.
    #[must_use]
    pub fn from_record(text: String) -> Self {
        Self(text)
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == "{}"
    }

    /// The object, parsed. Text that somebody broke by hand in the record reads as empty.
    #[must_use]
    pub fn object(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Every value inside with its path, objects and lists as such and by what they hold: what filters can ask for.
    #[must_use]
    pub fn leaves(&self) -> Vec<(String, Value)> {
        let mut out = Vec::new();
        if !self.is_empty() {
            for (name, value) in self.object() {
                collect(name, value, &mut out);
            }
        }
        out
    }
}

/// How long the paths of a value and of all in it are together, when its own has `path` bytes. What lies too deep has none:
/// it is refused.
fn paths_bytes(path: usize, value: &Value, depth: usize) -> usize {
    let inside = match value {
        _ if depth > METADATA_DEPTH_MAX => 0,
        Value::Array(items) => items.iter().map(|item| paths_bytes(path, item, depth + 1)).sum(),
        Value::Object(object) => {
            object.iter().map(|(name, item)| paths_bytes(path + 1 + name.len(), item, depth + 1)).sum()
        }
        _ => 0,
    };
    path + inside
}

fn check(path: &str, value: &Value, depth: usize) -> Result<(), Invalid> {
    if depth > METADATA_DEPTH_MAX {
        return Err(Invalid::over_limit(path, depth, METADATA_DEPTH_MAX, "levels"));
    }
    match value {
        Value::Number(number) if !number.is_f64() && number.as_i64().is_none() => {
            Err(Invalid::value(path, "is an integer outside the signed 64 bits", number, "Write it as text"))
        }
        Value::String(text) if text.contains('\0') => {
            Err(Invalid::value(path, "holds U+0000", format!("{text:?}"), "Take it out"))
        }
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(at, item)| check(&format!("{path}[{at}]"), item, depth + 1))
        }
        Value::Object(object) => {
            object.iter().try_for_each(|(name, item)| check_named(&format!("{path}.{name}"), name, item, depth + 1))
        }
        _ => Ok(()),
    }
}

fn check_named(path: &str, name: &str, value: &Value, depth: usize) -> Result<(), Invalid> {
    if name.contains('\0') {
        return Err(Invalid::value(path, "has a key with U+0000", format!("{name:?}"), "Take it out"));
    }
    check(path, value, depth)
}

fn collect(path: String, value: Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Array(items) => {
            out.push((path.clone(), Value::Array(Vec::new())));
            items.into_iter().for_each(|item| collect(path.clone(), item, out));
        }
        Value::Object(object) => {
            out.push((path.clone(), Value::Object(Map::new())));
            object.into_iter().for_each(|(name, item)| collect(format!("{path}.{name}"), item, out));
        }
        scalar => out.push((path, scalar)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(object) = value else { panic!("an object is needed") };
        object
    }

    /// Values come back with value and type.
    #[test]
    fn values_round_trip_with_their_type() {
        let given = object(
            json!({"a": 9_007_199_254_740_993_i64, "b": i64::MIN, "c": true, "d": 1, "e": 1.0, "f": "1", "g": null, "h": [], "i": {}, "j": 0.1}),
        );
        assert_eq!(Metadata::new("metadata", &given).unwrap().object(), given);
    }

    /// Claims of trust are refused by name.
    #[test]
    fn claim_of_trust_is_refused() {
        let refused = Metadata::new("metadata", &object(json!({"trust_tier": "trusted"}))).unwrap_err();
        assert_eq!(refused.field, "metadata.trust_tier");
    }

    /// An integer that a signed 64-bit column cannot hold is refused with its path.
    #[test]
    fn huge_integer_is_refused_with_its_path() {
        let refused = Metadata::new("metadata", &object(json!({"x": {"y": [1, u64::MAX]}}))).unwrap_err();
        assert_eq!(refused.field, "metadata.x.y[1]");
    }

    /// Nesting is bounded on both sides of the limit.
    #[test]
    fn nesting_is_bounded() {
        let nested = |levels: usize| (1..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(Metadata::new("metadata", &object(json!({"x": nested(METADATA_DEPTH_MAX)}))).is_ok());
        assert!(Metadata::new("metadata", &object(json!({"x": nested(METADATA_DEPTH_MAX + 1)}))).is_err());
    }
}
