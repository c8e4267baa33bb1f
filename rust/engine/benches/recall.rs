//! What a whole recall takes, from the words to the memories: `cargo bench -p memkura-engine [-- FILTER]`.
//!
//! Ten hits of 10,000 memories in memory. What the search alone takes is told by the benches of `memkura-index`.

use criterion::{Criterion, criterion_group, criterion_main};
use memkura_engine::{Embedding, Engine, Legs, OpenOptions, Recall};
use memkura_model::{Door, Draft, Timestamp};

#[path = "../../index/benches/workload/chance.rs"]
mod chance;

use chance::{Chance, DIMENSIONS};

const MEMORIES: u32 = 10_000;
const CENTRES: u32 = 50;
const NOW: Timestamp = Timestamp(1_900_000_000_000_000);

fn recall(criterion: &mut Criterion) {
    let mut chance = Chance(7);
    let centres: Vec<Vec<f32>> = (0..CENTRES).map(|_| chance.vector()).collect();
    let near = |chance: &mut Chance| {
        let at = chance.below(CENTRES) as usize;
        chance.near(&centres[at])
    };
    let drafts = (0..MEMORIES).map(|_| {
        let words = 8 + chance.below(32);
        let draft = Draft { context_id: "ops".into(), summary: chance.words(words), ..Draft::default() };
        (draft, Embedding::Vectors { dimensions: DIMENSIONS, values: near(&mut chance), made_by: None })
    });
    let drafts = drafts.collect();
    let engine = Engine::open(":memory:", OpenOptions::default(), NOW).expect("memory can be opened");
    engine.remember_many(drafts, 0, Door::Python, NOW).expect("they are legal");

    let questions = (0..64).map(|_| (chance.words(6), near(&mut chance)));
    let questions: Vec<(String, Vec<f32>)> = questions.collect();
    for (name, has_vector) in [("text", false), ("hybrid", true)] {
        let ask = |(words, vector): &(String, Vec<f32>)| Recall {
            query: Some(words.clone()),
            embedding: has_vector.then(|| vector.clone()),
            legs: Legs { vector: has_vector, ..Legs::default() },
            ..Recall::default()
        };
        let recalls: Vec<Recall> = questions.iter().map(ask).collect();
        let mut turn = recalls.iter().cycle();
        criterion.bench_function(&format!("recall/{MEMORIES}/{name}"), |bencher| {
            bencher.iter(|| {
                let recall = turn.next().expect("there are questions");
                engine.recall("ops", recall, NOW).expect("an answer")
            });
        });
    }
}

criterion_group!(benches, recall);
criterion_main!(benches);
