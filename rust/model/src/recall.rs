//! How results are ordered: the fusion of two legs, ageing, and the total order.

mod ageing;
mod fusion;

pub use ageing::{Ageing, Curve, FRESHNESS_SHARE, IMPORTANCE_SHARE};
pub use fusion::{Candidate, Fusion, RRF_K, Weights, fuse};
