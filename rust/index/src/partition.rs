//! One context's index: its columns, bitmaps, texts and vectors, following the record row by row.
//!
//! Ordinals are dense and stand in the order of row numbers, whatever the partition went through, so that a tie broken
//! by ordinal is broken alike in an index that grew and in one that was just built (I3).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use memkura_model::filter::{Field, Scalar, TextField};
use memkura_model::{Filter, Memory, MemoryId, Timestamp};
use roaring::RoaringBitmap;

use crate::IndexError;
use crate::bits::Bits;
use crate::column::Column;
use crate::contents::Contents;
use crate::facets::{Columns, Facets};
use crate::keys::Keys;
use crate::sessions::Sessions;
use crate::snapshot::{Opened, Snapshot, State, Written};
use crate::text::{Analysed, Sealed, TextIndex};
use crate::vector::Vectors;
use crate::vector::kept::ToKeep;

/// The index of one context.
#[derive(Debug, Default)]
pub struct Partition {
    pub(crate) columns: Vec<Column>,
    pub(crate) live: RoaringBitmap,
    pub(crate) live_bits: Bits,
    superseded: RoaringBitmap,
    expiring: RoaringBitmap,
    /// Made when an id is first asked for: few filters name one.
    by_id: OnceLock<HashMap<MemoryId, u32>>,
    facets: Facets,
    pub(crate) keys: Keys,
    pub(crate) sessions: Sessions,
    pub(crate) text: TextIndex,
    pub(crate) vectors: Option<Vectors>,
    /// How often it was changed, and how often it had been when it was sealed.
    edits: u64,
    sealed_edits: Option<u64>,
}

/// Rows came in an order that this partition cannot number: build it again from the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrder;

/// Where a row's facts were put, and whether it has another text than before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub ordinal: u32,
    pub is_other_text: bool,
}

impl Partition {
    /// An empty partition, whose vectors have this many numbers.
    #[must_use]
    pub fn new(dimensions: Option<usize>) -> Self {
        Self { vectors: dimensions.map(Vectors::new), ..Self::default() }
    }

    /// The partition that [`Snapshot::write`] left in `folder` with these contents, of vectors of `dimensions` numbers.
    ///
    /// # Errors
    /// When anything is missing, or is not what was written. Make the partition again from the record then.
    pub fn open(folder: &Path, contents: &Contents, dimensions: Option<usize>) -> Result<Self, IndexError> {
        let opened = Opened::read(folder, contents)?.into_partition(dimensions);
        opened.ok_or_else(|| IndexError::Sealed("its parts are not of one index".to_owned()))
    }

    /// The partition of a snapshot's parts; `None` when they do not fit each other.
    pub(crate) fn from_snapshot(
        columns: Vec<Column>,
        state: State<'_>,
        text: Sealed,
        vectors: Option<Vectors>,
    ) -> Option<Self> {
        let count = columns.len() as u32;
        let superseded = RoaringBitmap::from_iter(state.superseded);
        let is_within = superseded.max().is_none_or(|last| last < count) && state.facets.counts.len() == columns.len();
        if text.len() != columns.len() || !is_within {
            return None;
        }
        let mut live = RoaringBitmap::new();
        live.insert_range(0..count);
        let expires = columns.iter().zip(0..).filter(|(column, _)| column.expires_at.is_some());
        let mut partition = Self {
            live_bits: Bits::from(&live),
            expiring: expires.map(|(_, ordinal)| ordinal).collect(),
            facets: Facets::from_state(state.facets)?,
            text: TextIndex::of_snapshot(text),
            sealed_edits: Some(0),
            superseded,
            columns,
            live,
            vectors,
            ..Self::default()
        };
        for (key, ordinals) in partition.facets.texts(TextField::Key) {
            let key: Arc<str> = key.into();
            let named = ordinals - &partition.superseded;
            named.iter().for_each(|ordinal| partition.keys.add_folded(Arc::clone(&key), ordinal));
        }
        for (session, turns) in partition.facets.texts(TextField::Session) {
            partition.sessions.add_all(session, turns);
        }
        Some(partition)
    }

    /// Brings the partition up to date with a row as it stands in the record. `vectors` describe its present text.
    ///
    /// # Errors
    /// [`OutOfOrder`] when the row is older than the newest one known and was never seen; nothing has changed then.
    pub fn put(&mut self, memory: &Memory, vectors: Option<&[f32]>) -> Result<(), OutOfOrder> {
        if let Some(Facts { ordinal, is_other_text }) = self.put_facts(memory)? {
            self.put_vectors(ordinal, memory, vectors);
            if is_other_text {
                self.text.put(ordinal, &memory.indexed_text());
            }
        }
        Ok(())
    }

    /// As [`Partition::put`], without the text and the vectors; `None` when the row was taken out.
    pub(crate) fn put_facts(&mut self, memory: &Memory) -> Result<Option<Facts>, OutOfOrder> {
        let is_superseded = memory.superseded_by.is_some();
        if !is_indexed(memory) {
            self.remove(memory.row);
            return Ok(None);
        }
        let ordinal = self.ordinal_or_new(memory)?;
        self.edits += 1;
        let at = ordinal as usize;
        let is_other_text = self.columns[at].version != memory.version || !self.live.contains(ordinal);
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
        if let Some(by_id) = self.by_id.get_mut() {
            by_id.insert(memory.memory_id, ordinal);
        }
        self.live.insert(ordinal);
        self.live_bits.insert(ordinal);
        set(&mut self.superseded, ordinal, is_superseded);
        set(&mut self.expiring, ordinal, memory.expires_at.is_some());
        Ok(Some(Facts { ordinal, is_other_text }))
    }

