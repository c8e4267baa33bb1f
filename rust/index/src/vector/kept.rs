//! What a snapshot keeps of the vectors: signs, codes and f32, all ready made and mapped.
//!
//! The codes' file holds, one after another: the cells, the signs, the scales, the number of rows of each ordinal, the codes.
//! Lengths follow from three numbers that the snapshot keeps beside it ([`Shape`]) and the cells, and must add up to the
//! files'.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use roaring::RoaringBitmap;

use serde::{Deserialize, Serialize};

use super::cells::Cells;
use super::codes::RowScale;
use super::limits::{DIMENSIONS_MAX, ORDINAL_MAX};
use super::signs::{Signs, block_len};
use super::table::Table;
use super::vectors::Vectors;
use crate::mapped::Mapped;

/// How many vectors a snapshot keeps, of how many ordinals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Numbers in each vector.
    pub dim: u64,
    /// Rows.
    pub rows: u64,
    /// Ordinals, those without a vector included.
    pub ordinals: u64,
}

/// Vectors on their way into a snapshot: a copy of all, of which some ordinals are kept and numbered anew. What is mapped
/// is shared and not copied.
#[derive(Debug)]
pub struct ToKeep {
    pub(super) vectors: Vectors,
    pub(super) ordinals: RoaringBitmap,
}

/// Vectors out of a snapshot. The lengths of its parts agree.
#[derive(Debug)]
pub struct Kept {
    pub(super) dim: usize,
    pub(super) signs: Signs,
    pub(super) scales: Vec<RowScale>,
    pub(super) counts: Vec<u32>,
    pub(super) codes: Table<i8>,
    pub(super) exact: Table<f32>,
}

impl ToKeep {
    pub fn shape(&self) -> Shape {
        let rows = self.ranges().map(|range| range.len() as u64).sum();
        Shape { dim: self.vectors.dim() as u64, rows, ordinals: self.ordinals.len() }
    }

    /// Writes everything but f32.
    pub fn write_codes(&self, file: &mut impl Write) -> std::io::Result<()> {
        let rows = &self.vectors.rows;
        let numbers: Vec<u32> = self.ranges().flatten().map(|row| row as u32).collect();
        let cells = Cells::of(rows, &numbers);
        cells.write(file)?;
        Signs::write(&cells, |row| rows.exact.row(numbers[row] as usize), file)?;
        for row in self.ranges().flatten() {
            let RowScale { scale, rest } = rows.scale(row as u32);
            file.write_all(bytemuck::cast_slice(&[scale, rest]))?;
        }
        self.ranges().try_for_each(|range| file.write_all(&(range.len() as u32).to_ne_bytes()))?;
        self.ranges().try_for_each(|range| file.write_all(bytemuck::cast_slice(rows.codes.rows(range))))
    }

    /// Writes f32.
    pub fn write_exact(&self, file: &mut impl Write) -> std::io::Result<()> {
        let rows = &self.vectors.rows;
        self.ranges().try_for_each(|range| file.write_all(bytemuck::cast_slice(rows.exact.rows(range))))
    }

    /// The rows of each ordinal that is kept.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let Vectors { rows, live } = &self.vectors;
        self.ordinals.iter().map(|ordinal| if live.contains(ordinal) { rows.range(ordinal) } else { 0..0 })
    }
}

impl Shape {
    /// Whether an index can have this shape.
    fn is_possible(self) -> bool {
        (1..=DIMENSIONS_MAX as u64).contains(&self.dim)
            && self.ordinals <= u64::from(ORDINAL_MAX)
            && u32::try_from(self.rows).is_ok()
    }
}

impl Kept {
    /// The vectors in these files; `None` when they are not of this shape.
    pub fn new(codes: Mapped, exact: Mapped, shape: Shape) -> Option<Self> {
        if !shape.is_possible() {
            return None;
        }
        // Bounded as they are now, no sum of these comes near the end of a usize.
        let (dim, rows, ordinals) = (shape.dim as usize, shape.rows as usize, shape.ordinals as usize);
        let (codes, exact) = (Arc::new(codes), Arc::new(exact));
        let (cells, signs_at) = Cells::mapped(&codes, 0, dim, rows)?;
        let blocks = cells.blocks();
        let scales_at = signs_at + size_of::<f32>() * blocks * block_len(dim);
        let counts_at = scales_at + 8 * rows;
        let codes_at = counts_at + 4 * ordinals;
        let counts = codes.numbers::<u32>(counts_at, ordinals)?.to_vec();
        let counted: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        let lengths = (codes_at + dim * rows, size_of::<f32>() * dim * rows);
        if counted != shape.rows || lengths != (codes.bytes().len(), exact.bytes().len()) {
            return None;
        }
        let scales = codes.numbers::<f32>(scales_at, 2 * rows)?.as_chunks::<2>().0.iter();
        Some(Self {
            dim,
            signs: Signs::kept(cells, Table::mapped(&codes, signs_at, block_len(dim), blocks)?),
            scales: scales.map(|[scale, rest]| RowScale { scale: *scale, rest: *rest }).collect(),
            counts,
            codes: Table::mapped(&codes, codes_at, dim, rows)?,
            exact: Table::mapped(&exact, 0, dim, rows)?,
        })
    }
}
