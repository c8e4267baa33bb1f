//! Estimates of cosines from one bit a number, after `RaBitQ` (Gao and Long 2024, "`RaBitQ`: Quantizing High-Dimensional
//! Vectors with a Theoretical Error Bound", SIGMOD).
//!
//! A row `x` is kept as the signs `s` of `r = x − c`, where `c` is the centre of the row's cell, and as three factors. The
//! query is not rounded to bits, so an estimate errs far less than a count of differing bits does:
//!
//! - `⟨x, q⟩ = ⟨c, q⟩ + ⟨r, c⟩ + ⟨r, q − c⟩`, of which only the last is estimated, as `w · ⟨s, q − c⟩` with
//!   `w = ‖r‖² / ‖r‖₁`. A query is looked up once for all cells: `w · ⟨s, c⟩` is a part of what is kept;
//! - the error has mean 0 and a standard deviation of about `‖q − c‖ · ‖r‖ · √((1 − g²) / (g² (D − 1)))`, with
//!   `g = ‖r‖₁ / (√D ‖r‖)` (their theorem 3.2, which holds for rows that were turned at random. Ours are not: dense
//!   embeddings keep to it, sparse ones do not, and a search sees that of its own hits).
//!
//! Signs lie by blocks of 32 rows, four numbers to a nibble, so that one shuffle looks up the same nibble of 32 rows in
//! a table of the query's 16 sums ("fast scan": André, Kermarrec and Le Scouarnec 2015, "Cache locality is not enough").

use std::io::Write;
use std::ops::Range;

use super::cells::Cells;
use super::codes::sum_of;
use super::kernels::{BLOCK, ENTRY_MAX, Line, SignBlock, kernels};
use super::table::Table;
use crate::bits::Bits;

/// Numbers whose signs share one nibble.
const NIBBLE: usize = 4;
/// Entries of one nibble's table, and bytes that hold this nibble of all rows of a block.
const ENTRIES: usize = 16;
/// Factors of one row.
const FACTORS: usize = 3;
/// Stands for "nobody's": the owner of a row that is dead, or only fills its block.
pub(super) const NOBODY: u32 = u32::MAX;

/// The signs of all rows, with the ordinal that each row belongs to.
///
/// Rows that a snapshot kept stand by cells, each in blocks of its own; rows added since are one cell more.
#[derive(Debug, Clone)]
pub(super) struct Signs {
    cells: Cells,
    /// What signs of the rows added since are taken about.
    centre: Vec<f32>,
    /// The places of the rows that a snapshot kept.
    slots: Vec<u32>,
    /// How many blocks those fill.
    kept_blocks: usize,
    rows: usize,
    /// Each block's nibbles, as so many f32, and then, for each of its rows: how much a unit of `⟨s, q⟩` counts, the error to
    /// expect for a unit of `‖q − c‖`, and what is added to `⟨c, q⟩`.
    blocks: Table<f32>,
    owners: Vec<u32>,
    /// For each block, the first of its rows' owners when these followed one another as its last row was given to one, and none
    /// has changed since.
    runs: Vec<Option<u32>>,
}

/// A query as the blocks' nibbles look it up.
#[derive(Debug)]
pub(super) struct SignQuery {
    tables: Vec<u8>,
    /// `⟨s, q⟩` is `step × sum + base`.
    step: f32,
    base: f32,
}

/// A cell, as a query sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    /// Its number.
    cell: usize,
    /// `⟨c, q⟩`.
    offset: f32,
    /// `‖q − c‖`.
    length: f32,
    /// The most that a row in it is likely to score.
    pub most: f32,
}

impl Sight {
    /// Whether a row that scores `least` takes more than this share of what the cell's rows are given.
    pub fn is_strained(&self, least: f32, share: f32) -> bool {
        least - self.offset > share * (self.most - self.offset)
    }
}

impl Signs {
    /// No rows yet.
    pub fn about(centre: Vec<f32>) -> Self {
        Self {
            cells: Cells::none(centre.len()),
            slots: Vec::new(),
            kept_blocks: 0,
            rows: 0,
            blocks: Table::new(block_len(centre.len())),
            owners: Vec::new(),
            runs: Vec::new(),
            centre,
        }
    }

