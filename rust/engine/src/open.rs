//! Opening, closing, and what an open engine holds.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use memkura_index::Partition;
use memkura_model::{Context, IdSource, MemoryId, SteadyClock, Timestamp};
use memkura_store::{Embedder, EmbedderState, Options, Record};

use crate::EngineError;
use crate::gate::{Gate, Inside, LOOK_EVERY};

/// How an engine is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// How the record is opened.
    pub record: Options,
    /// The fingerprint and dimension of the embedder that vectors will come from; `None` when they come from the caller.
    pub embedder: Option<(String, usize)>,
    /// Bytes of memory that the loaded indexes may take; about 2 GiB when not given.
    pub memory_budget: Option<usize>,
}

/// Bytes of memory that loaded indexes may take, unless an engine is opened with another budget: some millions of memories
/// without vectors, or one million with 384 dimensions.
const MEMORY_BUDGET: usize = 2 << 30;

/// One open store. Shared between threads as it is; every verb takes `&self`.
#[derive(Debug)]
pub struct Engine {
    pub(crate) record: Record,
    /// Where sealed indexes are kept; `None` for a store in memory.
    pub(crate) index_folder: Option<PathBuf>,
    pub(crate) store_id: String,
    /// How long to wait for another process's work.
    pub(crate) patience: Duration,
    /// The embedder that the engine's own vectors come from; a reindex moves on to another.
    wanted: RwLock<Option<(String, usize)>>,
    pub(crate) contexts: RwLock<HashMap<String, Context>>,
    pub(crate) partitions: RwLock<HashMap<i64, Arc<Loaded>>>,
    /// Bytes that they may take together, and about how many they took when last measured, and have taken since.
    pub(crate) memory_budget: usize,
    pub(crate) memory_taken: AtomicUsize,
    /// Counts uses of partitions.
    pub(crate) uses: AtomicU64,
    pub(crate) following: Mutex<Following>,
    ids: Mutex<IdSource>,
    clock: SteadyClock,
    pub(crate) gate: Gate,
    /// Whether a loaded context has grown so large that it should be sealed.
    pub(crate) seal_is_due: AtomicBool,
    /// Whether a thread is sealing in the background.
    pub(crate) sealing: AtomicBool,
    /// The engine itself, for that thread.
    pub(crate) this: Weak<Self>,
    /// Last: dropped when nothing of the engine is open any more.
    _open: Arc<Open>,
}

/// Says that an engine is open, or being closed.
#[derive(Debug)]
struct Open;

/// Every engine of this process. A thread may keep one that its owner let go of, and a fork has to find it all the same.
static ALL: Mutex<Vec<(Weak<Engine>, Weak<Open>)>> = Mutex::new(Vec::new());

/// Every engine of this process that was not dropped yet, closed ones too. One that is being dropped is waited for.
#[must_use]
pub fn open_engines() -> Vec<Arc<Engine>> {
    let all = locked(&ALL).clone();
    let opened = all.into_iter().filter_map(|(engine, open)| {
        let engine = engine.upgrade();
        while engine.is_none() && open.strong_count() > 0 {
            std::thread::sleep(LOOK_EVERY);
        }
        engine
    });
    opened.collect()
}

/// A partition, and how far it has followed the record.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The last change that the partition holds. It is raised after the change was applied: whoever reads it first and the
    /// partition then finds at least that much there.
    pub position: AtomicI64,
    /// The embedder whose vectors it holds.
    pub bound: Option<Embedder>,
    pub partition: RwLock<Partition>,
    /// The sealed index on disk that the partition was read from or written to.
    pub generation: Mutex<Option<String>>,
    /// The last change that it holds.
    pub sealed_at: AtomicI64,
    /// When it was last used, in uses of any.
    pub used: AtomicU64,
}

impl Loaded {
    pub(crate) fn new(
        partition: Partition,
        position: i64,
        bound: Option<&Embedder>,
        sealed: Option<(String, i64)>,
    ) -> Self {
        let (generation, sealed_at) = sealed.unzip();
        Self {
            sealed_at: AtomicI64::new(sealed_at.unwrap_or_default()),
            position: AtomicI64::new(position),
            bound: bound.cloned(),
            partition: RwLock::new(partition),
            generation: Mutex::new(generation),
            used: AtomicU64::default(),
        }
    }
}

/// How far the loaded partitions have followed the record.
#[derive(Debug, Default)]
pub(crate) struct Following {
    /// The record's version at the last look.
    pub seen: Option<i64>,
    /// The last change applied.
    pub position: i64,
    /// The embedder whose vectors the partitions hold.
    pub bound: Option<Embedder>,
}

