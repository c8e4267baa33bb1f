//! Work of a fixed amount, whose instructions `benches/instructions.py` counts: no other program on the machine changes
//! their number, so that a small loss shows where a clock would not show it.
//!
//! Each function of [`counted`] is one kernel and has its line in `benches/instructions.json`.

use std::hint::black_box;

use memkura_index::vector::kernel_name;
use memkura_index::{Partition, Query};
use memkura_model::filter::parse;
use serde_json::{Map, Value};

mod workload;

use workload::{Drawing, Row, load};

const MEMORIES: u32 = 5_000;
const QUESTIONS: usize = 20;
const MORE: u32 = 200;
const PARSES: usize = 100;

/// What is counted: each of these functions with all that it calls, by its name, so that none may be inlined.
mod counted {
    use std::hint::black_box;

    use memkura_index::Partition;
    use memkura_index::vector::UnitQuery;
    use memkura_model::Filter;
    use memkura_model::filter::parse;
    use serde_json::{Map, Value};

    use super::search;
    use super::workload::{Row, query, tagged};

    type Questions<'a> = &'a [(String, UnitQuery)];

    #[inline(never)]
    pub fn text_search(partition: &Partition, questions: Questions<'_>) {
        let filter = Filter::everything();
        for (text, _) in questions {
            search(partition, &query(Some(text), None, &filter));
        }
    }

    #[inline(never)]
    pub fn vector_search(partition: &Partition, questions: Questions<'_>) {
        let filter = Filter::everything();
        for (_, vector) in questions {
            search(partition, &query(None, Some(vector), &filter));
        }
    }

    #[inline(never)]
    pub fn vector_search_of_a_tenth(partition: &Partition, questions: Questions<'_>) {
        let filter = tagged("ten3");
        for (_, vector) in questions {
            search(partition, &query(None, Some(vector), &filter));
        }
    }

    #[inline(never)]
    pub fn hybrid_search(partition: &Partition, questions: Questions<'_>) {
        let filter = Filter::everything();
        for (text, vector) in questions {
            search(partition, &query(Some(text), Some(vector), &filter));
        }
    }

    #[inline(never)]
    pub fn put(partition: &mut Partition, rows: &[Row]) {
        for (memory, vector) in rows {
            black_box(partition.put(black_box(memory), Some(vector)).is_ok());
        }
    }

    #[inline(never)]
    pub fn filter_parse(object: &Map<String, Value>, times: usize) {
        for _ in 0..times {
            black_box(parse(black_box(object)).is_ok());
        }
    }
}

fn search(partition: &Partition, query: &Query<'_>) {
    black_box(partition.search(black_box(query)));
}

fn main() {
    // First, while nothing else has been in memory: what it takes is mostly what asking for memory takes.
    let filter: Map<String, Value> =
        serde_json::from_str(include_str!("../../model/benches/filter.json")).expect("an object");
    assert!(parse(&filter).is_ok(), "a refusal would be counted");
    counted::filter_parse(&filter, PARSES);

    let (mut partition, questions) = load(MEMORIES);
    let questions = &questions[..QUESTIONS];
    counted::text_search(&partition, questions);
    counted::vector_search(&partition, questions);
    counted::vector_search_of_a_tenth(&partition, questions);
    counted::hybrid_search(&partition, questions);

    let mut drawing = Drawing::new(MORE);
    let rows: Vec<Row> = (MEMORIES..MEMORIES + MORE).map(|row| drawing.row(row)).collect();
    counted::put(&mut partition, &rows);
    assert_eq!(partition.len(), (MEMORIES + MORE) as usize);
    println!("{}", kernel_name());
}
