//! Making the index of many rows at once.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use memkura_model::Memory;

use crate::partition::{Facts, OutOfOrder, Partition};
use crate::text::TextIndex;
use crate::vector::Vectors;

/// Rows that are handed over together.
const ROWS_AT_ONCE: usize = 256;
/// How many times so many rows may wait.
const HANDED_OVER: usize = 16;

/// A partition in the making. Once there are many rows, their texts are analysed on one thread of their own and their vectors
/// coded on another: that is most of the work.
#[derive(Debug)]
pub struct Build {
    partition: Partition,
    texts: Aside<TextIndex, String>,
    vectors: Option<Aside<Vectors, Vec<f32>>>,
    /// The ordinals that were given vectors, with the versions of their texts.
    embedded: Vec<(u32, i64)>,
}

impl Build {
    /// The beginning of a partition whose vectors have this many numbers.
    #[must_use]
    pub fn new(dimensions: Option<usize>) -> Self {
        let vectors = dimensions.map(|dimensions| {
            // One that is refused was damaged in the record, and is treated as missing.
            Aside::new(
                "memkura-vectors",
                move || Vectors::new(dimensions),
                |index, ordinal, rows: Vec<f32>| {
                    let _ = index.put(ordinal, &rows);
                },
            )
        });
        Self {
            partition: Partition::new(None),
            texts: Aside::new("memkura-text", TextIndex::default, |index, ordinal, text: String| {
                index.put(ordinal, &text);
            }),
            vectors,
            embedded: Vec::new(),
        }
    }

    /// Adds a row as [`Partition::put`] does. Every row comes once.
    ///
    /// # Errors
    /// [`OutOfOrder`] when a newer row was there before.
    pub fn put(&mut self, memory: &Memory, vectors: Option<&[f32]>) -> Result<(), OutOfOrder> {
        let Some(Facts { ordinal, .. }) = self.partition.put_facts(memory)? else { return Ok(()) };
        self.texts.add(ordinal, memory.indexed_text());
        if let Some((aside, rows)) = self.vectors.as_mut().zip(vectors) {
            aside.add(ordinal, rows.to_vec());
            self.embedded.push((ordinal, memory.text_version));
        }
        Ok(())
    }

    /// The partition of all rows.
    #[must_use]
    pub fn finish(self) -> Partition {
        let mut partition = self.partition;
        partition.text = self.texts.finish();
        partition.vectors = self.vectors.map(Aside::finish);
        if let Some(vectors) = &partition.vectors {
            for (ordinal, version) in self.embedded {
                if vectors.contains(ordinal) {
                    partition.columns[ordinal as usize].embedded_version = version;
                }
            }
        }
        partition
    }
}

/// Things with the ordinals of their memories.
type Batch<I> = Vec<(u32, I)>;

/// One part of an index, which is made on a thread of its own once there is enough for it.
struct Aside<T, I> {
    name: &'static str,
    empty: Arc<dyn Fn() -> T + Send + Sync>,
    put: fn(&mut T, u32, I),
    waiting: Batch<I>,
    thread: Option<(SyncSender<Batch<I>>, JoinHandle<T>)>,
}

impl<T: Send + 'static, I: Send + 'static> Aside<T, I> {
    fn new(name: &'static str, empty: impl Fn() -> T + Send + Sync + 'static, put: fn(&mut T, u32, I)) -> Self {
        Self { name, empty: Arc::new(empty), put, waiting: Vec::new(), thread: None }
    }

    fn add(&mut self, ordinal: u32, item: I) {
        self.waiting.push((ordinal, item));
        if self.waiting.len().is_multiple_of(ROWS_AT_ONCE) {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if self.thread.is_none() {
            let (sender, receiver) = sync_channel::<Batch<I>>(HANDED_OVER);
            let (empty, put) = (Arc::clone(&self.empty), self.put);
            let making = move || {
                receiver.into_iter().flatten().fold(empty(), |mut part, (ordinal, item)| {
                    put(&mut part, ordinal, item);
                    part
                })
            };
            // Where there can be no more threads, all waits for the end.
            let Ok(thread) = Builder::new().name(self.name.to_owned()).spawn(making) else { return };
            self.thread = Some((sender, thread));
        }
        if let Some((sender, _)) = &self.thread {
            // It ends early by a panic alone, of which its end tells.
            let _ = sender.send(std::mem::take(&mut self.waiting));
        }
    }

    fn finish(self) -> T {
        let part = self.thread.map(|(sender, thread)| {
            drop(sender);
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let mut part = part.unwrap_or_else(|| (self.empty)());
        self.waiting.into_iter().for_each(|(ordinal, item)| (self.put)(&mut part, ordinal, item));
        part
    }
}

impl<T, I> fmt::Debug for Aside<T, I> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Aside")
            .field("name", &self.name)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}
