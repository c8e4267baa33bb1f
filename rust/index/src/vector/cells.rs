//! Cells: rows that lie near each other, so that a search can pass over those far from its query ("inverted file": Jégou,
//! Douze and Schmid 2011, "Product Quantization for Nearest Neighbor Search", §IV).
//!
//! They are made when a snapshot is, by spherical k-means (Dhillon and Modha 2001, "Concept decompositions for large sparse
//! text data using clustering") of a sample of the rows. A row's cosine is that of its cell's centre and a rest, which for
//! most rows is small beside the length of what they differ from the centre by, `√(1 − ‖c‖²)`. How small depends on the
//! embedder, so it is measured: some rows are asked for as queries are, and the share of that length within which their
//! nearest rows lay is kept ([`Cells::reach`]). Measured: see decision 0013.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use super::codes::{RowScale, push_codes};
use super::kernels::{BLOCK, kernels};
use super::limits::{
    CELL_ROWS_MIN, CELLED_ROWS_MIN, CHECK_FILTERED_ONE_IN, CHECK_HITS, CHECK_MARGIN, CHECK_MISSES, CHECKS, ROUNDS,
    SAMPLE_PER_CELL,
};
use super::rows::Rows;
use super::unit::normalise;
use crate::mapped::Mapped;
use crate::numbers::Numbers;
use crate::top::best;

/// Rows by the cell that each lies in. Cells fill whole blocks.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    dim: usize,
    centres: Numbers<f32>,
    /// The squared length of each centre.
    squares: Vec<f32>,
    /// How far a hit's cosine may lie above that of its centre, for a unit of what rows differ from the centre by.
    share: f32,
    /// The numbers of all rows, cell by cell.
    order: Numbers<u32>,
    /// Where each cell's rows begin in the order, and where the last one's end; and the same of its blocks.
    starts: Vec<usize>,
    blocks: Vec<usize>,
}

impl Cells {
    /// No cells, and no rows.
    pub fn none(dim: usize) -> Self {
        Self::new(dim, Numbers::default(), f32::INFINITY, Numbers::default(), &[])
    }

    fn new(dim: usize, centres: Numbers<f32>, share: f32, order: Numbers<u32>, counts: &[u32]) -> Self {
        let squares = centres.chunks_exact(dim.max(1)).map(|centre| (kernels().dot_exact)(centre, centre)).collect();
        let (mut starts, mut blocks) = (vec![0], vec![0]);
        for (at, count) in counts.iter().enumerate() {
            starts.push(starts[at] + *count as usize);
            blocks.push(blocks[at] + (*count as usize).div_ceil(BLOCK));
        }
        Self { dim, centres, squares, share, order, starts, blocks }
    }

    /// The cells of some rows, which are numbered anew in the order given.
    pub fn of(rows: &Rows, numbers: &[u32]) -> Self {
        let dim = rows.dim();
        let wanted = if numbers.len() < CELLED_ROWS_MIN {
            numbers.len().min(1)
        } else {
            numbers.len().isqrt().min(numbers.len() / CELL_ROWS_MIN)
        };
        let mut means = Means::spread_over(rows, numbers, wanted);
        let sample: Vec<u32> =
            numbers.iter().copied().step_by((numbers.len() / (SAMPLE_PER_CELL * wanted.max(1))).max(1)).collect();
        for _ in 0..if wanted > 1 { ROUNDS } else { 0 } {
            means = Means::of(rows, &sample, &means.nearest(rows, &sample), &means);
        }
        let cell_of = means.nearest(rows, numbers);
        let mut counts = vec![0; wanted];
        cell_of.iter().for_each(|cell| counts[*cell as usize] += 1);
        let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
        order.sort_by_key(|row| cell_of[*row as usize]);
        let centres = means_of(rows, numbers, &cell_of, counts.len()).concat();
        let mut cells = Self::new(dim, Numbers::Owned(centres), f32::INFINITY, Numbers::Owned(order), &counts);
        if wanted > 1 {
            cells.share = cells.measured(rows, numbers, &cell_of);
        }
        cells
    }

