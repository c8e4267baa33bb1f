//! Estimates of cosines from one bit a number, after `RaBitQ` (Gao and Long 2024, "`RaBitQ`: Quantizing High-Dimensional
//! Vectors with a Theoretical Error Bound", SIGMOD).
//!
//! A row `x` is kept as the signs `s` of `r = x − c`, where `c` is a centre that all rows share, and as three factors. The
//! query is not rounded to bits, so an estimate errs far less than a count of differing bits does:
//!
//! - `⟨x, q⟩ = ⟨c, q⟩ + ⟨r, c⟩ + ⟨r, q − c⟩`, of which only the last is estimated, as `‖r‖² / ‖r‖₁ · ⟨s, q − c⟩`;
//! - the error has mean 0 and a standard deviation of about `‖q − c‖ · ‖r‖ · √((1 − g²) / (g² (D − 1)))`, with
//!   `g = ‖r‖₁ / (√D ‖r‖)` (their theorem 3.2, which holds for rows that were turned at random. Ours are not: dense
//!   embeddings keep to it, sparse ones do not, and a search sees that of its own hits).
//!
//! Signs lie by blocks of 32 rows, four numbers to a nibble, so that one shuffle looks up the same nibble of 32 rows in
//! a table of the query's 16 sums ("fast scan": André, Kermarrec and Le Scouarnec 2015, "Cache locality is not enough").

use std::sync::Arc;

use super::codes::{length, sum_of};
use super::kernels::{BLOCK, ENTRY_MAX, Line, SignBlock, kernels};
use super::table::Table;
use crate::bits::Bits;
use crate::mapped::Mapped;

/// Numbers whose signs share one nibble.
const NIBBLE: usize = 4;
/// Entries of one nibble's table, and bytes that hold this nibble of all rows of a block.
const ENTRIES: usize = 16;
/// The bits of one nibble.
const MASK: u8 = 0x0f;
/// Factors of one row.
const FACTORS: usize = 3;
/// Stands for "nobody's": the owner of a row that is dead, or only fills its block.
pub(super) const NOBODY: u32 = u32::MAX;

/// The signs of all rows, with the ordinal that each row belongs to.
///
/// Rows that were mapped fill blocks of their own, so that a row's place does not depend on how many they were.
#[derive(Debug, Clone)]
pub(super) struct Signs {
    /// What signs are taken about.
    centre: Vec<f32>,
    mapped_rows: usize,
    rows: usize,
    bits: Table<u8>,
    /// For each block: how much a unit of `⟨s, q − c⟩` counts, the error to expect for a unit of `‖q − c‖`, and `⟨r, c⟩`.
    factors: Table<f32>,
    owners: Vec<u32>,
    /// For each block, the first of its rows' owners when these followed one another, as the last row was added.
    runs: Vec<Option<u32>>,
}

/// A query as the blocks' nibbles look it up.
#[derive(Debug)]
pub(super) struct SignQuery {
    tables: Vec<u8>,
    /// `⟨s, q − c⟩` is `step × sum + base`.
    step: f32,
    base: f32,
    /// `⟨c, q⟩`.
    offset: f32,
    /// `‖q − c‖`.
    length: f32,
}

