//! What single reads and writes of the record take: `cargo bench -p memkura-store [-- FILTER]`.
//!
//! A store of 10,000 memories in the system's folder for temporary files. A durable write ends when the disk has it, so that
//! its figure is the disk's: set `TMPDIR` to a folder on the one that matters.

use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use memkura_model::{Context, Door, Memory, Origin, Timestamp};
use memkura_store::{Durability, Options, Record, StoreError};
use tempfile::TempDir;

#[path = "../../index/tests/made/mod.rs"]
mod made;

const MEMORIES: i64 = 10_000;
const HITS: i64 = 10;
const SCOPE: &str = "workspace";

fn key(number: i64) -> String {
    format!("lamp.{number}")
}

fn memory(context: &Context, number: i64) -> Memory {
    Memory {
        context: context.number,
        context_id: Arc::from(context.name.as_str()),
        scope: Some(SCOPE.to_owned()),
        key: Some(key(number)),
        ..made::memory(number, format!("the lamp of lighthouse {number} is lit at dusk and put out at dawn"))
    }
}

/// A store with its memories, their rows numbered from 1.
fn filled(durability: Durability) -> (TempDir, Record, Context) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store");
    let options = Options { durability, ..Options::default() };
    let record = Record::open(path.to_str().expect("UTF-8"), options).expect("a new store");
    let context = record.write(|writer| {
        let context = writer.context_or_new("ops", Origin::Trusted, Timestamp(0))?;
        for number in 1..=MEMORIES {
            writer.insert(&memory(&context, number), Door::Python)?;
        }
        Ok::<_, StoreError>(context)
    });
    (folder, record, context.expect("writable"))
}

fn reads(criterion: &mut Criterion) {
    let (_folder, record, context) = filled(Durability::PowerLoss);
    let mut numbers = (1..=MEMORIES).map(|at| at * 7_919 % MEMORIES + 1).cycle();
    let mut number = || numbers.next().expect("it begins anew");
    criterion.bench_function("get/by_key", |bencher| {
        bencher.iter(|| {
            let found = record.read(|reader| reader.by_key(&context, SCOPE, &key(number())));
            found.expect("readable").expect("there is one")
        });
    });
    criterion.bench_function("get/ten_rows", |bencher| {
        bencher.iter(|| {
            let rows: Vec<i64> = (0..HITS).map(|_| number()).collect();
            record.read(|reader| reader.rows(&context, &rows)).expect("readable")
        });
    });
}

fn writes(criterion: &mut Criterion) {
    for (name, durability) in [("power_loss", Durability::PowerLoss), ("process_crash", Durability::ProcessCrash)] {
        let (_folder, record, context) = filled(durability);
        let mut numbers = MEMORIES + 1..;
        criterion.bench_function(&format!("write/{name}"), |bencher| {
            bencher.iter(|| {
                let memory = memory(&context, numbers.next().expect("no end"));
                record.write(|writer| writer.insert(&memory, Door::Python)).expect("writable")
            });
        });
    }
}

criterion_group!(benches, reads, writes);
criterion_main!(benches);
