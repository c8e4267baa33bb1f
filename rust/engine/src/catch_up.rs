//! From the record to the indexes. Following another process's write, loading a context, and building it again are
//! the same step from different starting points.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, RwLock};

use memkura_index::{Partition, Sealed};
use memkura_model::{Context, Memory};
use memkura_store::{Embedder, EmbedderState, Reader};

use crate::open::{Following, Loaded, locked, read, write};
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
        if bound == following.bound {
            catches.into_iter().for_each(|catch| self.apply(catch));
        } else {
            write(&self.partitions).clear();
        }
        *following = Following { seen: Some(version), position, bound };
        Ok(())
    }

    /// The index of a context, loaded if it is not yet.
    pub(crate) fn partition(&self, context: &Context) -> Result<Arc<Loaded>, EngineError> {
        if let Some(loaded) = read(&self.partitions).get(&context.number) {
            return Ok(Arc::clone(loaded));
        }
        let following = locked(&self.following);
        // Another thread may have loaded it while this one waited.
        if let Some(loaded) = read(&self.partitions).get(&context.number) {
            return Ok(Arc::clone(loaded));
        }
        let sealed = self.open_sealed(context);
        let loaded = Arc::new(self.load(context, following.bound.as_ref(), sealed)?);
        write(&self.partitions).insert(context.number, Arc::clone(&loaded));
        self.note_if_due(&read(&loaded.partition));
        self.seal_soon();
        Ok(loaded)
    }

    /// An index made from the record, and from `sealed` as far as that holds what the record does.
    pub(crate) fn load(
        &self,
        context: &Context,
        bound: Option<&Embedder>,
        sealed: Option<Sealed>,
    ) -> Result<Loaded, EngineError> {
        let mut partition = Partition::new(bound.map(|embedder| embedder.dimensions), sealed);
        let position = self.record.read(|reader| {
            let mut vectors = vectors_of(reader, context, bound)?;
            reader.indexed(context, |memory| {
                let vector = vectors.remove(&memory.row);
                // Rows come in the order of their numbers, so none can be out of order.
                let _ = partition.put(&memory, vector.as_deref());
            })?;
            Ok::<_, EngineError>(reader.last_change()?)
        })?;
        partition.loaded();
        Ok(Loaded { position, bound: bound.cloned(), partition: RwLock::new(partition) })
    }

    fn read_changes(
        &self,
        reader: &Reader<'_>,
        following: &Following,
    ) -> Result<(Vec<Catch>, i64, Option<Embedder>), EngineError> {
        let bound = reader.embedder(EmbedderState::Bound)?;
        let changes = reader.changes_after(following.position)?;
        let position = changes.last().map_or(following.position, |change| change.number);
        let mut rows: HashMap<i64, BTreeSet<i64>> = HashMap::new();
        let partitions = read(&self.partitions).clone();
        for change in changes {
            if partitions.get(&change.context).is_some_and(|loaded| change.number > loaded.position) {
                rows.entry(change.context).or_default().insert(change.row);
            }
        }
        let catches = rows.into_iter().map(|(context, rows)| {
            let (gone, present) = read_rows(reader, context, rows, bound.as_ref())?;
            Ok(Catch { loaded: Arc::clone(&partitions[&context]), context, gone, present })
        });
        Ok((catches.collect::<Result<_, EngineError>>()?, position, bound))
    }

    fn apply(&self, catch: Catch) {
        let mut partition = write(&catch.loaded.partition);
        catch.gone.into_iter().for_each(|row| partition.remove(row));
        let out_of_order =
            catch.present.iter().any(|(memory, vectors)| partition.put(memory, vectors.as_deref()).is_err());
        self.note_if_due(&partition);
        drop(partition);
        if out_of_order {
            write(&self.partitions).remove(&catch.context);
        }
    }
}

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

fn vectors_of(
    reader: &Reader<'_>,
    context: &Context,
    bound: Option<&Embedder>,
) -> Result<HashMap<i64, Vec<f32>>, EngineError> {
    let mut vectors = HashMap::new();
    if let Some(embedder) = bound {
        reader.vectors(context, embedder.number, |row| {
            vectors.insert(row.row, row.vectors);
        })?;
    }
    Ok(vectors)
}
