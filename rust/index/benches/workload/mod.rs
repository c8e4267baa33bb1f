//! Seeded memories with words that are frequent and rare as in any language, and 384 numbers around as many centres as one
//! in 200 memories. Each has one tag of ten and one of a hundred.

use memkura_index::Partition;
use memkura_index::vector::UnitQuery;
use memkura_model::filter::parse;
use memkura_model::{Filter, Memory};
use serde_json::json;

#[path = "../../tests/made/asked.rs"]
mod asked;
#[path = "../../tests/made/mod.rs"]
mod made;

mod chance;

pub use asked::query;
use chance::{Chance, DIMENSIONS};

const NEAR_ONE_CENTRE: u32 = 200;
const QUESTIONS: u32 = 64;

/// A memory with its vector.
pub type Row = (Memory, Vec<f32>);

/// Draws memories and questions.
pub struct Drawing {
    chance: Chance,
    centres: Vec<Vec<f32>>,
}

impl Drawing {
    pub fn new(memories: u32) -> Self {
        let mut chance = Chance(7);
        let centres = (0..memories.div_ceil(NEAR_ONE_CENTRE)).map(|_| chance.vector()).collect();
        Self { chance, centres }
    }

    pub fn row(&mut self, row: u32) -> Row {
        let words = 8 + self.chance.below(32);
        let tags = vec![format!("ten{}", self.chance.below(10)), format!("hundred{}", self.chance.below(100))];
        let memory = Memory { tags, ..made::memory(row.into(), self.chance.words(words)) };
        (memory, self.vector())
    }

    pub fn question(&mut self) -> (String, UnitQuery) {
        let vector = self.vector();
        (self.chance.words(6), UnitQuery::new(&vector, DIMENSIONS).expect("a direction"))
    }

    fn vector(&mut self) -> Vec<f32> {
        let at = self.chance.below(self.centres.len() as u32) as usize;
        self.chance.near(&self.centres[at])
    }
}

/// An index of so many memories, and what it is asked. No thread has a part in it, so that it lies alike in memory in every
/// run.
pub fn load(memories: u32) -> (Partition, Vec<(String, UnitQuery)>) {
    let mut drawing = Drawing::new(memories);
    let mut partition = Partition::new(Some(DIMENSIONS));
    for row in 0..memories {
        let (memory, vector) = drawing.row(row);
        partition.put(&memory, Some(&vector)).expect("rows come in order");
    }
    (partition, (0..QUESTIONS).map(|_| drawing.question()).collect())
}

pub fn tagged(tag: &str) -> Filter {
    parse(json!({"tags": tag}).as_object().expect("an object")).expect("a filter")
}
