//! memkura-index: copies of the record kept for speed.
//!
//! Everything here can be deleted and built again from the record.

pub mod tokens;
