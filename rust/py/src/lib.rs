//! memkura-py.
