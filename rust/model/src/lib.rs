//! memkura-model.
