//! memkura-engine.
