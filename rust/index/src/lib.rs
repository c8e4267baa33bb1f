//! Copies of the record for speed: delete them and lose nothing.
pub mod tokens;
pub mod vector;
