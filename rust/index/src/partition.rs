//! One context's index: its columns, bitmaps, texts and vectors, following the record row by row.
//!
//! Ordinals are dense and stand in the order of row numbers, whatever the partition went through, so that a tie broken
//! by ordinal is broken alike in an index that grew and in one that was just built (I3).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memkura_model::{Filter, Memory, MemoryId, Timestamp};
use roaring::RoaringBitmap;

use crate::IndexError;
use crate::bits::Bits;
use crate::facets::Facets;
use crate::keys::Keys;
use crate::sessions::Sessions;
use crate::text::{Sealed, SealedDocument, TextIndex, ToSeal};
use crate::tokens::analyse_document;
use crate::vector::Vectors;

/// The index of one context.
#[derive(Debug, Default)]
pub struct Partition {
    pub(crate) columns: Vec<Column>,
    pub(crate) live: RoaringBitmap,
    pub(crate) live_bits: Bits,
    superseded: RoaringBitmap,
    expiring: RoaringBitmap,
    by_id: HashMap<MemoryId, u32>,
    facets: Facets,
    pub(crate) keys: Keys,
    pub(crate) sessions: Sessions,
    pub(crate) text: TextIndex,
    pub(crate) vectors: Option<Vectors>,
    sealed_documents: HashMap<(i64, i64), u32>,
}

/// What ordering and checking need to know of a memory without reading the record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Column {
    pub row: i64,
    pub memory_id: MemoryId,
    /// The version whose text is indexed; 0 when none is.
    pub version: i64,
    /// The text version that the vectors describe; 0 when there are none.
    pub embedded_version: i64,
    pub importance: f64,
    pub decay_rate: f64,
    pub fresh_from: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// Rows came in an order that this partition cannot number: build it again from the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrder;

impl Partition {
    /// An empty partition. With `sealed`, texts that it holds are taken from there instead of being analysed again.
    #[must_use]
    pub fn new(dimensions: Option<usize>, sealed: Option<Sealed>) -> Self {
        let mut partition = Self { vectors: dimensions.map(Vectors::new), ..Self::default() };
        if let Some(sealed) = sealed {
            let documents = sealed.documents().iter().enumerate();
            partition.sealed_documents =
                documents.map(|(at, document)| ((document.row, document.version), at as u32)).collect();
            partition.text = TextIndex::with_sealed(sealed);
        }
        partition
    }

    /// Says that the partition has been loaded: no sealed document will be claimed after this.
    pub fn loaded(&mut self) {
        self.sealed_documents = HashMap::new();
    }

    /// Brings the partition up to date with a row as it stands in the record. `vectors` describe its present text.
    ///
    /// # Errors
    /// [`OutOfOrder`] when the row is older than the newest one known and was never seen; nothing has changed then.
    pub fn put(&mut self, memory: &Memory, vectors: Option<&[f32]>) -> Result<(), OutOfOrder> {
        let is_superseded = memory.superseded_by.is_some();
        if !memory.status.is_recallable() && !is_superseded {
            self.remove(memory.row);
            return Ok(());
        }
        let ordinal = self.ordinal_or_new(memory)?;
        let at = ordinal as usize;
        if self.columns[at].version != memory.version || !self.live.contains(ordinal) {
            self.put_text(ordinal, memory);
        }
        self.put_vectors(ordinal, memory, vectors);
        self.columns[at] = Column { embedded_version: self.columns[at].embedded_version, ..Column::of(memory) };
        self.facets.put(ordinal, memory);
        self.keys.remove(ordinal);
        if let (Some(key), false) = (&memory.key, is_superseded) {
            self.keys.add(key, ordinal);
        }
        match &memory.session {
            Some(session) => self.sessions.add(session, ordinal),
            None => self.sessions.remove(ordinal),
        }
        self.by_id.insert(memory.memory_id, ordinal);
        self.live.insert(ordinal);
        self.live_bits.insert(ordinal);
        set(&mut self.superseded, ordinal, is_superseded);
        set(&mut self.expiring, ordinal, memory.expires_at.is_some());
        Ok(())
    }