    /// Within what share of their spread the nearest rows of some rows lie above their centres, but for a few of a thousand:
    /// of all rows, and of those that are left when a filter takes out the nearest cells.
    fn measured(&self, rows: &Rows, numbers: &[u32], cell_of: &[u32]) -> f32 {
        let mut needed = Vec::new();
        let mut dots = vec![0; numbers.len()];
        for asked in numbers.iter().step_by((numbers.len() / CHECKS).max(1)).take(CHECKS) {
            rows.dot_codes(&widened(rows, *asked), numbers, &mut dots);
            let scale = rows.scale(*asked).scale;
            let cosines = dots.iter().zip(numbers).map(|(dot, row)| *dot as f32 * scale * rows.scale(*row).scale);
            let mut found: Vec<(u32, f32)> = (0..).zip(cosines).collect();
            let exact = rows.exact.row(*asked as usize);
            let offsets: Vec<f32> =
                (0..self.len()).map(|cell| (kernels().dot_exact)(self.centre(cell), exact)).collect();
            needed.extend(self.needed(cell_of, &offsets, found.clone()));
            let far = self.far(&offsets, numbers.len() / CHECK_FILTERED_ONE_IN);
            found.retain(|(row, _)| far[cell_of[*row as usize] as usize]);
            needed.extend(self.needed(cell_of, &offsets, found));
        }
        needed.sort_unstable_by(f32::total_cmp);
        let misses = (needed.len() as f64 * CHECK_MISSES) as usize;
        needed.iter().rev().nth(misses).map_or(f32::INFINITY, |needed| needed.max(0.0) * CHECK_MARGIN)
    }

    /// What share of its cell's spread each of the nearest of some rows with their cosines would have needed.
    fn needed(&self, cell_of: &[u32], offsets: &[f32], found: Vec<(u32, f32)>) -> impl Iterator<Item = f32> {
        let nearest = best(found, CHECK_HITS);
        let least = nearest.last().map_or(0.0, |(_, least)| *least);
        nearest.into_iter().map(move |(row, _)| {
            let cell = cell_of[row as usize] as usize;
            (least - offsets[cell]) / self.spread(cell)
        })
    }

    /// Which cells are left without the nearest that hold so many rows.
    fn far(&self, offsets: &[f32], rows: usize) -> Vec<bool> {
        let mut cells: Vec<usize> = (0..self.len()).collect();
        cells.sort_unstable_by(|one, other| offsets[*other].total_cmp(&offsets[*one]));
        let (mut far, mut taken) = (vec![true; self.len()], 0);
        for cell in cells {
            if taken >= rows {
                break;
            }
            taken += self.rows_of(cell).len();
            far[cell] = false;
        }
        far
    }

    /// The cells that [`Cells::write`] left at byte `start` of `file`, of so many rows, and where they end; `None` when that
    /// is not what lies there.
    pub fn mapped(file: &Arc<Mapped>, start: usize, dim: usize, rows: usize) -> Option<(Self, usize)> {
        let at = |words: usize| start.checked_add(words.checked_mul(size_of::<u32>())?);
        let count = *file.numbers::<u32>(start, 1)?.first()? as usize;
        let share = *file.numbers::<f32>(at(1)?, 1)?.first()?;
        let counts = file.numbers::<u32>(at(2)?, count)?;
        let centres = Numbers::<f32>::mapped(file, at(2 + count)?, count.checked_mul(dim)?)?;
        let order = Numbers::<u32>::mapped(file, at(2 + count + centres.len())?, rows)?;
        let counted: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        let mut seen = vec![false; rows];
        let is_new = |row: &u32| seen.get_mut(*row as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        let is_sound = counted == rows as u64 && centres.iter().all(|x| x.is_finite()) && order.iter().all(is_new);
        let end = at(2 + count + centres.len() + rows)?;
        (is_sound && !share.is_nan()).then(|| (Self::new(dim, centres, share, order, counts), end))
    }

    /// Writes them.
    pub fn write(&self, file: &mut impl Write) -> std::io::Result<()> {
        file.write_all(&(self.len() as u32).to_ne_bytes())?;
        file.write_all(&self.share.to_ne_bytes())?;
        (0..self.len()).try_for_each(|cell| file.write_all(&(self.rows_of(cell).len() as u32).to_ne_bytes()))?;
        file.write_all(bytemuck::cast_slice(&self.centres))?;
        file.write_all(bytemuck::cast_slice(&self.order))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.squares.len()
    }

    /// How many blocks they fill.
    pub fn blocks(&self) -> usize {
        self.blocks[self.len()]
    }

    /// The blocks of a cell.
    pub fn blocks_of(&self, cell: usize) -> Range<usize> {
        self.blocks[cell]..self.blocks[cell + 1]
    }

    /// The numbers of all rows, cell by cell.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The numbers of a cell's rows.
    pub fn rows_of(&self, cell: usize) -> &[u32] {
        &self.order[self.starts[cell]..self.starts[cell + 1]]
    }

    /// Tells the place of each row among those of all blocks.
    pub fn each_slot(&self, mut each: impl FnMut(usize, usize)) {
        for cell in 0..self.len() {
            let first = self.blocks[cell] * BLOCK;
            self.rows_of(cell).iter().enumerate().for_each(|(at, row)| each(first + at, *row as usize));
        }
    }

    /// The mean of a cell's rows.
    pub fn centre(&self, cell: usize) -> &[f32] {
        &self.centres[cell * self.dim..][..self.dim]
    }

    /// The squared length of that.
    pub fn square(&self, cell: usize) -> f32 {
        self.squares[cell]
    }

    /// How far the cosine of a hit in a cell may lie above that of its centre.
    pub fn reach(&self, cell: usize) -> f32 {
        self.share * self.spread(cell)
    }

    /// By how much the rows of a cell differ from its centre: the root of the mean square, for rows of length one.
    fn spread(&self, cell: usize) -> f32 {
        (1.0 - self.squares[cell]).max(f32::EPSILON).sqrt()
    }

    /// The mean of all rows; zeros when there are none.
    pub fn mean(&self) -> Vec<f32> {
        let mut sums = vec![0.0; self.dim];
        for cell in 0..self.len() {
            let rows = self.rows_of(cell).len() as f64;
            sums.iter_mut().zip(self.centre(cell)).for_each(|(sum, x)| *sum += rows * f64::from(*x));
        }
        sums.iter().map(|sum| (sum / self.order.len().max(1) as f64) as f32).collect()
    }
}

/// Directions on their way to be the centres of cells.
struct Means {
    codes: Vec<i8>,
    scales: Vec<RowScale>,
    numbers: Vec<u32>,
}

impl Means {
    /// Those of some of the rows, evenly chosen.
    fn spread_over(rows: &Rows, numbers: &[u32], count: usize) -> Self {
        let chosen = (0..count).map(|at| numbers[at * numbers.len() / count] as usize);
        Self::coded(chosen.map(|row| rows.exact.row(row)), count)
    }