    /// The rows that a snapshot kept by `cells`, in `blocks`, as nobody's.
    pub fn kept(cells: Cells, blocks: Table<f32>) -> Self {
        let kept_blocks = cells.blocks();
        let mut slots = vec![0; cells.order().len()];
        cells.each_slot(|slot, row| slots[row] = slot as u32);
        Self {
            centre: cells.mean(),
            rows: slots.len(),
            slots,
            kept_blocks,
            blocks,
            owners: vec![NOBODY; kept_blocks * BLOCK],
            runs: vec![None; kept_blocks],
            cells,
        }
    }

    /// About how many bytes of memory they take, mapped files left out.
    pub fn footprint(&self) -> usize {
        size_of::<f32>() * (self.blocks.tail_len() + self.owners.len() + self.slots.len())
            + size_of::<Option<u32>>() * self.runs.len()
    }

    /// Adds a unit row, as nobody's.
    pub fn push(&mut self, unit: &[f32]) {
        let slot = self.slot(self.rows);
        self.rows += 1;
        let width = block_len(self.centre.len());
        let blocks = self.blocks.tail_mut();
        if slot.is_multiple_of(BLOCK) {
            blocks.resize(blocks.len() + width, 0.0);
            self.owners.resize(slot + BLOCK, NOBODY);
            self.runs.push(None);
        }
        let at = blocks.len() - width;
        set(&mut blocks[at..], slot % BLOCK, unit, &self.centre);
    }

    /// Says whose these rows are.
    pub fn own(&mut self, rows: Range<usize>, owner: u32) {
        for row in rows {
            let slot = self.slot(row);
            self.owners[slot] = owner;
            // A run of former owners would be looked up under their numbers.
            let is_whole = slot % BLOCK == BLOCK - 1 && owner != NOBODY;
            self.runs[slot / BLOCK] = self.owners[..=slot].last_chunk().filter(|_| is_whole).and_then(run_of);
        }
    }

    /// The place of a row among those of all blocks.
    fn slot(&self, row: usize) -> usize {
        match self.slots.get(row) {
            Some(slot) => *slot as usize,
            None => self.kept_blocks * BLOCK + row - self.slots.len(),
        }
    }

    /// The rows of a block whose owners are in `mask`. Some of them may be nobody's.
    pub fn rows_of(&self, block: usize, mask: &Bits) -> u32 {
        if let Some(first) = self.runs[block] {
            return mask.from_on(first);
        }
        (0..).zip(self.owners(block)).fold(0, |rows, (row, owner)| rows | u32::from(mask.contains(*owner)) << row)
    }

    /// The owners of a block's rows.
    pub fn owners(&self, block: usize) -> &[u32; BLOCK] {
        self.owners[block * BLOCK..].first_chunk().expect("blocks are whole")
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.runs.len()
    }

    /// How a unit query sees each cell that has rows.
    pub fn sights(&self, unit: &[f32]) -> Vec<Sight> {
        let dot = kernels().dot_exact;
        let sight = |cell: usize, centre: &[f32], square: f32, reach: f32| {
            let offset = dot(centre, unit);
            let length = (1.0 - 2.0 * offset + square).max(0.0).sqrt();
            Sight { cell, offset, length, most: offset + reach }
        };
        let kept = (0..self.cells.len())
            .map(|cell| sight(cell, self.cells.centre(cell), self.cells.square(cell), self.cells.reach(cell)));
        // Of the rows added since nothing was ever found out: all of them are looked at.
        let added = sight(self.cells.len(), &self.centre, dot(&self.centre, &self.centre), f32::INFINITY);
        kept.chain((self.blocks() > self.kept_blocks).then_some(added)).collect()
    }

    /// The blocks of a cell.
    pub fn blocks_of(&self, sight: &Sight) -> Range<usize> {
        if sight.cell < self.cells.len() { self.cells.blocks_of(sight.cell) } else { self.kept_blocks..self.blocks() }
    }

    /// The most that each row's cosine is likely to be, so many standard errors above its estimate, and which rows reach
    /// `floor`.
    pub fn estimate(
        &self,
        (query, sight): (&SignQuery, &Sight),
        deviations: f32,
        block: usize,
        floor: f32,
        reach: &mut [f32; BLOCK],
    ) -> u32 {
        let SignQuery { tables, step, base } = query;
        let line =
            Line { tables, step: *step, base: *base, deviations: deviations * sight.length, offset: sight.offset };
        let (nibbles, factors) = parts(self.blocks.row(block));
        (kernels().estimate_block)(&line, SignBlock { nibbles, factors }, floor, reach)
    }

