//! Sealing: from time to time the whole index of a large context goes to disk, so that nobody has to make it again.
//!
//! A sealed index is a folder of its own, written aside under a name that nobody else has, and made the current one by a
//! rename. Its manifest says which change it had reached, and sums up every file. Whoever opens it rules out every doubt,
//! and then applies the changes that came after. Deleting it loses nothing.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use memkura_index::tokens::ANALYSER_VERSION;
use memkura_index::{Contents, FileSum, IndexError, Partition, Snapshot, Written, crc_of, sum_up};
use memkura_model::Context;
use memkura_store::{Embedder, StoreError, patiently, private_file, sync_folder};
use serde_json::{Value, json};

use crate::open::{Loaded, locked, read, write};
use crate::{Engine, EngineError};

/// Changes from which sealing pays: below, applying them again costs a few milliseconds.
const SEAL_FRESH_MIN: u64 = 4_096;
/// So many changes beside what is sealed are sealed with it: rewriting then costs a constant factor in all.
const SEAL_FRESH_SHARE: u64 = 4;
/// Terms of texts that are gone from which sealing pays: they take some twenty bytes each.
const WASTED_MIN: u64 = 1 << 20;
/// Changes that compacting leaves in the log: a process that has fallen further behind builds its indexes again.
pub(crate) const CHANGES_KEPT: i64 = 10_000;
/// Changes when the layout of the folder does.
const FORMAT: u32 = 5;
/// More than any manifest or `CURRENT` of ours holds.
const SMALL_FILE_BYTES: u64 = 64 << 10;

/// A sealed index that was opened, and where it stands.
pub(crate) struct OpenedSeal {
    pub partition: Partition,
    /// The last change that it holds.
    pub position: i64,
    /// Its name.
    pub generation: String,
}

impl Engine {
    /// Notes that a partition has grown so large that sealing it pays.
    pub(crate) fn note_if_due(&self, partition: &Partition) {
        if is_due(partition) {
            self.seal_is_due.store(true, Ordering::Release);
        }
    }

