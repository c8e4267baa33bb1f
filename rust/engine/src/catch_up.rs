//! From the record to the indexes. Following another process's write, loading a context, and building it again are
//! the same step from different starting points.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use memkura_index::{Build, OutOfOrder, Partition};
use memkura_model::{Context, Memory};
use memkura_store::{Embedder, EmbedderState, Reader};

use crate::open::{Following, Loaded, locked, read, write};
use crate::seal::OpenedSeal;
use crate::{Engine, EngineError};

/// The changes of one loaded partition, read in one moment and ready to be applied.
struct Catch {
    loaded: Arc<Loaded>,
    context: i64,
    gone: Vec<i64>,
    present: Vec<(Memory, Option<Vec<f32>>)>,
}

impl Engine {
    /// Brings every loaded partition up to date with whatever any process has committed before this call (I2).
    pub(crate) fn catch_up(&self) -> Result<(), EngineError> {
        // Held throughout: whoever comes second must not find the look already taken and the changes not yet applied.
        let mut following = locked(&self.following);
        let version = self.record.version()?;
        if following.seen == Some(version) {
            return Ok(());
        }
        let (catches, position, bound) = self.record.read(|reader| self.read_changes(reader, &following))?;
        if let Some(catches) = catches.filter(|_| bound == following.bound) {
            catches.into_iter().for_each(|catch| self.apply(catch));
        } else {
            write(&self.partitions).clear();
        }
        for loaded in read(&self.partitions).values() {
            loaded.position.fetch_max(position, Ordering::AcqRel);
        }
        *following = Following { seen: Some(version), position, bound };
        Ok(())
    }

    /// The index of a context, loaded if it is not yet; then a large one is sealed in the background.
    pub(crate) fn partition(&self, context: &Context) -> Result<Arc<Loaded>, EngineError> {
        if let Some(loaded) = self.loaded(context) {
            return Ok(loaded);
        }
        let loaded = self.partition_as_it_is(context)?;
        self.seal_soon();
        Ok(loaded)
    }

    /// As [`Engine::partition`], and no file is written for it.
    pub(crate) fn partition_as_it_is(&self, context: &Context) -> Result<Arc<Loaded>, EngineError> {
        let following = locked(&self.following);
        // Another thread may have loaded it while this one waited.
        if let Some(loaded) = self.loaded(context) {
            return Ok(loaded);
        }
        let loaded = Arc::new(self.load(context, following.bound.as_ref())?);
        write(&self.partitions).insert(context.number, Arc::clone(&loaded));
        self.note_use(&loaded);
        let size = read(&loaded.partition).footprint();
        self.make_room(&loaded, size);
        self.note_if_due(&read(&loaded.partition));
        Ok(loaded)
    }

    fn loaded(&self, context: &Context) -> Option<Arc<Loaded>> {
        let loaded = read(&self.partitions).get(&context.number).map(Arc::clone)?;
        self.note_use(&loaded);
        Some(loaded)
    }

