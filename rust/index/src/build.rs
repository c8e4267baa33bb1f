//! Making the index of many rows at once.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use memkura_model::Memory;

use crate::partition::{OutOfOrder, Partition};
use crate::text::TextIndex;

/// Texts that are handed over together.
const TEXTS_AT_ONCE: usize = 256;
/// How many times so many texts may wait to be analysed.
const HANDED_OVER: usize = 16;

/// A partition in the making. Once there are many rows, their texts are analysed on a thread of their own: that is half of
/// the work.
#[derive(Debug)]
pub struct Build {
    partition: Partition,
    texts: Texts,
    analysis: Option<(SyncSender<Texts>, JoinHandle<TextIndex>)>,
}

/// Texts with the ordinals of their memories.
type Texts = Vec<(u32, String)>;

impl Build {
    /// The beginning of a partition whose vectors have this many numbers.
    #[must_use]
    pub fn new(dimensions: Option<usize>) -> Self {
        Self { partition: Partition::new(dimensions), texts: Texts::new(), analysis: None }
    }

    /// Adds a row as [`Partition::put`] does.
    ///
    /// # Errors
    /// [`OutOfOrder`] when a newer row was there before.
    pub fn put(&mut self, memory: &Memory, vectors: Option<&[f32]>) -> Result<(), OutOfOrder> {
        if let Some(ordinal) = self.partition.put_all_but_text(memory, vectors)? {
            self.texts.push((ordinal, memory.indexed_text()));
            if self.texts.len() == TEXTS_AT_ONCE {
                self.hand_over();
            }
        }
        Ok(())
    }

    /// The partition of all rows.
    #[must_use]
    pub fn finish(mut self) -> Partition {
        if let Some((sender, analysis)) = self.analysis {
            drop(sender);
            self.partition.text = analysis.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        analyse(&mut self.partition.text, self.texts);
        self.partition
    }

    fn hand_over(&mut self) {
        if self.analysis.is_none() {
            let (sender, receiver) = sync_channel::<Texts>(HANDED_OVER);
            let analysis = move || {
                let mut index = TextIndex::default();
                receiver.into_iter().for_each(|texts| analyse(&mut index, texts));
                index
            };
            let thread = std::thread::Builder::new().name("memkura-text".to_owned()).spawn(analysis);
            // Where there can be no more threads, they wait for the end.
            let Ok(thread) = thread else { return };
            self.analysis = Some((sender, thread));
        }
        if let Some((sender, _)) = &self.analysis {
            // It ends early by a panic alone, of which its end tells.
            let _ = sender.send(std::mem::take(&mut self.texts));
        }
    }
}

fn analyse(index: &mut TextIndex, texts: Texts) {
    texts.into_iter().for_each(|(ordinal, text)| index.put(ordinal, &text));
}