    /// Lets a thread of its own seal what has grown large, unless one is at it already. A write waits while the partition is
    /// copied, and not while the copy is written.
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
            let due = || {
                let loaded = read(&self.partitions).get(&context.number).map(Arc::clone);
                loaded.filter(|loaded| is_due(&read(&loaded.partition)))
            };
            if due().is_none() {
                continue;
            }
            // Whoever holds the lock is sealing this context just now.
            let Some(_lock) = self.seal_lock(&context, Duration::ZERO)? else { continue };
            // Under the lock: what was purged before must not be published after (I12). A partition that was dropped
            // meanwhile follows no more.
            self.catch_up()?;
            if let Some(loaded) = due() {
                self.seal(&context, &loaded)?;
                sealed += 1;
            }
        }
        Ok(sealed)
    }

    /// Seals every context that has changed since it was sealed, and removes every older index, so that none holds a word
    /// of what was purged (I12). Returns how many it sealed.
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
            if !self.is_sealed(&context, &loaded) {
                self.seal(&context, &loaded)?;
                sealed += 1;
            }
            if let Some(root) = self.folder_of(&context) {
                remove_others(&root)?;
                // No loss of power brings back what was purged.
                sync_folder(&root)?;
            }
        }
        Ok(sealed)
    }

    /// The lock of the one sealer that a context may have at a time, across processes; `None` when `patience` ends.
    fn seal_lock(&self, context: &Context, patience: Duration) -> Result<Option<SealLock>, EngineError> {
        let Some(root) = self.folder_of(context) else { return Ok(Some(SealLock(None))) };
        private_folder(&root)?;
        // A store may come from a stranger: what is written and removed here must lie in it.
        root.parent().into_iter().chain([root.as_path()]).try_for_each(see_folder)?;
        let file = open_file(&root.join("LOCK"))?;
        let locked = patiently(patience, || match file.try_lock() {
            Ok(()) => Ok(Some(())),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(IndexError::from(error)),
        })?;
        Ok(locked.map(|()| SealLock(Some(file))))
    }

    /// Whether the index on disk is the partition as it is now.
    fn is_sealed(&self, context: &Context, loaded: &Loaded) -> bool {
        let on_disk = self.folder_of(context).and_then(|root| current(&root)).map(|current| current.name);
        // The log will be cut off behind it: then nobody could follow from there.
        let behind = loaded.position.load(Ordering::Acquire) - loaded.sealed_at.load(Ordering::Acquire);
        let is_near = behind <= CHANGES_KEPT / 2;
        is_near && read(&loaded.partition).is_sealed() && on_disk == *locked(&loaded.generation)
    }

    fn seal(&self, context: &Context, loaded: &Loaded) -> Result<(), EngineError> {
        // In this order: the position must not be newer than what the snapshot holds.
        let position = loaded.position.load(Ordering::Acquire);
        let snapshot = read(&loaded.partition).snapshot()?;
        let Some(root) = self.folder_of(context) else {
            let written = snapshot.write(None)?;
            write(&loaded.partition).take_sealed(written);
            return Ok(());
        };
        let mut manifest = self.manifest_at(context, loaded.bound.as_ref(), position);
        // What a seal that failed or was killed has left takes room that this one may need. What cannot be removed now
        // (another system's rule for open files) goes with the next `compact`.
        let _ = remove_others(&root);
        let name = format!("{:032x}", self.next_id(memkura_model::Timestamp(0)).0);
        let folder = root.join(&name);
        let published = write_generation(&folder, snapshot, &mut manifest).map_err(EngineError::from);
        let published = published.and_then(|(written, crc)| {
            // First: an index that the record does not know is of no use to anybody.
            let before = current(&root).map(|current| current.name);
            self.record.write(|writer| Ok::<_, EngineError>(writer.note_seal(context, &name, before.as_deref())?))?;
            publish(&root, &Current { crc, name: name.clone() })?;
            Ok(written)
        });
        if published.is_err() {
            // As above.
            let _ = std::fs::remove_dir_all(&folder);
        }
        let written = published?;
        sync_folder(&root)?;
        write(&loaded.partition).take_sealed(written);
        *locked(&loaded.generation) = Some(name);
        loaded.sealed_at.store(position, Ordering::Release);
        let _ = remove_others(&root);
        Ok(())
    }

    /// The sealed index of a context, if there is one that this build can use and that was made of this record, with the
    /// vectors of this embedder.
    pub(crate) fn open_sealed(&self, context: &Context, bound: Option<&Embedder>) -> Option<OpenedSeal> {
        let root = self.folder_of(context)?;
        let at_first = current(&root)?;
        self.open_generation(context, bound, &root, &at_first).or_else(|| {
            // Another process may have sealed meanwhile, and removed what was being read.
            let now = current(&root).filter(|now| now.name != at_first.name)?;
            self.open_generation(context, bound, &root, &now)
        })
    }

    fn open_generation(
        &self,
        context: &Context,
        bound: Option<&Embedder>,
        root: &Path,
        current: &Current,
    ) -> Option<OpenedSeal> {
        let folder = root.join(&current.name);
        let text = read_small(&folder.join("manifest.json")).filter(|text| crc_of(text) == current.crc)?;
        let mut manifest: Value = serde_json::from_str(&text).ok()?;
        let files = files_from_json(&manifest.as_object_mut()?.remove("files")?)?;
        let position = manifest["last_change"].as_i64()?;
        // When an older copy of the record was put back, its rows may have the sealed rows' numbers and other texts.
        let is_known = self.record.read(|reader| {
            Ok::<_, EngineError>(reader.has_change(position)? && reader.seals(context)?.contains(&current.name))
        });
        if !is_known.ok()? || manifest != self.manifest_at(context, bound, position) {
            return None;
        }
        let partition = Partition::open(&folder, &files, bound.map(|embedder| embedder.dimensions)).ok()?;
        Some(OpenedSeal { partition, position, generation: current.name.clone() })
    }

    fn folder_of(&self, context: &Context) -> Option<PathBuf> {
        Some(self.index_folder.as_ref()?.join(context.number.to_string()))
    }

    /// What must hold for a sealed index to be of use: any difference means building again.
    fn manifest_at(&self, context: &Context, bound: Option<&Embedder>, last_change: i64) -> Value {
        json!({
            "format": FORMAT,
            "byte_order": if cfg!(target_endian = "big") { "big" } else { "little" },
            "analyser": ANALYSER_VERSION,
            "embedder": bound.map(|embedder| json!([embedder.number, embedder.name, embedder.dimensions])),
            "store": self.store_id,
            "context": context.number,
            "last_change": last_change,
        })
    }
}