    /// Takes a row out of every read.
    pub fn remove(&mut self, row: i64) {
        let Some(ordinal) = self.ordinal(row) else { return };
        if !self.live.remove(ordinal) {
            return;
        }
        self.edits += 1;
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
        if let Some(by_id) = self.by_id.get_mut() {
            by_id.remove(&column.memory_id);
        }
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
        let ordinal_of = |id: &str| id.parse().ok().and_then(|id: MemoryId| self.by_id().get(&id).copied());
        self.facets.compile(filter, &visible, &Columns { columns: &self.columns, ordinal_of: &ordinal_of })
    }

    fn by_id(&self) -> &HashMap<MemoryId, u32> {
        let ids = || self.live.iter().map(|ordinal| (self.columns[ordinal as usize].memory_id, ordinal)).collect();
        self.by_id.get_or_init(ids)
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

    /// About how many bytes of memory it takes, mapped files left out.
    #[must_use]
    pub fn footprint(&self) -> usize {
        /// What a memory takes in bitmaps, keys and sessions, about.
        const VALUES_BYTES: usize = 200;
        let columns = self.columns.len() * (size_of::<Column>() + VALUES_BYTES);
        columns + self.text.footprint() + self.vectors.as_ref().map_or(0, Vectors::footprint)
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

    /// Whether the partition is as it was when it was last sealed.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed_edits == Some(self.edits)
    }

    /// How many terms of texts that are gone take memory until the partition is sealed, and how many the sealed part holds.
    #[must_use]
    pub fn wasted(&self) -> (usize, usize) {
        self.text.wasted()
    }

    /// How often the partition was changed since it was sealed, and how many texts the sealed part holds.
    #[must_use]
    pub fn unsealed(&self) -> (u64, usize) {
        (self.edits - self.sealed_edits.unwrap_or_default(), self.text.parts().1)
    }

    /// The rows that two indexes of one context show differently: there or not, what orders them, their words, and
    /// whether and by what they are found in the vector leg.
    #[must_use]
    pub fn differences(&self, other: &Self) -> BTreeSet<i64> {
        let (ours, theirs) = (self.shown(), other.shown());
        let rows = ours.keys().chain(theirs.keys());
        rows.filter(|row| ours.get(row) != theirs.get(row)).copied().collect()
    }

    fn shown(&self) -> BTreeMap<i64, Shown<'_>> {
        let shown = self.live.iter().map(|ordinal| {
            let column = &self.columns[ordinal as usize];
            let shown = Shown {
                column,
                is_superseded: self.superseded.contains(ordinal),
                values: self.facets.entered(ordinal),
                key: self.keys.of(ordinal),
                session: self.sessions.of(ordinal),
                text: self.text.analysed(ordinal),
                vectors: self.vectors.as_ref().and_then(|vectors| vectors.rows_of(ordinal)),
            };
            (column.row, shown)
        });
        shown.collect()
    }

    /// A copy of the whole partition, ready for [`Snapshot::write`], which takes long and needs no lock.
    ///
    /// # Errors
    /// When what is kept of it cannot be encoded.
    pub fn snapshot(&self) -> Result<Snapshot, IndexError> {
        let superseded = (0..).zip(&self.live).filter(|(_, ordinal)| self.superseded.contains(*ordinal));
        let vectors = self.vectors.as_ref().map(|vectors| vectors.to_keep(&self.live));
        let state = State {
            superseded: superseded.map(|(number, _)| number).collect(),
            facets: self.facets.state(&self.live),
            vectors: vectors.as_ref().map(ToKeep::shape),
        };
        let columns = self.live.iter().map(|ordinal| self.columns[ordinal as usize]);
        Ok(Snapshot {
            texts: self.text.to_seal(&self.live),
            columns: columns.collect(),
            state: state.to_bytes()?,
            vectors,
            edits: self.edits,
        })
    }

    /// Puts the texts and vectors of a snapshot in the place of those in memory. What changed while it was being written stays
    /// as it is.
    pub fn take_sealed(&mut self, written: Written) {
        let Written { text, vectors, rows, edits } = written;
        let columns = &self.columns;
        // Both stand in the order of rows, and are asked for in that of ordinals, which is the same.
        let numbers = || {
            let mut left = rows.iter().zip(0..).peekable();
            move |ordinal: u32| {
                let column = &columns[ordinal as usize];
                while left.next_if(|((row, _), _)| *row < column.row).is_some() {}
                left.next_if(|(row, _)| **row == (column.row, column.version)).map(|(_, number)| number)
            }
        };
        self.text = self.text.resealed(Arc::new(text), &mut numbers());
        if let Some((present, kept)) = self.vectors.as_mut().zip(vectors) {
            *present = present.resealed(kept, numbers());
        }
        self.sealed_edits = Some(edits);
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
    values: Vec<(&'a Field, &'a Scalar)>,
    key: Option<&'a str>,
    session: Option<&'a str>,
    text: Option<Analysed<'a>>,
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

/// Whether a search can find the memory at all.
fn is_indexed(memory: &Memory) -> bool {
    memory.status.is_recallable() || memory.superseded_by.is_some()
}

fn set(ordinals: &mut RoaringBitmap, ordinal: u32, wanted: bool) {
    if wanted {
        ordinals.insert(ordinal);
    } else {
        ordinals.remove(ordinal);
    }
}
