//! What the rules of recall take: `cargo bench -p memkura-model [-- FILTER]`.
//!
//! Fusion of what a search looks at, ageing of a million rows to their ten best, and reading a filter.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use memkura_model::Timestamp;
use memkura_model::filter::parse;
use memkura_model::recall::{Ageing, Candidate, Curve, Fusion, Weights, fuse};
use serde_json::{Map, Value};

const POOL: usize = 200;
const ROWS: usize = 1_000_000;
const BEST: usize = 10;
const MICROS_PER_HOUR: i64 = 3_600_000_000;

/// From 0 to 1, all over it and the same in every run.
fn spread(at: usize) -> f64 {
    (at * 7_919 % 10_007) as f64 / 10_007.0
}

fn fusion(criterion: &mut Criterion) {
    let candidate = |at: usize| Candidate {
        is_pooled: true,
        text: 12.0 * spread(at),
        vector: Some(spread(at + POOL)),
        feedback: 0.0,
        text_rank: Some(at + 1),
        vector_rank: Some(POOL - at),
    };
    let pool: Vec<Candidate> = (0..POOL).map(candidate).collect();
    let mut group = criterion.benchmark_group(format!("fusion/{POOL}"));
    for (name, fusion) in [("score", Fusion::Score), ("rrf", Fusion::Rrf)] {
        let weights = Weights::of(fusion);
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| fuse(fusion, weights, black_box(&pool)));
        });
    }
}

/// What ageing looks at, column by column.
struct Columns {
    rates: Vec<f64>,
    fresh_from: Vec<Timestamp>,
    importance: Vec<f64>,
    relevance: Vec<f64>,
}

impl Columns {
    /// The best rows by aged score, the earlier first where scores are equal.
    fn best(&self, curve: Curve, now: Timestamp) -> Vec<(f64, usize)> {
        let mut best: Vec<(f64, usize)> = Vec::with_capacity(BEST + 1);
        let columns = self.rates.iter().zip(&self.fresh_from).zip(&self.importance).zip(&self.relevance);
        for (row, (((rate, from), importance), relevance)) in columns.enumerate() {
            let score = Ageing::new(curve, *rate, *from, now, *importance).apply(*relevance);
            if best.len() < BEST || score > best[BEST - 1].0 {
                let place = best.partition_point(|(better, _)| *better >= score);
                best.insert(place, (score, row));
                best.truncate(BEST);
            }
        }
        best
    }
}

fn ageing(criterion: &mut Criterion) {
    let rows = || 0..ROWS;
    let columns = Columns {
        rates: rows().map(|row| 0.02 * spread(row)).collect(),
        fresh_from: rows().map(|row| Timestamp((row % 5_003) as i64 * MICROS_PER_HOUR)).collect(),
        importance: rows().map(|row| spread(row / 3)).collect(),
        relevance: rows().map(|row| spread(row / 7)).collect(),
    };
    let now = Timestamp(5_003 * MICROS_PER_HOUR);
    let mut group = criterion.benchmark_group(format!("ageing/{ROWS}"));
    for (name, curve) in [("linear", Curve::Linear), ("exponential", Curve::Exponential)] {
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| columns.best(black_box(curve), now));
        });
    }
}

fn filter(criterion: &mut Criterion) {
    let filter: Map<String, Value> = serde_json::from_str(include_str!("filter.json")).expect("an object");
    criterion.bench_function("filter/parse", |bencher| bencher.iter(|| parse(black_box(&filter)).expect("a filter")));
}

criterion_group!(benches, fusion, ageing, filter);
criterion_main!(benches);
