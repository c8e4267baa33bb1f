//! Values that filters compare: exact across integers and floats, never across types.

use std::cmp::Ordering;

use serde_json::Value;

/// One comparable value. Different types are never equal: `true` is not 1, and "1" is not 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// A number; 1 and 1.0 are equal.
    Number(Number),
    /// A text, compared code point by code point.
    Text(String),
    /// An object or a list. It is there, and equals nothing that a filter can name.
    Composite,
}

impl Scalar {
    /// The scalar in a JSON value; `None` for null, lists and objects.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Number(number) => {
                let number = number.as_i64().map(Number::Int).or_else(|| number.as_f64().map(Number::Float))?;
                Some(Self::Number(number))
            }
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// What a place in metadata holds; `None` for null.
    #[must_use]
    pub fn held(value: &Value) -> Option<Self> {
        match value {
            Value::Array(_) | Value::Object(_) => Some(Self::Composite),
            value => Self::from_json(value),
        }
    }

    /// Whether both have one type, so that an order between them means something.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Self::Number(Number::Float(value))
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Self::Number(Number::Int(value))
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A number whose order is exact: 9007199254740993 is not 9007199254740992.0.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// A signed 64-bit integer.
    Int(i64),
    /// A finite float.
    Float(f64),
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (Self::Int(one), Self::Int(other)) => one.cmp(&other),
            // -0.0 and 0.0 are one number; NaN never enters.
            (Self::Float(one), Self::Float(other)) => one.partial_cmp(&other).unwrap_or(Ordering::Equal),
            (Self::Int(one), Self::Float(other)) => compare(one, other),
            (Self::Float(one), Self::Int(other)) => compare(other, one).reverse(),
        }
    }
}

fn compare(integer: i64, float: f64) -> Ordering {
    /// The first float beyond `i64`.
    const END: f64 = 9_223_372_036_854_775_808.0;
    if float >= END {
        Ordering::Less
    } else if float < -END {
        Ordering::Greater
    } else {
        let whole = float.trunc();
        integer.cmp(&(whole as i64)).then(0.0_f64.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal))
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integers and floats compare exactly, beyond 2^53 too.
    #[test]
    fn numbers_compare_exactly() {
        assert_eq!(Number::Int(1), Number::Float(1.0));
        assert_ne!(Number::Int(9_007_199_254_740_993), Number::Float(9_007_199_254_740_992.0));
        assert!(Number::Int(1) < Number::Float(1.5));
        assert!(Number::Int(-1) > Number::Float(-1.5));
        assert!(Number::Int(i64::MAX) < Number::Float(1e19));
        assert!(Number::Int(i64::MIN) > Number::Float(-1e19));
    }

    /// Types never mix.
    #[test]
    fn types_never_mix() {
        assert_ne!(Scalar::Bool(true), Scalar::from(1_i64));
        assert_ne!(Scalar::from("1"), Scalar::from(1_i64));
    }
}
