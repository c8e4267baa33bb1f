//! The exact-match drawer: one key names one memory of a context and scope.

use crate::limits::NAME_BYTES_MAX;
use crate::{Invalid, fold};

/// The form of `key` that is unique within its context and scope: folded, so that forms of one name are one key.
///
/// # Errors
/// When the key is blank, holds a control character, or is longer than [`NAME_BYTES_MAX`].
pub fn folded_key(key: &str) -> Result<String, Invalid> {
    check_name("key", key, NAME_BYTES_MAX)?;
    Ok(fold(key))
}

/// Checks a one-line name given as `field`, of at most so many bytes.
pub(crate) fn check_name(field: &str, name: &str, bytes_max: usize) -> Result<(), Invalid> {
    if name.trim().is_empty() {
        return Err(Invalid::value(field, "is blank", format!("{name:?}"), "Give at least one visible character"));
    }
    if name.len() > bytes_max {
        return Err(Invalid::over_limit(field, name.len(), bytes_max, "bytes"));
    }
    if name.chars().any(char::is_control) {
        return Err(Invalid::value(
            field,
            "holds a control character",
            format!("{name:?}"),
            "Names are one line of visible text",
        ));
    }
    Ok(())
}
