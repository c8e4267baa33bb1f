//! What a search of one context takes, leg by leg: `cargo bench -p memkura-index --bench legs [-- FILTER]`.
//!
//! Filters keep one tag in 10 and one in 100.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use memkura_model::Filter;

mod workload;

use workload::{load, query, tagged};

fn legs(criterion: &mut Criterion) {
    let filters = [("all", Filter::everything()), ("tenth", tagged("ten3")), ("hundredth", tagged("hundred3"))];
    for memories in [10_000, 100_000] {
        let (partition, questions) = load(memories);
        for leg in ["text", "vector", "hybrid"] {
            let mut group = criterion.benchmark_group(format!("{leg}/{memories}"));
            for (name, filter) in &filters {
                let mut turn = questions.iter().cycle();
                group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                    bencher.iter(|| {
                        let (text, vector) = turn.next().expect("there are questions");
                        let text = (leg != "vector").then_some(text.as_str());
                        partition.search(&query(text, (leg != "text").then_some(vector), filter))
                    });
                });
            }
        }
    }
}

criterion_group!(benches, legs);
criterion_main!(benches);
