//! memkura-index.