    /// Takes a row out of every read.
    pub fn remove(&mut self, row: i64) {
        let Some(ordinal) = self.ordinal(row) else { return };
        if !self.live.remove(ordinal) {
            return;
        }
        self.live_bits.remove(ordinal);
        self.superseded.remove(ordinal);
        self.expiring.remove(ordinal);
        self.facets.remove(ordinal);
        self.keys.remove(ordinal);
        self.sessions.remove(ordinal);
        self.text.remove(ordinal);
        if let Some(vectors) = &mut self.vectors {
            vectors.remove(ordinal);
        }
        let column = &mut self.columns[ordinal as usize];
        column.embedded_version = 0;
        self.by_id.remove(&column.memory_id);
    }

    /// The ordinals that a read at `now` may show and that pass `filter`.
    #[must_use]
    pub fn matching(&self, filter: &Filter, now: Timestamp, include_superseded: bool) -> RoaringBitmap {
        let mut visible = if include_superseded { self.live.clone() } else { &self.live - &self.superseded };
        for ordinal in &self.expiring {
            if self.columns[ordinal as usize].expires_at.is_some_and(|end| end <= now) {
                visible.remove(ordinal);
            }
        }
        let ordinal_of = |id: &str| id.parse().ok().and_then(|id: MemoryId| self.by_id.get(&id).copied());
        self.facets.compile(filter, &visible, &ordinal_of)
    }

    /// The rows at `ordinals`, in that order.
    #[must_use]
    pub fn rows_of(&self, ordinals: impl IntoIterator<Item = u32>) -> Vec<i64> {
        ordinals.into_iter().map(|ordinal| self.columns[ordinal as usize].row).collect()
    }

    /// The rows of `matching`, ordered by time of making or of change, then by id.
    #[must_use]
    pub fn ordered(&self, matching: &RoaringBitmap, by: ListOrder, descending: bool) -> Vec<i64> {
        let mut columns: Vec<&Column> = matching.iter().map(|ordinal| &self.columns[ordinal as usize]).collect();
        columns.sort_unstable_by_key(|column| {
            let instant = match by {
                ListOrder::CreatedAt => column.created_at,
                ListOrder::UpdatedAt => column.updated_at,
            };
            (instant, column.memory_id)
        });
        if descending {
            columns.reverse();
        }
        columns.into_iter().map(|column| column.row).collect()
    }

