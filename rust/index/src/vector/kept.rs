//! What a snapshot keeps of the vectors: the codes and sign bits ready made, and f32 to be mapped.
//!
//! The codes' file holds, one after another: the sign bits, the scales, the number of rows of each ordinal, the codes.
//! Lengths follow from three numbers that the snapshot keeps beside it ([`Shape`]) and must add up to the file's.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use super::codes::{RowScale, sign_words};
use super::limits::{DIMENSIONS_MAX, ORDINAL_MAX};
use crate::IndexError;
use crate::contents::{FileSum, damaged, open_regular, read_summed, room_for};
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

/// Vectors on their way into a snapshot.
#[derive(Debug, Default)]
pub struct ToKeep {
    pub(super) dim: usize,
    pub(super) signs: Vec<u64>,
    pub(super) scales: Vec<f32>,
    pub(super) counts: Vec<u32>,
    pub(super) codes: Vec<i8>,
    pub(super) exact: Vec<f32>,
}

/// Vectors out of a snapshot. The lengths of its parts agree.
#[derive(Debug)]
pub struct Kept {
    pub(super) dim: usize,
    pub(super) signs: Vec<u64>,
    pub(super) scales: Vec<RowScale>,
    pub(super) counts: Vec<u32>,
    pub(super) codes: Vec<i8>,
    /// `None` when there is no vector at all: nothing cannot be mapped.
    pub(super) exact: Option<Mapped>,
}

impl ToKeep {
    pub fn shape(&self) -> Shape {
        Shape { dim: self.dim as u64, rows: self.scales.len() as u64 / 2, ordinals: self.counts.len() as u64 }
    }

    /// Writes everything but f32.
    pub fn write_codes(&self, file: &mut impl Write) -> std::io::Result<()> {
        file.write_all(bytemuck::cast_slice(&self.signs))?;
        file.write_all(bytemuck::cast_slice(&self.scales))?;
        file.write_all(bytemuck::cast_slice(&self.counts))?;
        file.write_all(bytemuck::cast_slice(&self.codes))
    }

    /// Writes f32.
    pub fn write_exact(&self, file: &mut impl Write) -> std::io::Result<()> {
        file.write_all(bytemuck::cast_slice(&self.exact))
    }
}

impl Shape {
    /// The bytes of both files; `None` when no index can have this shape.
    fn bytes(self) -> Option<(u64, u64)> {
        if self.dim == 0
            || self.dim > DIMENSIONS_MAX as u64
            || self.ordinals > u64::from(ORDINAL_MAX)
            || self.rows > u64::from(u32::MAX)
        {
            return None;
        }
        // Bounded as above, none of these sums comes near the end of a u64.
        let words = sign_words(self.dim as usize) as u64;
        let codes = self.rows * (8 * words + 8 + self.dim) + 4 * self.ordinals;
        Some((codes, 4 * self.rows * self.dim))
    }
}

impl Kept {
    /// Reads the codes, of the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read, or is not what was written, or not of this shape.
    pub fn read(path: &Path, sum: FileSum, shape: Shape, exact: Option<Mapped>) -> Result<Self, IndexError> {
        let mut file = open_regular(path)?;
        room_for(&file, path, sum.bytes)?;
        let floats = exact.as_ref().map_or(0, |exact| exact.floats().len()) as u64;
        if shape.bytes() != Some((sum.bytes, 4 * floats)) {
            return Err(damaged(path));
        }
        let (dim, rows) = (shape.dim as usize, shape.rows as usize);
        let mut hasher = crc32fast::Hasher::new();
        let signs = read_numbers(&mut file, &mut hasher, rows * sign_words(dim))?;
        let scales: Vec<f32> = read_numbers(&mut file, &mut hasher, rows * 2)?;
        let counts: Vec<u32> = read_numbers(&mut file, &mut hasher, shape.ordinals as usize)?;
        let codes = read_numbers(&mut file, &mut hasher, rows * dim)?;
        let counted: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        if hasher.finalize() != sum.crc || counted != shape.rows {
            return Err(damaged(path));
        }
        let scales = scales.as_chunks::<2>().0.iter().map(|[scale, rest]| RowScale { scale: *scale, rest: *rest });
        Ok(Self { dim, signs, scales: scales.collect(), counts, codes, exact })
    }
}

/// Reads `count` numbers, which the file has been seen to hold.
fn read_numbers<T: Pod>(file: &mut File, hasher: &mut crc32fast::Hasher, count: usize) -> Result<Vec<T>, IndexError> {
    let mut numbers = vec![T::zeroed(); count];
    read_summed(file, hasher, bytemuck::cast_slice_mut(&mut numbers))?;
    Ok(numbers)
}