    /// A row's block and its place there.
    pub fn place(&self, row: usize) -> (usize, usize) {
        let slot = self.slot(row);
        (slot / BLOCK, slot % BLOCK)
    }

    /// The error to expect of a row's estimate.
    pub fn error(&self, sight: &Sight, (block, at): (usize, usize)) -> f32 {
        let (_, [_, error, _]) = parts(self.blocks.row(block));
        sight.length * error[at]
    }

    /// Writes rows by `cells`, as [`Signs::kept`] takes them.
    pub fn write<'a>(cells: &Cells, row: impl Fn(usize) -> &'a [f32], file: &mut impl Write) -> std::io::Result<()> {
        for cell in 0..cells.len() {
            let centre = cells.centre(cell);
            for rows in cells.rows_of(cell).chunks(BLOCK) {
                let mut block = vec![0.0; block_len(centre.len())];
                rows.iter().enumerate().for_each(|(at, number)| set(&mut block, at, row(*number as usize), centre));
                file.write_all(bytemuck::cast_slice(&block))?;
            }
        }
        Ok(())
    }
}

impl SignQuery {
    /// A unit query.
    pub fn new(unit: &[f32]) -> Self {
        let sums: Vec<[f32; ENTRIES]> = unit.chunks(NIBBLE).map(sums_of).collect();
        let least = |sums: &[f32; ENTRIES]| sums.iter().copied().fold(f32::INFINITY, f32::min);
        let most = |sums: &[f32; ENTRIES]| sums.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let widest = sums.iter().map(|sums| most(sums) - least(sums)).fold(0.0, f32::max);
        let step = (widest / f32::from(ENTRY_MAX)).max(f32::MIN_POSITIVE);
        let mut tables = Vec::with_capacity(nibble_bytes(unit.len()));
        let mut rounded = 0.0;
        for sums in &sums {
            let least = least(sums);
            let entries = sums.map(|sum| (((sum - least) / step + 0.5) as u8).min(ENTRY_MAX));
            // Of a nibble far smaller than the widest all entries may be rounded alike, which would not average out.
            rounded += sums.iter().zip(entries).map(|(sum, entry)| sum - least - step * f32::from(entry)).sum::<f32>();
            tables.extend(entries);
        }
        tables.resize(nibble_bytes(unit.len()), 0);
        // Numbers whose sign is +1 count once in a sum and the others not at all: twice a sum, less the sum of all.
        let whole = sums.iter().map(least).sum::<f32>() + rounded / ENTRIES as f32;
        Self { tables, step: 2.0 * step, base: 2.0 * whole - unit.iter().sum::<f32>() }
    }
}

/// The nibbles of a block, and the factors of its rows.
fn parts(block: &[f32]) -> (&[u8], &[[f32; BLOCK]; FACTORS]) {
    let (nibbles, factors) = block.split_at(block.len() - FACTORS * BLOCK);
    (bytemuck::cast_slice(nibbles), factors.as_chunks().0.first_chunk().expect("a block has three factors a row"))
}

/// Sets a row of a block to the signs of a unit row about `centre`. It was all zeros.
fn set(block: &mut [f32], at: usize, unit: &[f32], centre: &[f32]) {
    let rest: Vec<f32> = unit.iter().zip(centre).map(|(x, c)| x - c).collect();
    let (nibbles, factors) = block.split_at_mut(block.len() - FACTORS * BLOCK);
    for (nibble, numbers) in
        bytemuck::cast_slice_mut::<_, u8>(nibbles).chunks_exact_mut(ENTRIES).zip(rest.chunks(NIBBLE))
    {
        let signs: u8 = numbers.iter().enumerate().map(|(bit, x)| u8::from(*x > 0.0) << bit).sum();
        nibble[at % ENTRIES] |= signs << (NIBBLE * (at / ENTRIES));
    }
    let kept = factors[at..].iter_mut().step_by(BLOCK);
    kept.zip(factors_of(&rest, centre)).for_each(|(kept, factor)| *kept = factor);
}

/// The first of a block's owners, if each is followed by the next.
fn run_of(owners: &[u32; BLOCK]) -> Option<u32> {
    let is_run = (0..).zip(owners).all(|(at, owner)| owners[0].checked_add(at) == Some(*owner));
    is_run.then_some(owners[0])
}