    /// Memories that a search can find, superseded and expired ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len() as usize
    }

    /// Whether a search can find nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Memories that have a vector.
    #[must_use]
    pub fn embedded(&self) -> usize {
        self.vectors.as_ref().map_or(0, Vectors::len)
    }

    /// Documents in the fresh and the sealed text part, dead ones included.
    #[must_use]
    pub fn text_parts(&self) -> (usize, usize) {
        self.text.parts()
    }

    /// Whether the sealed part holds every live text and no other.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.text_parts() == (0, self.len())
    }

    /// The rows that two indexes of one context show differently: there or not, what orders them, their words, and
    /// whether and by what they are found in the vector leg.
    ///
    /// # Errors
    /// When a sealed part cannot be read.
    pub fn differences(&self, other: &Self) -> Result<BTreeSet<i64>, IndexError> {
        let (ours, theirs) = (self.shown()?, other.shown()?);
        let rows = ours.keys().chain(theirs.keys());
        Ok(rows.filter(|row| ours.get(row) != theirs.get(row)).copied().collect())
    }

    fn shown(&self) -> Result<BTreeMap<i64, Shown<'_>>, IndexError> {
        let texts = self.text.extract(&self.live)?.into_iter().map(|(ordinal, text)| {
            let column = &self.columns[ordinal as usize];
            let vectors = self.vectors.as_ref().and_then(|vectors| vectors.rows_of(ordinal));
            let mut terms = text.terms;
            terms.sort_unstable();
            let is_superseded = self.superseded.contains(ordinal);
            (column.row, Shown { column, is_superseded, length: text.length, terms, vectors })
        });
        Ok(texts.collect())
    }

    /// Every live text as it was analysed, ready for [`Sealed::write`], which takes long and needs no lock.
    ///
    /// # Errors
    /// When the old sealed part cannot be read.
    pub fn to_seal(&self) -> Result<ToSeal, IndexError> {
        let documents = self.text.extract(&self.live)?.into_iter().map(|(ordinal, text)| {
            let column = &self.columns[ordinal as usize];
            (SealedDocument { row: column.row, version: column.version, length: text.length }, text.terms)
        });
        Ok(documents.collect())
    }

    /// Puts a sealed part made of [`Partition::to_seal`] in the place of both text parts. Texts that changed while it was
    /// being written stay fresh.
    ///
    /// # Errors
    /// When the old sealed part cannot be read; nothing has changed then.
    pub fn take_sealed(&mut self, sealed: Sealed) -> Result<(), IndexError> {
        let by_row: HashMap<(i64, i64), u32> = sealed
            .documents()
            .iter()
            .enumerate()
            .map(|(at, document)| ((document.row, document.version), at as u32))
            .collect();
        let document_of = |ordinal: u32| {
            let column = &self.columns[ordinal as usize];
            by_row.get(&(column.row, column.version)).copied()
        };
        let left = self.live.iter().filter(|ordinal| document_of(*ordinal).is_none()).collect();
        let left = self.text.extract(&left)?;
        let mut text = TextIndex::with_sealed(sealed);
        for ordinal in &self.live {
            if let Some(document) = document_of(ordinal) {
                text.adopt(ordinal, document);
            }
        }
        left.into_iter().for_each(|(ordinal, analysed)| text.put(ordinal, &analysed));
        self.text = text;
        Ok(())
    }

    /// The ordinal of a row, if the partition has ever seen it.
    #[must_use]
    pub fn ordinal(&self, row: i64) -> Option<u32> {
        self.columns.binary_search_by_key(&row, |column| column.row).ok().map(|at| at as u32)
    }

    fn ordinal_or_new(&mut self, memory: &Memory) -> Result<u32, OutOfOrder> {
        if let Some(ordinal) = self.ordinal(memory.row) {
            return Ok(ordinal);
        }
        if self.columns.last().is_some_and(|last| last.row > memory.row) {
            return Err(OutOfOrder);
        }
        self.columns.push(Column { version: 0, ..Column::of(memory) });
        Ok(self.columns.len() as u32 - 1)
    }

    fn put_text(&mut self, ordinal: u32, memory: &Memory) {
        match self.sealed_documents.remove(&(memory.row, memory.version)) {
            Some(document) => self.text.adopt(ordinal, document),
            None => self.text.put(ordinal, &analyse_document(&memory.indexed_text())),
        }
    }

    /// A vector that the record holds was checked when it was written; one that is refused now was damaged there since,
    /// and is treated as missing.
    fn put_vectors(&mut self, ordinal: u32, memory: &Memory, vectors: Option<&[f32]>) {
        let Some(index) = &mut self.vectors else { return };
        let embedded = &mut self.columns[ordinal as usize].embedded_version;
        match vectors {
            // Most changes leave the vectors alone: putting the same ones again would only leave dead rows behind.
            Some(rows) if index.has(ordinal, rows) => *embedded = memory.text_version,
            Some(rows) if index.put(ordinal, rows).is_ok() => *embedded = memory.text_version,
            Some(_) => index.remove(ordinal),
            None if *embedded != memory.text_version => {
                index.remove(ordinal);
                *embedded = 0;
            }
            None => {}
        }
    }
}

/// All that a search sees of a row.
#[derive(PartialEq)]
struct Shown<'a> {
    column: &'a Column,
    is_superseded: bool,
    length: u32,
    terms: Vec<(String, u32)>,
    vectors: Option<&'a [f32]>,
}

/// What `list` orders by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListOrder {
    /// When it was first written.
    #[default]
    CreatedAt,
    /// When it was last changed.
    UpdatedAt,
}

impl Column {
    fn of(memory: &Memory) -> Self {
        Self {
            row: memory.row,
            memory_id: memory.memory_id,
            version: memory.version,
            embedded_version: 0,
            importance: memory.importance,
            decay_rate: memory.decay_rate,
            fresh_from: memory.fresh_from(),
            created_at: memory.created_at,
            updated_at: memory.updated_at,
            expires_at: memory.expires_at,
        }
    }
}

fn set(ordinals: &mut RoaringBitmap, ordinal: u32, wanted: bool) {
    if wanted {
        ordinals.insert(ordinal);
    } else {
        ordinals.remove(ordinal);
    }
}
