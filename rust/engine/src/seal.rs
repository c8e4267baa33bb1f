//! Sealing: from time to time the postings of a large context go into one immutable, memory-mapped file.
//!
//! A sealed index is a folder of its own, written aside under a name that nobody else has, and made the current one by a
//! rename. Whoever opens it takes from it only the texts whose row and version the record still shows; the rest is
//! analysed again. Deleting it loses nothing.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use memkura_index::tokens::ANALYSER_VERSION;
use memkura_index::{Checksums, IndexError, Partition, Sealed};
use memkura_model::Context;
use memkura_store::{StoreError, patiently};
use serde_json::{Value, json};

use crate::open::{Loaded, read, write};
use crate::{Engine, EngineError};

/// Fresh documents from which sealing pays: below, loading them again costs a few milliseconds.
const SEAL_FRESH_MIN: usize = 4_096;
/// A fresh part this large beside the sealed one is sealed with it: rewriting then costs a constant factor in all.
const SEAL_FRESH_SHARE: usize = 4;
/// Changes when the layout of the folder does.
const FORMAT: u32 = 2;

impl Engine {
    /// Notes that a partition has grown so large that sealing it pays.
    pub(crate) fn note_if_due(&self, partition: &Partition) {
        if is_due(partition) {
            self.seal_is_due.store(true, Ordering::Release);
        }
    }

    /// Lets a thread of its own seal what has grown large, unless one is at it already. A write never waits for it.
    pub(crate) fn seal_soon(&self) {
        if self.record.is_read_only()
            || !self.seal_is_due.load(Ordering::Acquire)
            || self.sealing.swap(true, Ordering::AcqRel)
        {
            return;
        }
        self.seal_is_due.store(false, Ordering::Release);
        let this = Weak::clone(&self.this);
        let spawned = std::thread::Builder::new().name("memkura-seal".to_owned()).spawn(move || {
            let Some(engine) = this.upgrade() else { return };
            // Inside until the end, so that a fork or a close waits for it.
            let Ok(_inside) = engine.enter() else { return };
            let _done = Done(&engine.sealing);
            // A sealed part saves time and holds nothing of its own: what failed now is tried again after a later write.
            let _ = engine.seal_loaded();
        });
        if spawned.is_err() {
            self.sealing.store(false, Ordering::Release);
        }
    }

    /// Seals every loaded context whose fresh part has grown large. Returns how many it sealed.
    pub(crate) fn seal_loaded(&self) -> Result<usize, EngineError> {
        let mut sealed = 0;
        for context in self.record.read(|reader| Ok::<_, EngineError>(reader.contexts()?))? {
            let loaded = read(&self.partitions).get(&context.number).map(Arc::clone);
            if let Some(loaded) = loaded.filter(|loaded| is_due(&read(&loaded.partition))) {
                // Whoever holds the lock is sealing this context just now.
                if let Some(_lock) = self.seal_lock(&context, Duration::ZERO)? {
                    self.seal(&context, &loaded)?;
                    sealed += 1;
                }
            }
        }
        Ok(sealed)
    }

    /// Seals every context whose sealed part differs from its live texts in anything, and removes every older one, so
    /// that no index holds a word of what was purged (I12). Returns how many it sealed.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another sealer does not finish within the busy timeout.
    pub(crate) fn seal_everything(&self) -> Result<usize, EngineError> {
        let mut sealed = 0;
        for context in self.record.read(|reader| Ok::<_, EngineError>(reader.contexts()?))? {
            let is_on_disk = self.folder_of(&context).is_some_and(|folder| folder.exists());
            if !is_on_disk && !read(&self.partitions).contains_key(&context.number) {
                continue;
            }
            let _lock = self.seal_lock(&context, self.patience)?.ok_or(StoreError::Busy)?;
            // Under the lock: an older sealer can no longer publish what it read before a purge.
            self.catch_up()?;
            let loaded = self.partition(&context)?;
            if !read(&loaded.partition).is_sealed() {
                self.seal(&context, &loaded)?;
                sealed += 1;
            }
            if let Some(root) = self.folder_of(&context) {
                remove_others(&root)?;
            }
        }
        Ok(sealed)
    }

    /// The lock of the one sealer that a context may have at a time, across processes; `None` when `patience` ends.
    fn seal_lock(&self, context: &Context, patience: Duration) -> Result<Option<SealLock>, EngineError> {
        let Some(root) = self.folder_of(context) else { return Ok(Some(SealLock(None))) };
        private_folder(&root)?;
        let file = private_file(&root.join("LOCK"))?;
        let locked = patiently(patience, || match file.try_lock() {
            Ok(()) => Ok(Some(())),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(IndexError::from(error)),
        })?;
        Ok(locked.map(|()| SealLock(Some(file))))
    }

