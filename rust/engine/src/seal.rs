//! Sealing: from time to time the postings of a large context go into one immutable, memory-mapped file.
//!
//! A sealed index is a folder of its own, written aside under a name that nobody else has, and made the current one by a
//! rename. Whoever opens it takes from it only the texts whose row and version the record still shows; the rest is
//! analysed again. Deleting it loses nothing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use memkura_index::tokens::ANALYSER_VERSION;
use memkura_index::{IndexError, Sealed};
use memkura_model::Context;
use serde_json::json;

use crate::open::{Loaded, read, write};
use crate::{Engine, EngineError};

/// Fresh documents from which sealing pays: below, loading them again costs a few milliseconds.
const SEAL_FRESH_MIN: usize = 4_096;
/// A fresh part this large beside the sealed one is sealed with it: rewriting then costs a constant factor in all.
const SEAL_FRESH_SHARE: usize = 4;
/// Changes when the layout of the folder does.
const FORMAT: u32 = 1;

impl Engine {
    /// Lets a thread of its own seal what has grown large, unless one is at it already. A write never waits for it.
    pub(crate) fn seal_soon(&self) {
        let due = read(&self.partitions).values().any(|loaded| is_due(loaded, false));
        if !due || self.sealing.swap(true, Ordering::AcqRel) {
            return;
        }
        let this = Weak::clone(&self.this);
        let spawned = std::thread::Builder::new().name("memkura-seal".to_owned()).spawn(move || {
            let Some(engine) = this.upgrade() else { return };
            // Inside until the end, so that a fork or a close waits for it.
            let Ok(_inside) = engine.enter() else { return };
            // A sealed part saves time and holds nothing of its own: what failed now is tried again after a later write.
            let _ = engine.seal_loaded(false);
            engine.sealing.store(false, Ordering::Release);
        });
        if spawned.is_err() {
            self.sealing.store(false, Ordering::Release);
        }
    }

    /// Seals every loaded context whose fresh part has grown large, and those that `all` asks for.
    pub(crate) fn seal_loaded(&self, all: bool) -> Result<usize, EngineError> {
        let mut sealed = 0;
        for context in self.record.read(|reader| Ok::<_, EngineError>(reader.contexts()?))? {
            let loaded = read(&self.partitions).get(&context.number).map(Arc::clone);
            if let Some(loaded) = loaded.filter(|loaded| is_due(loaded, all)) {
                self.seal(&context, &loaded)?;
                sealed += 1;
            }
        }
        Ok(sealed)
    }

    fn seal(&self, context: &Context, loaded: &Loaded) -> Result<(), EngineError> {
        let documents = read(&loaded.partition).to_seal()?;
        let Some(root) = self.folder_of(context) else {
            let sealed = Sealed::write(None, documents)?;
            return Ok(write(&loaded.partition).take_sealed(sealed)?);
        };
        private_folder(&root)?;
        // One sealer a context across processes; whoever comes second leaves it to the first.
        let lock = private_file(&root.join("LOCK"))?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        let name = format!("{:032x}", self.next_id(memkura_model::Timestamp(0)).0);
        let folder = root.join(&name);
        private_folder(&folder)?;
        let sealed = Sealed::write(Some(&folder), documents)?;
        write_synced(&folder.join("manifest.json"), &self.manifest(context).to_string())?;
        make_private(&folder)?;
        write_synced(&root.join("CURRENT.new"), &name)?;
        std::fs::rename(root.join("CURRENT.new"), root.join("CURRENT")).map_err(IndexError::from)?;
        write(&loaded.partition).take_sealed(sealed)?;
        remove_others(&root, &name);
        Ok(())
    }

    /// The sealed index of a context, if there is one that this build can use.
    pub(crate) fn open_sealed(&self, context: &Context) -> Option<Sealed> {
        let root = self.folder_of(context)?;
        let name = std::fs::read_to_string(root.join("CURRENT")).ok()?;
        // The name is one of ours or nothing: it must not lead out of the folder.
        let folder = root.join(Some(name.trim()).filter(|name| name.bytes().all(|byte| byte.is_ascii_hexdigit()))?);
        let manifest: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).ok()?).ok()?;
        (manifest == self.manifest(context)).then(|| Sealed::open(&folder).ok()).flatten()
    }

    fn folder_of(&self, context: &Context) -> Option<PathBuf> {
        Some(self.index_folder.as_ref()?.join(context.number.to_string()))
    }

    /// What must hold for a sealed index to be of use: any difference means building again.
    fn manifest(&self, context: &Context) -> serde_json::Value {
        json!({"format": FORMAT, "analyser": ANALYSER_VERSION, "store": self.store_id, "context": context.number})
    }
}

/// With `all`, whatever the sealed part does not hold, or holds and should not, is reason enough.
fn is_due(loaded: &Loaded, all: bool) -> bool {
    let partition = read(&loaded.partition);
    let (fresh, sealed) = partition.text_parts();
    if all {
        return fresh > 0 || sealed != partition.len();
    }
    fresh >= SEAL_FRESH_MIN && fresh * SEAL_FRESH_SHARE >= sealed
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

/// Older sealed indexes are of no use to anyone who opens the store now; who has one mapped keeps it until dropping it.
/// One that cannot be removed (another system's rule for open files) is removed next time.
fn remove_others(root: &Path, current: &str) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.path().is_dir() && entry.file_name() != current {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
