//! Queries as tests and benches ask them.

use memkura_index::Query;
use memkura_index::vector::UnitQuery;
use memkura_model::recall::{Curve, Fusion, Weights};
use memkura_model::{Filter, Timestamp};

/// A search for the ten best by these legs.
pub fn query<'a>(text: Option<&'a str>, vector: Option<&'a UnitQuery>, filter: &'a Filter) -> Query<'a> {
    Query {
        text,
        vector,
        keys: None,
        filter,
        now: Timestamp(1_000_000),
        k: 10,
        fusion: Fusion::Score,
        weights: Weights::of(Fusion::Score),
        curve: Curve::Linear,
        neighbours: false,
        include_superseded: false,
        min_similarity: None,
    }
}
