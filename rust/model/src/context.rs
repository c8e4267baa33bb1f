//! What a memory belongs to. Contexts isolate (I5).

use crate::drawer::check_name;
use crate::limits::NAME_BYTES_MAX;
use crate::{Invalid, Origin};

/// One context: a partition of the store with a literal name and an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The record's number for it.
    pub number: i64,
    /// Its name, compared code point by code point.
    pub name: String,
    /// Whether what it holds is our own or comes from outside.
    pub origin: Origin,
}

/// Names that begin so are kept for our own use.
const RESERVED_PREFIX: &str = "memkura:";

/// Checks a context's name. It is literal: no character in it is ever syntax.
///
/// # Errors
/// When it is blank, too long, holds a control character, or begins with `memkura:`.
pub fn check_context_name(name: &str) -> Result<(), Invalid> {
    check_name("context_id", name, NAME_BYTES_MAX)?;
    if name.starts_with(RESERVED_PREFIX) {
        return Err(Invalid::value(
            "context_id",
            "begins with a reserved prefix",
            name,
            "Choose a name that does not begin with memkura:",
        ));
    }
    Ok(())
}