    fn seal(&self, context: &Context, loaded: &Loaded) -> Result<(), EngineError> {
        let documents = read(&loaded.partition).to_seal()?;
        let Some(root) = self.folder_of(context) else {
            let sealed = Sealed::write(None, documents)?;
            return Ok(write(&loaded.partition).take_sealed(sealed)?);
        };
        let mut manifest = self.manifest(context)?;
        let name = format!("{:032x}", self.next_id(memkura_model::Timestamp(0)).0);
        let folder = root.join(&name);
        private_folder(&folder)?;
        let sealed = Sealed::write(Some(&folder), documents)?;
        manifest["files"] = json!(Checksums::of(&folder)?.0);
        write_synced(&folder.join("manifest.json"), &manifest.to_string())?;
        make_private(&folder)?;
        write_synced(&root.join("CURRENT.new"), &name)?;
        std::fs::rename(root.join("CURRENT.new"), root.join("CURRENT")).map_err(IndexError::from)?;
        write(&loaded.partition).take_sealed(sealed)?;
        // What cannot be removed now (another system's rule for open files) goes with the next `compact`.
        let _ = remove_others(&root);
        Ok(())
    }

    /// The sealed index of a context, if there is one that this build can use and that was made of this record.
    pub(crate) fn open_sealed(&self, context: &Context) -> Option<Sealed> {
        let root = self.folder_of(context)?;
        let folder = root.join(current(&root)?);
        let mut manifest: Value = serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).ok()?).ok()?;
        let files = serde_json::from_value(manifest.as_object_mut()?.remove("files")?).ok()?;
        let (change, memory_id) = (manifest["last_change"].as_i64()?, manifest["last_memory"].as_str()?);
        // An older copy of the record was put back: its rows may have the sealed rows' numbers and other texts.
        let known = self.record.read(|reader| Ok::<_, EngineError>(reader.change(change)?)).ok()??;
        let is_ours = known.to_string() == memory_id && manifest == self.manifest_at(context, change, memory_id);
        is_ours.then(|| Sealed::open(&folder, &Checksums(files)).ok()).flatten()
    }

    fn folder_of(&self, context: &Context) -> Option<PathBuf> {
        Some(self.index_folder.as_ref()?.join(context.number.to_string()))
    }

    fn manifest(&self, context: &Context) -> Result<Value, EngineError> {
        let (change, memory_id) = self.record.read(|reader| {
            let change = reader.last_change()?;
            Ok::<_, EngineError>((change, reader.change(change)?))
        })?;
        Ok(self.manifest_at(context, change, &memory_id.map(|id| id.to_string()).unwrap_or_default()))
    }

    /// What must hold for a sealed index to be of use: any difference means building again.
    fn manifest_at(&self, context: &Context, last_change: i64, last_memory: &str) -> Value {
        json!({
            "format": FORMAT,
            "analyser": ANALYSER_VERSION,
            "store": self.store_id,
            "context": context.number,
            "last_change": last_change,
            "last_memory": last_memory,
        })
    }
}

/// Says that the sealing thread is done, also when it panics.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Held while a context is sealed; the system lets go of it when the process dies. A store in memory needs none.
#[derive(Debug)]
struct SealLock(#[expect(dead_code, reason = "it is there to be dropped")] Option<File>);

/// Whether the fresh part has grown large enough that sealing it pays.
fn is_due(partition: &Partition) -> bool {
    let (fresh, sealed) = partition.text_parts();
    fresh >= SEAL_FRESH_MIN && fresh * SEAL_FRESH_SHARE >= sealed
}

/// The name of the current sealed index. One of ours or nothing: it must not lead out of the folder.
fn current(root: &Path) -> Option<String> {
    let name = std::fs::read_to_string(root.join("CURRENT")).ok()?;
    let is_ours = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(name.trim()).filter(is_ours).map(str::to_owned)
}

fn private_folder(folder: &Path) -> Result<(), IndexError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    Ok(builder.create(folder)?)
}

fn private_file(path: &Path) -> Result<File, IndexError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(options.open(path)?)
}

fn write_synced(path: &Path, text: &str) -> Result<(), IndexError> {
    let mut file = private_file(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    Ok(file.sync_all()?)
}

/// tantivy makes its files with the process's own mask; ours are for their owner alone.
fn make_private(folder: &Path) -> Result<(), IndexError> {
    #[cfg(unix)]
    for entry in std::fs::read_dir(folder)? {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(entry?.path(), mode)?;
    }
    Ok(())
}

/// Removes every sealed index but the current one. Who has an older one mapped keeps it until dropping it.
fn remove_others(root: &Path) -> Result<(), IndexError> {
    let current = current(root).unwrap_or_default();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != current.as_str() {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
