//! The filter language: what may be asked, and what it means.
//!
//! A filter is a JSON object. Each member is a condition, and all must hold: a bare value means equality, an object
//! gives operators (`eq`, `in`, `gt`, `gte`, `lt`, `lte`, `exists`), and `and`, `or`, `not` combine filters. Fields are
//! the record's own, `tags` (holds when any tag does), and `metadata.<path>`, where a path is taken literally.
//! [`Filter::matches`] is the meaning; the index compiles the same tree to bitmaps and a test holds the two together.

mod field;
mod parse;
mod scalar;

pub use field::{Field, NumberField, TextField, TimeField};
pub use parse::parse;
pub use scalar::{Number, Scalar};

use crate::Memory;

/// A condition over memories.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Every part holds; the empty one always does.
    All(Vec<Filter>),
    /// At least one part holds; the empty one never does.
    Any(Vec<Filter>),
    /// The part does not hold.
    Not(Box<Filter>),
    /// A value of the field passes the test.
    Test(Field, Test),
}

/// What one value of a field must be.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Equal to one of these.
    In(Vec<Scalar>),
    /// Within bounds. Values of another type than the bounds lie outside.
    Range(Range),
    /// The field has a value (`true`) or has none (`false`).
    Exists(bool),
}

/// Bounds of a range; each is a value and whether it is itself inside.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Range {
    /// The lower bound.
    pub low: Option<(Scalar, bool)>,
    /// The upper bound.
    pub high: Option<(Scalar, bool)>,
}

impl Range {
    /// Whether `value` has the bounds' type and lies within them.
    #[must_use]
    pub fn contains(&self, value: &Scalar) -> bool {
        let above = self
            .low
            .as_ref()
            .is_none_or(|(low, inside)| value.is_like(low) && (value > low || (*inside && value == low)));
        let below = self
            .high
            .as_ref()
            .is_none_or(|(high, inside)| value.is_like(high) && (value < high || (*inside && value == high)));
        above && below
    }
}

impl Test {
    /// Whether a field with these values passes.
    #[must_use]
    pub fn passes(&self, values: &[Scalar]) -> bool {
        match self {
            Self::In(wanted) => values.iter().any(|value| wanted.contains(value)),
            Self::Range(range) => values.iter().any(|value| range.contains(value)),
            Self::Exists(wanted) => values.is_empty() != *wanted,
        }
    }
}

impl Filter {
    /// The filter that every memory passes.
    #[must_use]
    pub fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// Whether its form alone says that every memory passes: it has no condition, or denies one that nothing could meet.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(Self::is_everything),
            Self::Any(parts) => parts.iter().any(Self::is_everything),
            Self::Not(part) => part.is_nothing(),
            Self::Test(..) => false,
        }
    }

    fn is_nothing(&self) -> bool {
        match self {
            Self::All(parts) => parts.iter().any(Self::is_nothing),
            Self::Any(parts) => parts.iter().all(Self::is_nothing),
            Self::Not(part) => part.is_everything(),
            Self::Test(_, test) => matches!(test, Test::In(values) if values.is_empty()),
        }
    }

    /// Whether `memory` passes.
    #[must_use]
    pub fn matches(&self, memory: &Memory) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(memory)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(memory)),
            Self::Not(part) => !part.matches(memory),
            Self::Test(field, test) => test.passes(&field.values(memory)),
        }
    }
}
