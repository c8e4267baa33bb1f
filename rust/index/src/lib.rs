//! memkura-index.

pub mod vector;
