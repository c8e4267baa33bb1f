//! The door between Python and memkura: reads arguments, lets go of the interpreter, calls one verb, converts the answer.
//!
//! Nothing with an invariant lives here, and nothing that calls the user's own Python but the clock and what reads arguments.

mod arguments;
mod clock;
mod embedding;
mod ending;
mod engine;
mod error;
mod memory;
mod module;
mod shape;
mod transfer;
mod values;