/// Bytes of the nibbles of a block of rows of `dim` numbers: kernels read two nibbles of all rows at once.
fn nibble_bytes(dim: usize) -> usize {
    dim.div_ceil(NIBBLE).next_multiple_of(2) * ENTRIES
}

/// How many f32 such a block is kept as.
pub(super) fn block_len(dim: usize) -> usize {
    nibble_bytes(dim) / size_of::<f32>() + FACTORS * BLOCK
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

/// What is kept of a row beside its signs: see [`Signs::blocks`].
fn factors_of(rest: &[f32], centre: &[f32]) -> [f32; FACTORS] {
    let dim = rest.len() as f64;
    let square = sum_of(rest, rest, |x, y| x * y);
    let sum = sum_of(rest, rest, |x, _| x.abs());
    let along = sum_of(rest, centre, |x, c| x * c);
    if sum == 0.0 {
        return [0.0, 0.0, along as f32];
    }
    let worth = square / sum;
    let signed = sum_of(rest, centre, |x, c| if x > 0.0 { c } else { -c });
    // Rounding may leave a row of equal magnitudes, which is estimated exactly, just below 0.
    let spread = (dim * square - sum * sum).max(0.0) / (dim - 1.0).max(1.0);
    [worth as f32, ((square * spread).sqrt() / sum) as f32, (along - worth * signed) as f32]
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

    fn about(centre: Vec<f32>, rows: &[Vec<f32>]) -> Signs {
        let mut signs = Signs::about(centre);
        for (at, row) in rows.iter().enumerate() {
            signs.push(row);
            signs.own(at..at + 1, at as u32);
        }
        signs
    }

    /// The most that each owner's row is likely to score, block by block.
    fn estimates(signs: &Signs, unit: &[f32], deviations: f32) -> Vec<(u32, f32)> {
        let query = SignQuery::new(unit);
        let mut found = Vec::new();
        for sight in signs.sights(unit) {
            for block in signs.blocks_of(&sight) {
                let mut reach = [0.0; BLOCK];
                let rows = signs.estimate((&query, &sight), deviations, block, f32::NEG_INFINITY, &mut reach);
                assert_eq!(rows, u32::MAX);
                found.extend(signs.owners(block).iter().copied().zip(reach));
            }
        }
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
            let around = |seed: u32| {
                let near: Vec<f32> = row(seed, dim).into_iter().map(|x| x + centre).collect();
                normalise(&near).unwrap()
            };
            let rows: Vec<Vec<f32>> = (0..500).map(around).collect();
            let signs = about(vec![centre; dim], &rows);
            let mut query = around(1_000);
            query[7] += spike;
            let query = normalise(&query).unwrap();
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

    /// The rows of a block that a mask holds are found in a block whose owners follow one another as in any other.
    #[test]
    fn rows_of_a_mask_are_those_of_its_owners() {
        let mask = Bits::from(&(0..200).filter(|ordinal| ordinal % 3 == 0).collect());
        let owners = (5..37).chain((40..70).rev()).chain([99, 99]).chain(100..131);
        let mut signs = Signs::about(vec![0.0; 4]);
        for (at, owner) in owners.enumerate() {
            signs.push(&[0.5; 4]);
            signs.own(at..at + 1, owner);
        }
        let see = |signs: &Signs| {
            for block in 0..signs.blocks() {
                let rows = (0..).zip(signs.owners(block)).filter(|(_, owner)| mask.contains(**owner));
                assert_eq!(signs.rows_of(block, &mask), rows.fold(0, |rows, (row, _)| rows | 1 << row));
            }
        };
        see(&signs);
        assert_eq!(signs.runs, [Some(5), None, None]);
        // Owners that change in the middle of a run leave none behind.
        signs.own(0..1, 150);
        signs.own(7..8, NOBODY);
        see(&signs);
    }

    /// A vector with one number, and one that is the centre itself, are estimated exactly.
    #[test]
    fn what_signs_carry_whole_is_exact() {
        let one = about(vec![0.0], &[vec![1.0], vec![-1.0]]);
        assert_eq!(estimates(&one, &[1.0], 3.0), [(0, 1.0), (1, -1.0)]);
        let centred = about(vec![0.6, 0.8], &[vec![0.6, 0.8]]);
        let found = estimates(&centred, &[1.0, 0.0], 3.0);
        assert!((found[0].1 - 0.6).abs() < 1e-6, "{found:?}");
    }
}