/// Writes a snapshot and what `manifest` says of it into the new folder `folder`. Returns its texts, and the manifest's sum.
fn write_generation(folder: &Path, snapshot: Snapshot, manifest: &mut Value) -> Result<(Written, u32), IndexError> {
    private_folder(folder)?;
    let written = snapshot.write(Some(folder))?;
    manifest["files"] = files_as_json(&sum_up(folder)?);
    let manifest = manifest.to_string();
    write_synced(&folder.join("manifest.json"), &manifest)?;
    Ok((written, crc_of(&manifest)))
}

/// Makes a sealed index the one that is read.
fn publish(root: &Path, current: &Current) -> Result<(), IndexError> {
    write_synced(&root.join("CURRENT.new"), &current.to_string())?;
    Ok(std::fs::rename(root.join("CURRENT.new"), root.join("CURRENT"))?)
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

/// Whether so much has changed that sealing pays, or texts that are gone take so much memory.
fn is_due(partition: &Partition) -> bool {
    let (edits, sealed) = partition.unsealed();
    let (wasted, kept) = partition.wasted();
    (edits >= SEAL_FRESH_MIN && edits * SEAL_FRESH_SHARE >= sealed as u64)
        || (wasted as u64 >= WASTED_MIN && wasted as u64 * SEAL_FRESH_SHARE >= kept as u64)
}

/// What `CURRENT` says: the name of the sealed index in use, and the checksum of its manifest.
struct Current {
    name: String,
    crc: u32,
}

impl std::fmt::Display for Current {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {:08x}", self.name, self.crc)
    }
}

/// The current sealed index. One of ours or nothing: its name must not lead out of the folder.
fn current(root: &Path) -> Option<Current> {
    let text = read_small(&root.join("CURRENT"))?;
    let (name, crc) = text.split_once(' ')?;
    Some(Current { name: name.to_owned(), crc: u32::from_str_radix(crc, 16).ok()? }).filter(|of| is_name(&of.name))
}

/// Whether a sealed index may be called so.
fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A file of ours, which is a small one of text.
fn read_small(path: &Path) -> Option<String> {
    let known = path.symlink_metadata().ok()?;
    (known.is_file() && known.len() <= SMALL_FILE_BYTES).then(|| std::fs::read_to_string(path).ok()).flatten()
}

fn files_as_json(files: &Contents) -> Value {
    files
        .iter()
        .map(|(name, sum)| (name.clone(), json!([sum.bytes, sum.crc])))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn files_from_json(files: &Value) -> Option<Contents> {
    let files = files.as_object()?.iter().map(|(name, sum)| {
        let (bytes, crc) = (sum[0].as_u64()?, u32::try_from(sum[1].as_u64()?).ok()?);
        Some((name.clone(), FileSum { bytes, crc }))
    });
    files.collect()
}

fn private_folder(folder: &Path) -> Result<(), IndexError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    Ok(builder.create(folder)?)
}

/// Refuses a link, which leads elsewhere, where a folder of ours should be.
fn see_folder(path: &Path) -> Result<(), IndexError> {
    if path.symlink_metadata()?.is_dir() { Ok(()) } else { Err(foreign(path)) }
}

fn foreign(path: &Path) -> IndexError {
    IndexError::Sealed(format!("{} is not of memkura's making", path.display()))
}

fn open_file(path: &Path) -> Result<File, IndexError> {
    if path.symlink_metadata().is_ok_and(|known| !known.is_file()) {
        return Err(foreign(path));
    }
    Ok(private_file().create(true).truncate(true).open(path)?)
}

