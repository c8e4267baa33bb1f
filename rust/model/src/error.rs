//! What can be wrong with a value that a caller gave.

use std::fmt;

/// A value that cannot be taken: which field, what it was, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem} (got {value}). {advice}")]
pub struct Invalid {
    /// The kind of fault; the Python side has one exception for each.
    pub kind: InvalidKind,
    /// The argument or field, as the caller wrote it (`metadata.owner`).
    pub field: String,
    /// What is wrong, in a few words.
    pub problem: String,
    /// A short rendering of the value.
    pub value: String,
    /// What the caller can do next.
    pub advice: String,
}

/// The kinds of bad input that callers may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidKind {
    /// The value has the wrong type or lies outside what is allowed: correct it.
    Value,
    /// The query has nothing to search for: give a query or an embedding.
    EmptyQuery,
    /// A text is longer than its limit: split it.
    TextTooLong,
    /// Another documented limit was passed: send less.
    LimitExceeded,
    /// A field, operator or argument is not known: correct its name.
    UnknownField,
    /// A filter has the wrong form: see the filter page.
    Filter,
    /// A vector is zero, not finite or of the wrong length: correct the embedder.
    Vector,
    /// A removal did not say what to remove: name ids or filters.
    NothingSelected,
}

/// How much of an offending value is shown: enough to recognise it, never a whole document.
const SHOWN_CHARS: usize = 60;

impl Invalid {
    /// A fault of `kind` in `field`; `value` is shortened.
    pub fn new(
        kind: InvalidKind,
        field: impl Into<String>,
        problem: impl Into<String>,
        value: impl fmt::Display,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            field: field.into(),
            problem: problem.into(),
            value: shortened(&value.to_string()),
            advice: advice.into(),
        }
    }

    /// The value has the wrong type or lies outside what is allowed.
    pub fn value(
        field: impl Into<String>,
        problem: impl Into<String>,
        value: impl fmt::Display,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(InvalidKind::Value, field, problem, value, advice)
    }

    /// The same fault in the item at `at` of several.
    #[must_use]
    pub fn in_item(self, at: usize) -> Self {
        Self { field: format!("[{at}].{}", self.field), ..self }
    }

    /// `actual` (in `unit`) is over the limit `max` of `field`.
    pub fn over_limit(field: impl Into<String>, actual: usize, max: usize, unit: &str) -> Self {
        let problem = format!("has {actual} {unit}, the limit is {max}");
        Self::new(InvalidKind::LimitExceeded, field, problem, actual, "Send less; nothing is ever cut in silence")
    }

    /// The text in `field` has `actual` bytes, more than `max`.
    pub fn too_long(field: impl Into<String>, actual: usize, max: usize) -> Self {
        let problem = format!("has {actual} bytes, the limit is {max}");
        Self::new(InvalidKind::TextTooLong, field, problem, actual, "Shorten the text, or split it into several")
    }
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A huge value is shown in part, cut between characters.
    #[test]
    fn long_value_is_shown_in_part() {
        let invalid = Invalid::value("summary", "is odd", "あ".repeat(1000), "Mend it");
        assert_eq!(invalid.value.chars().count(), SHOWN_CHARS + 1);
    }
}