    fn coded<'a>(directions: impl Iterator<Item = &'a [f32]>, count: usize) -> Self {
        let mut codes = Vec::new();
        let scales = directions.map(|direction| push_codes(direction, &mut codes)).collect();
        Self { codes, scales, numbers: (0..count as u32).collect() }
    }

    /// Those of the rows that lie nearest to each of the `former`, which stays where nobody does.
    fn of(rows: &Rows, numbers: &[u32], cell_of: &[u32], former: &Self) -> Self {
        let means = means_of(rows, numbers, cell_of, former.numbers.len());
        let width = rows.dim();
        let directions: Vec<Vec<f32>> = means
            .iter()
            .zip(former.codes.chunks_exact(width))
            .map(|(mean, codes)| {
                let as_it_was = || codes.iter().map(|code| f32::from(*code)).collect::<Vec<f32>>();
                normalise(mean).or_else(|_| normalise(&as_it_was())).unwrap_or_else(|_| as_it_was())
            })
            .collect();
        Self::coded(directions.iter().map(Vec::as_slice), directions.len())
    }

    /// Which of them each row lies nearest to, the first of equal ones.
    fn nearest(&self, rows: &Rows, numbers: &[u32]) -> Vec<u32> {
        let mut dots = vec![0; self.numbers.len()];
        let nearest = numbers.iter().map(|row| {
            (kernels().dot_codes_rows)(&widened(rows, *row), &self.codes, &self.numbers, &mut dots);
            let cosines = dots.iter().zip(&self.scales).map(|(dot, scale)| *dot as f32 * scale.scale);
            let first = |best: (u32, f32), next: (u32, f32)| if next.1 > best.1 { next } else { best };
            (0..).zip(cosines).fold((0, f32::NEG_INFINITY), first).0
        });
        nearest.collect()
    }
}

/// The mean of the rows of each of so many cells; zeros where there are none.
fn means_of(rows: &Rows, numbers: &[u32], cell_of: &[u32], cells: usize) -> Vec<Vec<f32>> {
    let mut sums = vec![(vec![0.0; rows.dim()], 0.0); cells];
    for (row, cell) in numbers.iter().zip(cell_of) {
        let (sum, count) = &mut sums[*cell as usize];
        sum.iter_mut().zip(rows.exact.row(*row as usize)).for_each(|(sum, x)| *sum += f64::from(*x));
        *count += 1.0;
    }
    let mean = |(sum, count): &(Vec<f64>, f64)| sum.iter().map(|x| (x / count.max(1.0)) as f32).collect();
    sums.iter().map(mean).collect()
}

/// The codes of a row, as those of a query are.
fn widened(rows: &Rows, row: u32) -> Vec<i16> {
    rows.codes.row(row as usize).iter().map(|code| i16::from(*code)).collect()
}
