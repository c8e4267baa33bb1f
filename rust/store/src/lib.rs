//! memkura-store.