fn write_synced(path: &Path, text: &str) -> Result<(), IndexError> {
    let mut file = open_file(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    Ok(file.sync_all()?)
}

/// Removes every sealed index but the current one. Who has an older one mapped keeps it until dropping it.
fn remove_others(root: &Path) -> Result<(), IndexError> {
    let current = current(root).map(|current| current.name).unwrap_or_default();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() && name != current.as_str() && name.to_str().is_some_and(is_name) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use memkura_model::{Door, Draft, Timestamp};

    use super::*;
    use crate::{Embedding, OpenOptions};

    fn engine(folder: &Path) -> std::sync::Arc<Engine> {
        let path = folder.join("store");
        Engine::open(path.to_str().unwrap(), OpenOptions::default(), Timestamp(0)).unwrap()
    }

    fn remember(engine: &Engine, summary: &str) {
        let draft = Draft { context_id: "c".into(), summary: summary.into(), ..Draft::default() };
        engine.remember(draft, Embedding::None, Door::Python, Timestamp(1)).unwrap();
    }

    fn manifest_of(engine: &Engine, context: &Context) -> (PathBuf, Value) {
        let root = engine.folder_of(context).unwrap();
        let path = root.join(current(&root).unwrap().name).join("manifest.json");
        let manifest = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        (path, manifest)
    }

    /// A sealed index says which change it holds, not which one the record had when it was written: what came between is
    /// applied by whoever opens it.
    #[test]
    fn seal_names_the_change_that_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (engine(folder.path()), engine(folder.path()));
        remember(&one, "first");
        let context = one.context("c").unwrap().unwrap();
        let loaded = one.partition(&context).unwrap();
        remember(&other, "second");
        let lock = one.seal_lock(&context, Duration::ZERO).unwrap().unwrap();
        one.seal(&context, &loaded).unwrap();
        drop(lock);
        assert_eq!(manifest_of(&one, &context).1["last_change"], 1);
        let opened = engine(folder.path()).partition(&context).unwrap();
        let opened = read(&opened.partition);
        assert_eq!((opened.len(), opened.unsealed()), (2, (1, 1)));
        assert!(!opened.is_sealed());
    }

    /// Every line of the manifest counts, and so does its checksum.
    #[test]
    fn any_doubt_about_the_manifest_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(folder.path());
        remember(&engine, "first");
        let context = engine.context("c").unwrap().unwrap();
        engine.partition(&context).unwrap();
        assert_eq!(engine.seal_everything().unwrap(), 1);
        assert_eq!(engine.seal_everything().unwrap(), 0);
        let (path, manifest) = manifest_of(&engine, &context);
        let root = engine.folder_of(&context).unwrap();
        let name = current(&root).unwrap().name;
        let publish = |text: &str, crc: u32| {
            write_synced(&path, text).unwrap();
            write_synced(&root.join("CURRENT"), &Current { name: name.clone(), crc }.to_string()).unwrap();
        };
        let is_opened = || engine.open_sealed(&context, None).is_some();
        assert!(is_opened());
        for line in manifest.as_object().unwrap().keys() {
            for other in [json!(null), json!("other"), json!([7, "other", 3]), json!(-1), json!(1_u64 << 40)] {
                let mut changed = manifest.clone();
                // The one line that is nothing here is that of the embedder.
                if other != manifest[line] {
                    changed[line] = other;
                    publish(&changed.to_string(), crc_of(&changed.to_string()));
                    assert!(!is_opened(), "{changed}");
                }
            }
        }
        let text = manifest.to_string();
        publish(&text, crc_of(&text) ^ 1);
        assert!(!is_opened());
        publish(&text, crc_of(&text));
        assert!(is_opened());
        let embedder = memkura_store::EmbedderState::Bound;
        let embedder = Embedder { number: 1, name: "e".into(), dimensions: 3, state: embedder };
        assert!(engine.open_sealed(&context, Some(&embedder)).is_none());
        for text in ["", " ", "..", "../1 00000000", "zz 00000000", "0000000000"] {
            write_synced(&root.join("CURRENT"), text).unwrap();
            assert!(!is_opened());
        }
    }
}