    fn note_use(&self, loaded: &Loaded) {
        loaded.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Drops the indexes that were not used for longest, when all together take more memory than they may now that `new`
    /// has `grown` by so many bytes. That one stays, whatever it takes.
    fn make_room(&self, new: &Arc<Loaded>, grown: usize) {
        if self.memory_taken.fetch_add(grown, Ordering::Relaxed) + grown <= self.memory_budget {
            return;
        }
        let size = |loaded: &Loaded| read(&loaded.partition).footprint();
        let mut others: Vec<(i64, Arc<Loaded>)> =
            read(&self.partitions).iter().map(|(number, loaded)| (*number, Arc::clone(loaded))).collect();
        others.retain(|(_, loaded)| !Arc::ptr_eq(loaded, new));
        others.sort_unstable_by_key(|(_, loaded)| std::cmp::Reverse(loaded.used.load(Ordering::Relaxed)));
        let mut taken = size(new);
        for (number, loaded) in others {
            let more = size(&loaded);
            if taken + more <= self.memory_budget {
                taken += more;
            } else {
                write(&self.partitions).remove(&number);
            }
        }
        self.memory_taken.store(taken, Ordering::Relaxed);
    }

    /// The index of a context: the sealed one with what was written since, or else one made from the record.
    fn load(&self, context: &Context, bound: Option<&Embedder>) -> Result<Loaded, EngineError> {
        let loaded = match self.open_sealed(context, bound) {
            Some(opened) => self.bring_up(context, bound, opened)?,
            None => None,
        };
        loaded.map_or_else(|| self.build(context, bound), Ok)
    }

    /// An index made from the record alone.
    pub(crate) fn build(&self, context: &Context, bound: Option<&Embedder>) -> Result<Loaded, EngineError> {
        let mut build = Build::new(bound.map(|embedder| embedder.dimensions));
        let position = self.record.read(|reader| {
            reader.indexed(context, bound.map(|embedder| embedder.number), |memory, vectors| {
                // Rows come in the order of their numbers, so none can be out of order.
                let _ = build.put(memory, vectors);
            })?;
            Ok::<_, EngineError>(reader.last_change()?)
        })?;
        Ok(Loaded::new(build.finish(), position, bound, None))
    }

    /// A sealed index with every change applied that came after it; `None` when it was not made of this record, or when so
    /// much has changed that making a new one is no more work.
    fn bring_up(
        &self,
        context: &Context,
        bound: Option<&Embedder>,
        opened: OpenedSeal,
    ) -> Result<Option<Loaded>, EngineError> {
        let OpenedSeal { mut partition, position, generation } = opened;
        let changes = self.record.read(|reader| {
            // Asked in this moment: another process may just have cut the log off.
            if !reader.has_changes_since(position)? {
                return Ok(None);
            }
            let rows = reader.rows_changed(context, position)?;
            if rows.len() > partition.len() {
                return Ok(None);
            }
            let (gone, present) = read_rows(reader, context.number, rows, bound)?;
            Ok::<_, EngineError>(Some((gone, present, reader.last_change()?)))
        })?;
        let sealed = (generation, position);
        let Some((gone, present, position)) = changes else { return Ok(None) };
        let is_in_order = apply(&mut partition, gone, &present).is_ok();
        Ok(is_in_order.then(|| Loaded::new(partition, position, bound, Some(sealed))))
    }

    /// The changes of every loaded partition (`None` when some of them are no longer in the log), the last change, and the
    /// embedder in use.
    fn read_changes(&self, reader: &Reader<'_>, following: &Following) -> Result<Changes, EngineError> {
        let bound = reader.embedder(EmbedderState::Bound)?;
        if !reader.has_changes_since(following.position)? {
            return Ok((None, reader.last_change()?, bound));
        }
        let changes = reader.changes_after(following.position)?;
        let position = changes.last().map_or(following.position, |change| change.number);
        let mut rows: HashMap<i64, BTreeSet<i64>> = HashMap::new();
        let partitions = read(&self.partitions).clone();
        for change in changes {
            if partitions
                .get(&change.context)
                .is_some_and(|loaded| change.number > loaded.position.load(Ordering::Acquire))
            {
                rows.entry(change.context).or_default().insert(change.row);
            }
        }
        let catches = rows.into_iter().map(|(context, rows)| {
            let (gone, present) = read_rows(reader, context, rows, bound.as_ref())?;
            Ok(Catch { loaded: Arc::clone(&partitions[&context]), context, gone, present })
        });
        Ok((Some(catches.collect::<Result<_, EngineError>>()?), position, bound))
    }

    fn apply(&self, catch: Catch) {
        let mut partition = write(&catch.loaded.partition);
        let before = partition.footprint();
        let applied = apply(&mut partition, catch.gone, &catch.present);
        let grown = partition.footprint().saturating_sub(before);
        self.note_if_due(&partition);
        drop(partition);
        if applied.is_err() {
            write(&self.partitions).remove(&catch.context);
        }
        self.make_room(&catch.loaded, grown);
    }
}

/// Brings a partition up to date with rows as they are now.
fn apply(partition: &mut Partition, gone: Vec<i64>, present: &[(Memory, Option<Vec<f32>>)]) -> Result<(), OutOfOrder> {
    gone.into_iter().for_each(|row| partition.remove(row));
    present.iter().try_for_each(|(memory, vectors)| partition.put(memory, vectors.as_deref()))
}

type Changes = (Option<Vec<Catch>>, i64, Option<Embedder>);
type Rows = (Vec<i64>, Vec<(Memory, Option<Vec<f32>>)>);

/// The rows as they are now, in the order of their numbers, and those that are gone.
fn read_rows(
    reader: &Reader<'_>,
    context: i64,
    rows: BTreeSet<i64>,
    bound: Option<&Embedder>,
) -> Result<Rows, EngineError> {
    let Some(context) = reader.context_numbered(context)? else { return Ok((rows.into_iter().collect(), Vec::new())) };
    let wanted: Vec<i64> = rows.iter().copied().collect();
    let mut gone = rows;
    let mut present = Vec::new();
    for memory in reader.rows(&context, &wanted)? {
        gone.remove(&memory.row);
        let vectors = match bound {
            Some(embedder) => reader.vector(memory.row, memory.text_version, embedder.number)?,
            None => None,
        };
        present.push((memory, vectors));
    }
    Ok((gone.into_iter().collect(), present))
}