impl Signs {
    /// No rows yet.
    pub fn about(centre: Vec<f32>) -> Self {
        let width = block_bytes(centre.len());
        Self {
            centre,
            mapped_rows: 0,
            rows: 0,
            bits: Table::new(width),
            factors: Table::new(FACTORS * BLOCK),
            owners: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// The rows that a snapshot kept, about zero, from byte `start` of its file on, each ordinal's after those of the
    /// ordinals before it; `None` when they are not all there.
    pub fn mapped(file: &Arc<Mapped>, start: usize, dim: usize, counts: &[u32]) -> Option<Self> {
        let rows = counts.iter().map(|count| *count as usize).sum();
        let (blocks, width) = (usize::div_ceil(rows, BLOCK), block_bytes(dim));
        let bits = Table::mapped(file, start, width, blocks)?;
        let factors = Table::mapped(file, start + width * blocks, FACTORS * BLOCK, blocks)?;
        let mut owners = Vec::with_capacity(blocks * BLOCK);
        for (ordinal, count) in (0..).zip(counts) {
            owners.extend(std::iter::repeat_n(ordinal, *count as usize));
        }
        owners.resize(blocks * BLOCK, NOBODY);
        let runs = owners.as_chunks().0.iter().map(run_of).collect();
        Some(Self { centre: vec![0.0; dim], mapped_rows: rows, rows, bits, factors, owners, runs })
    }

    /// Bytes of a snapshot's file that so many rows take.
    pub fn bytes(dim: usize, rows: u64) -> u64 {
        rows.div_ceil(BLOCK as u64) * (block_bytes(dim) + size_of::<f32>() * FACTORS * BLOCK) as u64
    }

    /// What signs are taken about.
    pub fn centre(&self) -> &[f32] {
        &self.centre
    }

    /// About how many bytes of memory they take, mapped files left out.
    pub fn footprint(&self) -> usize {
        self.bits.tail_len() + size_of::<f32>() * (self.factors.tail_len() + self.owners.len())
    }

    /// Adds a unit row of `owner`.
    pub fn push(&mut self, owner: u32, unit: &[f32]) {
        let slot = self.slot(self.rows);
        self.rows += 1;
        self.open_block(slot);
        let rest: Vec<f32> = unit.iter().zip(&self.centre).map(|(x, c)| x - c).collect();
        let sign = |(bit, x): (usize, &f32)| u8::from(*x > 0.0) << bit;
        let signs = rest.chunks(NIBBLE).map(|numbers| numbers.iter().enumerate().map(sign).sum());
        self.set(slot % BLOCK, signs, &factors_of(&rest, &self.centre));
        self.owners[slot] = owner;
        if slot % BLOCK == BLOCK - 1 {
            self.runs[slot / BLOCK] = self.owners.last_chunk().and_then(run_of);
        }
    }

    /// Adds the block that a slot lies in, if it is the first there.
    fn open_block(&mut self, slot: usize) {
        if slot.is_multiple_of(BLOCK) {
            let (bits, factors) = (self.bits.tail_mut(), self.factors.tail_mut());
            bits.resize(bits.len() + block_bytes(self.centre.len()), 0);
            factors.resize(factors.len() + FACTORS * BLOCK, 0.0);
            self.owners.resize(slot + BLOCK, NOBODY);
            self.runs.push(None);
        }
    }

    /// Sets a row of the last block, which was all zeros.
    fn set(&mut self, lane: usize, signs: impl Iterator<Item = u8>, factors: &[f32]) {
        let bits = self.bits.tail_mut();
        let at = bits.len() - block_bytes(self.centre.len());
        for (nibble, signs) in bits[at..].chunks_exact_mut(ENTRIES).zip(signs) {
            nibble[lane % ENTRIES] |= signs << (NIBBLE * (lane / ENTRIES));
        }
        let kept = self.factors.tail_mut();
        let at = kept.len() - FACTORS * BLOCK + lane;
        kept[at..].iter_mut().step_by(BLOCK).zip(factors).for_each(|(kept, factor)| *kept = *factor);
    }

    /// Forgets that these rows were somebody's.
    pub fn disown(&mut self, rows: std::ops::Range<usize>) {
        for row in rows {
            let slot = self.slot(row);
            self.owners[slot] = NOBODY;
        }
    }

    /// The place of a row among those of all blocks.
    fn slot(&self, row: usize) -> usize {
        if row < self.mapped_rows { row } else { self.mapped_rows.next_multiple_of(BLOCK) + row - self.mapped_rows }
    }

    /// The rows of a block whose owners are in `mask`. Some of them may be nobody's.
    pub fn rows_of(&self, block: usize, mask: &Bits) -> u32 {
        if let Some(first) = self.runs[block] {
            return mask.from_on(first);
        }
        let owners = self.owners[block * BLOCK..][..BLOCK].iter();
        (0..).zip(owners).fold(0, |rows, (row, owner)| rows | u32::from(mask.contains(*owner)) << row)
    }

    /// The owners of all rows, block by block.
    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    /// The most that each row's cosine is likely to be, so many standard errors above its estimate: handed to `visit` block
    /// by block, with the rows that reach what `visit` last said is of interest. Blocks of which `wanted` has no row are
    /// passed over.
    pub fn for_each_block(
        &self,
        query: &SignQuery,
        deviations: f32,
        wanted: impl Fn(usize) -> u32,
        mut visit: impl FnMut(usize, u32, &[f32; BLOCK]) -> f32,
    ) {
        let estimate = kernels().estimate_block;
        let SignQuery { tables, step, base, offset, length } = query;
        let (step, base, offset) = (*step, *base, *offset);
        let line = Line { tables, step, base, deviations: deviations * length, offset };
        let (mut floor, mut reach) = (f32::NEG_INFINITY, [0.0; BLOCK]);
        for block in 0..self.owners.len() / BLOCK {
            let wanted = wanted(block);
            if wanted == 0 {
                continue;
            }
            let factors = self.factors.row(block).as_chunks().0;
            let factors = factors.try_into().expect("a block has three factors a row");
            let signs = SignBlock { nibbles: self.bits.row(block), factors };
            floor = visit(block, wanted & estimate(&line, signs, floor, &mut reach), &reach);
        }
    }

    /// A row's place among those of all blocks, and the error to expect of its estimate.
    pub fn error(&self, query: &SignQuery, row: usize) -> (usize, f32) {
        let slot = self.slot(row);
        (slot, query.length * self.factors.row(slot / BLOCK)[BLOCK + slot % BLOCK])
    }

    /// Writes some rows, in this order, as [`Signs::mapped`] reads them.
    pub fn write(&self, rows: impl Iterator<Item = usize>, file: &mut impl std::io::Write) -> std::io::Result<()> {
        let mut kept = Self::about(self.centre.clone());
        rows.for_each(|row| kept.copy(self, row));
        file.write_all(kept.bits.tail_mut())?;
        file.write_all(bytemuck::cast_slice(kept.factors.tail_mut()))
    }

    /// Adds a row of `other`, which has the same centre, as nobody's.
    fn copy(&mut self, other: &Self, row: usize) {
        let (from, to) = (other.slot(row), self.rows);
        self.rows += 1;
        self.open_block(to);
        let nibbles = other.bits.row(from / BLOCK).chunks_exact(ENTRIES);
        let signs = nibbles.map(|nibble| nibble[from % ENTRIES] >> (NIBBLE * (from % BLOCK / ENTRIES)) & MASK);
        let factors = other.factors.row(from / BLOCK).chunks_exact(BLOCK);
        let (signs, factors): (Vec<u8>, Vec<f32>) = (signs.collect(), factors.map(|each| each[from % BLOCK]).collect());
        self.set(to % BLOCK, signs.into_iter(), &factors);
    }
}

impl SignQuery {
    /// A query about the centre that the rows' signs are taken about.
    pub fn new(unit: &[f32], centre: &[f32]) -> Self {
        let rest: Vec<f32> = unit.iter().zip(centre).map(|(x, c)| x - c).collect();
        let sums: Vec<[f32; ENTRIES]> = rest.chunks(NIBBLE).map(sums_of).collect();
        let least = |sums: &[f32; ENTRIES]| sums.iter().copied().fold(f32::INFINITY, f32::min);
        let most = |sums: &[f32; ENTRIES]| sums.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let widest = sums.iter().map(|sums| most(sums) - least(sums)).fold(0.0, f32::max);
        let step = (widest / f32::from(ENTRY_MAX)).max(f32::MIN_POSITIVE);
        let mut tables = Vec::with_capacity(block_bytes(unit.len()));
        let mut rounded = 0.0;
        for sums in &sums {
            let least = least(sums);
            let entries = sums.map(|sum| (((sum - least) / step + 0.5) as u8).min(ENTRY_MAX));
            // Of a nibble far smaller than the widest all entries may be rounded alike, which would not average out.
            rounded += sums.iter().zip(entries).map(|(sum, entry)| sum - least - step * f32::from(entry)).sum::<f32>();
            tables.extend(entries);
        }
        tables.resize(block_bytes(unit.len()), 0);
        // Numbers whose sign is +1 count once in a sum and the others not at all: twice a sum, less the sum of all.
        let whole = sums.iter().map(least).sum::<f32>() + rounded / ENTRIES as f32;
        let base = 2.0 * whole - rest.iter().sum::<f32>();
        let offset = sum_of(unit, centre, |x, c| x * c) as f32;
        Self { tables, step: 2.0 * step, base, offset, length: length(&rest) as f32 }
    }
}

/// The first of a block's owners, if each is followed by the next.
fn run_of(owners: &[u32; BLOCK]) -> Option<u32> {
    let is_run = (0..).zip(owners).all(|(at, owner)| owners[0].checked_add(at) == Some(*owner));
    is_run.then_some(owners[0])
}

/// Bytes of a block of rows of `dim` numbers: kernels read two nibbles of all rows at once.
fn block_bytes(dim: usize) -> usize {
    dim.div_ceil(NIBBLE).next_multiple_of(2) * ENTRIES
}

/// The sums of all choices from up to four numbers, by the bits of the choice.
fn sums_of(numbers: &[f32]) -> [f32; ENTRIES] {
    let mut sums = [0.0; ENTRIES];
    for (bit, number) in numbers.iter().enumerate() {
        for choice in 1 << bit..2 << bit {
            sums[choice] = sums[choice - (1 << bit)] + number;
        }
    }
    sums
}

/// What is kept of a row beside its signs: see [`Signs::factors`].
fn factors_of(rest: &[f32], centre: &[f32]) -> [f32; FACTORS] {
    let dim = rest.len() as f64;
    let square = sum_of(rest, rest, |x, y| x * y);
    let sum = sum_of(rest, rest, |x, _| x.abs());
    let along = sum_of(rest, centre, |x, c| x * c) as f32;
    if sum == 0.0 {
        return [0.0, 0.0, along];
    }
    // Rounding may leave a row of equal magnitudes, which is estimated exactly, just below 0.
    let spread = (dim * square - sum * sum).max(0.0) / (dim - 1.0).max(1.0);
    [(square / sum) as f32, (square * spread).sqrt() as f32 / sum as f32, along]
}

#[cfg(test)]
mod tests {
    use super::super::unit::normalise;
    use super::*;

    /// Numbers that are the same in every run, about evenly spread from -1 to 1.
    fn row(seed: u32, dim: usize) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
        let numbers = (0..dim).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        });
        normalise(&numbers.collect::<Vec<f32>>()).unwrap()
    }

    fn estimates(signs: &Signs, query: &[f32], deviations: f32) -> Vec<(u32, f32)> {
        let query = SignQuery::new(query, signs.centre());
        let mut found = Vec::new();
        signs.for_each_block(
            &query,
            deviations,
            |_| u32::MAX,
            |block, rows, most| {
                assert_eq!(rows, u32::MAX);
                found.extend(signs.owners()[block * BLOCK..].iter().copied().zip(most.iter().copied()));
                f32::NEG_INFINITY
            },
        );
        found.retain(|(owner, _)| *owner != NOBODY);
        found
    }

    fn cosine(one: &[f32], other: &[f32]) -> f32 {
        one.iter().zip(other).map(|(x, y)| x * y).sum()
    }

    /// The errors of the estimates are as large as is said, neither more nor less, about any centre and for any length.
    #[test]
    fn errors_are_as_large_as_is_said() {
        for (dim, centre, spike) in
            [(384, 0.0, 0.0), (384, 0.03, 0.0), (130, 0.0, 0.0), (1_100, 0.01, 0.0), (4_096, 0.0, 3.0)]
        {
            let mut signs = Signs::about(vec![centre; dim]);
            let around = |seed: u32| row(seed, dim).into_iter().map(|x| x + centre).collect::<Vec<f32>>();
            let rows: Vec<Vec<f32>> = (0..500).map(around).collect();
            rows.iter().zip(0..).for_each(|(row, owner)| signs.push(owner, row));
            let mut query = around(1_000);
            query[7] += spike;
            let (middle, above) = (estimates(&signs, &query, 0.0), estimates(&signs, &query, 1.0));
            let errors = rows.iter().zip(middle.iter().zip(&above)).map(|(row, ((_, middle), (_, above)))| {
                f64::from(cosine(row, &query) - middle) / f64::from(above - middle)
            });
            let errors: Vec<f64> = errors.collect();
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            let deviation = (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt();
            assert!(
                mean.abs() < 0.15 && (0.9..1.15).contains(&deviation),
                "{dim}, {centre}, {spike}: {mean} ± {deviation}"
            );
        }
    }

    /// Rows of one block and of several, added one by one or mapped, are estimated alike; those disowned are nobody's.
    #[test]
    fn mapped_and_added_rows_are_estimated_alike() {
        let dim = 70;
        let mut grown = Signs::about(vec![0.0; dim]);
        (0..70).for_each(|owner| grown.push(owner, &row(owner, dim)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signs");
        let mut bytes = Vec::new();
        grown.write(0..40, &mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, Signs::bytes(dim, 40));
        std::fs::write(&path, bytes).unwrap();
        let file = Arc::new(Mapped::open(&path, crate::contents::sum_of(&path).unwrap()).unwrap());
        let mut mapped = Signs::mapped(&file, 0, dim, &[1; 40]).unwrap();
        assert!(Signs::mapped(&file, 0, dim, &[1; 65]).is_none());
        (40..70).for_each(|owner| mapped.push(owner, &row(owner, dim)));
        let query = row(99, dim);
        assert_eq!(estimates(&mapped, &query, 2.0), estimates(&grown, &query, 2.0));
        mapped.disown(38..42);
        let left: Vec<u32> = estimates(&mapped, &query, 2.0).into_iter().map(|(owner, _)| owner).collect();
        assert_eq!(left, (0..38).chain(42..70).collect::<Vec<u32>>());
        let again = |signs: &Signs| {
            let mut bytes = Vec::new();
            signs.write((10..60).rev(), &mut bytes).unwrap();
            bytes
        };
        assert_eq!(again(&mapped), again(&grown), "what is mapped is copied as what was added");
    }

    /// The rows of a block that a mask holds are found in a block whose owners follow one another as in any other.
    #[test]
    fn rows_of_a_mask_are_those_of_its_owners() {
        let mask = Bits::from(&(0..200).filter(|ordinal| ordinal % 3 == 0).collect());
        let owners = (5..37).chain((40..70).rev()).chain([99, 99]).chain(100..131);
        let mut signs = Signs::about(vec![0.0; 4]);
        owners.for_each(|owner| signs.push(owner, &[0.5; 4]));
        for (block, owners) in signs.owners().chunks(BLOCK).enumerate() {
            let rows = (0..).zip(owners).filter(|(_, owner)| mask.contains(**owner));
            assert_eq!(signs.rows_of(block, &mask), rows.fold(0, |rows, (row, _)| rows | 1 << row));
        }
        assert_eq!(signs.runs, [Some(5), None, None]);
    }

    /// A vector with one number, and one that is the centre itself, are estimated exactly.
    #[test]
    fn what_signs_carry_whole_is_exact() {
        let mut one = Signs::about(vec![0.0]);
        one.push(0, &[1.0]);
        one.push(1, &[-1.0]);
        assert_eq!(estimates(&one, &[1.0], 3.0), [(0, 1.0), (1, -1.0)]);
        let mut centred = Signs::about(vec![0.6, 0.8]);
        centred.push(7, &[0.6, 0.8]);
        let found = estimates(&centred, &[1.0, 0.0], 3.0);
        assert!((found[0].1 - 0.6).abs() < 1e-6, "{found:?}");
    }
}