impl Engine {
    /// Opens the store folder at `path`, made if need be, or a store in memory for `":memory:"`.
    ///
    /// # Errors
    /// See [`memkura_store::StoreError`].
    pub fn open(path: &str, options: OpenOptions, now: Timestamp) -> Result<Arc<Self>, EngineError> {
        let record = Record::open_at(path, options.record, now)?;
        let (store_id, position, bound) = record.read(|reader| {
            let store_id = reader.setting("store_id")?.unwrap_or_default();
            Ok::<_, EngineError>((store_id, reader.last_change()?, reader.embedder(EmbedderState::Bound)?))
        })?;
        let index_folder = (path != ":memory:").then(|| PathBuf::from(path).join("index"));
        let open = Arc::new(Open);
        let noted = Arc::downgrade(&open);
        let engine = Arc::new_cyclic(|this| Self {
            record,
            index_folder,
            store_id,
            patience: options.record.busy_timeout,
            wanted: RwLock::new(options.embedder),
            contexts: RwLock::default(),
            partitions: RwLock::default(),
            memory_budget: options.memory_budget.unwrap_or(MEMORY_BUDGET),
            memory_taken: AtomicUsize::default(),
            uses: AtomicU64::default(),
            following: Mutex::new(Following { seen: None, position, bound }),
            ids: Mutex::new(IdSource::new(random_bits)),
            clock: SteadyClock::default(),
            gate: Gate::default(),
            seal_is_due: AtomicBool::new(false),
            sealing: AtomicBool::new(false),
            this: Weak::clone(this),
            _open: open,
        });
        let mut all = locked(&ALL);
        all.retain(|(_, open)| open.strong_count() > 0);
        all.push((Arc::downgrade(&engine), noted));
        drop(all);
        Ok(engine)
    }

    /// Closes the store: no file below its folder stays open. Later calls answer [`EngineError::Closed`]. Closing again is
    /// harmless. From within a verb of its own thread, such as in a signal handler that runs while rows are exported, it closes
    /// when that verb has ended.
    pub fn close(&self) {
        if self.gate.is_called_out() {
            return self.gate.shut();
        }
        // Inside until all is closed: a fork in between would copy connections at work.
        let _inside = self.gate.close();
        self.record.suspend();
        write(&self.partitions).clear();
    }

    /// Empties the engine for a fork: waits for the verbs at work, holds newcomers, and closes every connection, since
    /// neither a lock nor a SQLite connection survives a fork.
    pub fn suspend(&self) {
        self.gate.suspend();
        self.record.suspend();
        // The record's version is a number of one connection's own: the next connection counts anew.
        locked(&self.following).seen = None;
    }

    /// Goes on after [`Engine::suspend`] in the parent.
    pub fn resume(&self) {
        self.gate.resume();
    }

    /// Goes on after [`Engine::suspend`] in a forked child, which has none of the parent's other threads.
    pub fn resume_in_child(&self) {
        self.sealing.store(false, Ordering::Release);
        self.gate.resume_alone();
    }

    pub(crate) fn enter(&self) -> Result<Inside<'_>, EngineError> {
        self.gate.enter()
    }

    /// The engine's own time for a reading of the wall clock: it never goes back.
    pub(crate) fn steady(&self, wall: Timestamp) -> Timestamp {
        self.clock.at(wall)
    }

    /// The fingerprint and dimension of the embedder that the engine's own vectors come from.
    pub(crate) fn wanted(&self) -> Option<(String, usize)> {
        read(&self.wanted).clone()
    }

    /// Goes over to the embedder that a finished reindex has bound the store to.
    pub(crate) fn want_if_bound(&self, embedder: &Embedder) -> Result<(), EngineError> {
        let bound = self.record.read(|reader| Ok::<_, EngineError>(reader.embedder(EmbedderState::Bound)?))?;
        if bound.is_some_and(|bound| bound.number == embedder.number) {
            *write(&self.wanted) = Some((embedder.name.clone(), embedder.dimensions));
        }
        Ok(())
    }

    pub(crate) fn next_id(&self, now: Timestamp) -> MemoryId {
        locked(&self.ids).next(now)
    }
}

/// 64 bits from the system. Without them ids would repeat across processes, so there is no going on.
fn random_bits() -> u64 {
    getrandom::u64().expect("the operating system gives random bytes")
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
