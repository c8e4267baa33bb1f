//! What a search of one context takes, leg by leg: `cargo bench -p memkura-index [-- FILTER]`.
//!
//! Seeded memories with words that are frequent and rare as in any language, and 384 numbers around as many centres as one
//! in 200 memories. Filters keep one tag in 10 and one in 100.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use memkura_index::vector::UnitQuery;
use memkura_index::{Build, Partition, Query};
use memkura_model::filter::parse;
use memkura_model::recall::{Curve, Fusion, Weights};
use memkura_model::{Filter, Memory, Timestamp};
use serde_json::json;

#[path = "../tests/made/mod.rs"]
mod made;

const DIMENSIONS: usize = 384;
const WORDS: f64 = 5_000.0;
const NEAR_ONE_CENTRE: u32 = 200;

/// Numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: u32) -> u32 {
        (self.unit() * f64::from(end)) as u32
    }

    /// Small ranks far more often than large ones.
    fn words(&mut self, count: u32) -> String {
        let word = |rank: f64| format!("w{} ", rank as u32);
        (0..count).map(|_| word(WORDS.powf(self.unit()))).collect()
    }

    /// Near enough to normal.
    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| (self.unit() + self.unit() + self.unit() - 1.5) as f32).collect()
    }

    fn near(&mut self, centre: &[f32]) -> Vec<f32> {
        self.vector().iter().zip(centre).map(|(x, centre)| x + centre).collect()
    }
}

struct Load {
    partition: Partition,
    questions: Vec<(String, UnitQuery)>,
}

fn load(memories: u32) -> Load {
    let mut chance = Chance(7);
    let centres: Vec<Vec<f32>> = (0..memories.div_ceil(NEAR_ONE_CENTRE)).map(|_| chance.vector()).collect();
    let mut build = Build::new(Some(DIMENSIONS));
    let any = |chance: &mut Chance| chance.below(centres.len() as u32) as usize;
    for row in 0..memories {
        let words = 8 + chance.below(32);
        let tags = vec![format!("ten{}", chance.below(10)), format!("hundred{}", chance.below(100))];
        let memory = Memory { tags, ..made::memory(row.into(), chance.words(words)) };
        let at = any(&mut chance);
        build.put(&memory, Some(&chance.near(&centres[at]))).expect("rows come in order");
    }
    let questions = (0..64).map(|_| {
        let at = any(&mut chance);
        (chance.words(6), UnitQuery::new(&chance.near(&centres[at]), DIMENSIONS).expect("a direction"))
    });
    let questions = questions.collect();
    Load { partition: build.finish(), questions }
}

fn legs(criterion: &mut Criterion) {
    let filter = |tag: &str| parse(json!({"tags": tag}).as_object().expect("an object")).expect("a filter");
    let filters = [("all", Filter::everything()), ("tenth", filter("ten3")), ("hundredth", filter("hundred3"))];
    for memories in [10_000, 100_000] {
        let Load { partition, questions } = load(memories);
        for leg in ["text", "vector", "hybrid"] {
            let mut group = criterion.benchmark_group(format!("{leg}/{memories}"));
            for (name, filter) in &filters {
                let mut turn = questions.iter().cycle();
                group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                    bencher.iter(|| {
                        let (text, vector) = turn.next().expect("there are questions");
                        partition.search(&Query {
                            text: (leg != "vector").then_some(text),
                            vector: (leg != "text").then_some(vector),
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
                        })
                    });
                });
            }
        }
    }
}

criterion_group!(benches, legs);
criterion_main!(benches);
