//! Rows of one width, of which the first may lie in a mapped file.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::kernels::ScoreRows;
use crate::mapped::Mapped;
use crate::numbers::Numbers;

/// A table of rows. Rows are only added; those of a snapshot stay where they are mapped, later ones follow in memory.
#[derive(Debug, Clone)]
pub(super) struct Table<T> {
    width: usize,
    base: Numbers<T>,
    tail: Vec<T>,
}

impl<T: Pod> Table<T> {
    /// A table without rows.
    pub fn new(width: usize) -> Self {
        Self { width, base: Numbers::default(), tail: Vec::new() }
    }

    /// The `rows` rows from byte `start` of `file` on; `None` when they are not all there.
    pub fn mapped(file: &Arc<Mapped>, start: usize, width: usize, rows: usize) -> Option<Self> {
        Some(Self { width, base: Numbers::mapped(file, start, width.checked_mul(rows)?)?, tail: Vec::new() })
    }

    /// The numbers of these rows, which were added together or are one alone.
    pub fn rows(&self, rows: Range<usize>) -> &[T] {
        let (start, end, base) = (rows.start * self.width, rows.end * self.width, &*self.base);
        if end <= base.len() { &base[start..end] } else { &self.tail[start - base.len()..end - base.len()] }
    }

    /// The numbers of one row.
    pub fn row(&self, row: usize) -> &[T] {
        self.rows(row..row + 1)
    }

    /// Numbers that are not mapped.
    pub fn tail_len(&self) -> usize {
        self.tail.len()
    }

    /// Where rows are added.
    pub fn tail_mut(&mut self) -> &mut Vec<T> {
        &mut self.tail
    }

    /// Scores rows by number, one into each place of `out`, with a kernel that knows but one table.
    pub fn score<Q, S>(&self, kernel: ScoreRows<Q, T, S>, query: &[Q], rows: &[u32], out: &mut [S]) {
        let base = &*self.base;
        let based = base.len().checked_div(self.width).unwrap_or_default() as u32;
        if based == 0 {
            return kernel(query, &self.tail, rows, out);
        }
        let mut done = 0;
        for run in rows.chunk_by(|one, other| (*one < based) == (*other < based)) {
            let out = &mut out[done..done + run.len()];
            done += run.len();
            if run[0] < based {
                kernel(query, base, run, out);
            } else {
                let run: Vec<u32> = run.iter().map(|row| row - based).collect();
                kernel(query, &self.tail, &run, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::sum_of;

    /// Rows are the same wherever they lie, alone and in runs.
    #[test]
    fn mapped_and_added_rows_are_one_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        std::fs::write(&path, [9_i8, 1, 2, 3, 4, 5, 6].map(|number| number as u8)).unwrap();
        let file = Arc::new(Mapped::open(&path, sum_of(&path).unwrap()).unwrap());
        assert!(Table::<i8>::mapped(&file, 1, 2, 4).is_none());
        assert!(Table::<u64>::mapped(&file, 1, 1, 1).is_none(), "numbers have their places");
        let mut mapped = Table::<i8>::mapped(&file, 1, 2, 3).unwrap();
        let mut whole = Table::<i8>::new(2);
        whole.tail_mut().extend([1, 2, 3, 4, 5, 6]);
        let sum = |query: &[i16], table: &[i8], rows: &[u32], out: &mut [i32]| {
            for (place, row) in out.iter_mut().zip(rows) {
                let row = &table[*row as usize * 2..][..2];
                *place = row.iter().map(|code| i32::from(*code) * i32::from(query[0])).sum();
            }
        };
        for table in [&mut mapped, &mut whole] {
            table.tail_mut().extend([7, 8, 9, 10]);
            assert_eq!((table.rows(1..3), table.rows(4..5)), (&[3, 4, 5, 6][..], &[9, 10][..]));
            let mut out = [0; 6];
            table.score(sum, &[2], &[0, 3, 4, 1, 2, 4], &mut out);
            assert_eq!(out, [6, 30, 38, 14, 22, 38]);
        }
    }
}
