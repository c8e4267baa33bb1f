//! The rows of all memories, side by side: three arrays by row number, and who owns which rows.

use std::ops::Range;

use super::codes::{RowScale, push_codes, push_signs, sign_words};
use super::kernels::{kernels, prefetch};
use super::limits::BLOCK_ORDINALS;

/// The rows of one ordinal, which always lie together.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    first: u32,
    count: u32,
}

/// Rows are only added. Whether an ordinal is alive is known to its owner, not here.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    dim: usize,
    signs: Vec<u64>,
    codes: Vec<i8>,
    scales: Vec<RowScale>,
    exact: Vec<f32>,
    spans: Vec<Span>,
}

impl Rows {
    pub fn new(dim: usize) -> Self {
        Self { dim, signs: Vec::new(), codes: Vec::new(), scales: Vec::new(), exact: Vec::new(), spans: Vec::new() }
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Rows held, those of removed ordinals included.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether `more` rows can still be numbered.
    pub fn has_room_for(&self, more: usize) -> bool {
        self.len().checked_add(more).is_some_and(|total| u32::try_from(total).is_ok())
    }

    /// How many rows `ordinal` owns; 0 if it never had any.
    pub fn count(&self, ordinal: u32) -> usize {
        self.span(ordinal).count as usize
    }

    /// Appends unit rows and makes `ordinal` own them instead of any before.
    ///
    /// The caller has checked that there is room.
    pub fn append(&mut self, ordinal: u32, unit_rows: &[f32]) {
        let first = self.len() as u32;
        for unit in unit_rows.chunks_exact(self.dim) {
            push_signs(unit, &mut self.signs);
            self.scales.push(push_codes(unit, &mut self.codes));
        }
        self.exact.extend_from_slice(unit_rows);
        self.own(ordinal, Span { first, count: self.len() as u32 - first });
    }

    /// Appends the rows that `ordinal` owns in `from`, codes and all.
    pub fn copy(&mut self, ordinal: u32, from: &Self) {
        let first = self.len() as u32;
        let taken = from.range(ordinal);
        let part = |width: usize| taken.start * width..taken.end * width;
        self.signs.extend_from_slice(&from.signs[part(sign_words(self.dim))]);
        self.codes.extend_from_slice(&from.codes[part(self.dim)]);
        self.scales.extend_from_slice(&from.scales[taken.clone()]);
        self.exact.extend_from_slice(&from.exact[part(self.dim)]);
        self.own(ordinal, Span { first, count: taken.len() as u32 });
    }

    /// The largest exact cosine of the ordinal's rows with a unit query; `None` if it has no rows.
    pub fn cosine(&self, query: &[f32], ordinal: u32) -> Option<f32> {
        let dot = kernels().dot_exact;
        // f32 rounding can carry a vector's product with itself just past 1, which no cosine is.
        let cosine = |row| dot(query, self.exact_row(row)).clamp(-1.0, 1.0);
        self.range(ordinal).map(cosine).max_by(f32::total_cmp)
    }

    /// Asks memory for what [`Self::cosine`] will read of an ordinal, its first row.
    pub fn prefetch(&self, ordinal: u32) {
        prefetch(self.exact_row(self.span(ordinal).first as usize));
    }

    pub fn scale(&self, row: u32) -> RowScale {
        self.scales[row as usize]
    }

    pub fn codes(&self) -> &[i8] {
        &self.codes
    }

    pub fn signs(&self) -> &[u64] {
        &self.signs
    }

    /// Walks the ordinals in the order given, some hundreds at a time, resolved to row numbers.
    pub fn walk(&self, ordinals: impl IntoIterator<Item = u32>, mut visit: impl FnMut(&Block)) {
        let mut block = Block::default();
        for ordinal in ordinals {
            let span = self.span(ordinal);
            block.rows.extend(span.first..span.first + span.count);
            block.owners.push((ordinal, block.rows.len()));
            if block.owners.len() == BLOCK_ORDINALS {
                visit(&block);
                block.clear();
            }
        }
        visit(&block);
    }

    fn own(&mut self, ordinal: u32, span: Span) {
        let at = ordinal as usize;
        if at >= self.spans.len() {
            self.spans.resize(at + 1, Span::default());
        }
        self.spans[at] = span;
    }

    fn span(&self, ordinal: u32) -> Span {
        self.spans.get(ordinal as usize).copied().unwrap_or_default()
    }

    fn range(&self, ordinal: u32) -> Range<usize> {
        let span = self.span(ordinal);
        span.first as usize..(span.first + span.count) as usize
    }

    fn exact_row(&self, row: usize) -> &[f32] {
        &self.exact[row * self.dim..][..self.dim]
    }
}

/// Some ordinals and the numbers of all their rows, in the same order.
#[derive(Debug, Default)]
pub(super) struct Block {
    rows: Vec<u32>,
    // Each ordinal with the end of its part of `rows`.
    owners: Vec<(u32, usize)>,
}

impl Block {
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Each ordinal with its part of a list as long as [`Self::rows`].
    pub fn owners(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        let mut start = 0;
        self.owners.iter().map(move |&(ordinal, end)| (ordinal, std::mem::replace(&mut start, end)..end))
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.owners.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_owners() -> Rows {
        let mut rows = Rows::new(2);
        rows.append(5, &[1.0, 0.0, 0.0, 1.0]);
        rows.append(2, &[-1.0, 0.0]);
        rows
    }

    /// An ordinal's cosine is that of its nearest row; one without rows has none.
    #[test]
    fn cosine_is_the_largest_of_the_rows() {
        let rows = two_owners();
        assert_eq!(rows.cosine(&[0.6, 0.8], 5), Some(0.8));
        assert_eq!(rows.cosine(&[0.6, 0.8], 2), Some(-0.6));
        assert_eq!(rows.cosine(&[0.6, 0.8], 3), None);
    }

    /// A walk gives each ordinal all of its rows, in the order asked for.
    #[test]
    fn walk_resolves_ordinals_to_rows() {
        let mut seen = Vec::new();
        two_owners().walk([2, 5], |block| {
            seen.extend(block.owners().map(|(ordinal, part)| (ordinal, block.rows()[part].to_vec())));
        });
        assert_eq!(seen, [(2, vec![2]), (5, vec![0, 1])]);
    }

    /// A walk longer than one block visits every ordinal once.
    #[test]
    fn walk_crosses_blocks() {
        let mut rows = Rows::new(1);
        let many = 2 * BLOCK_ORDINALS as u32 + 1;
        (0..many).for_each(|ordinal| rows.append(ordinal, &[1.0]));
        let mut seen = Vec::new();
        rows.walk(0..many, |block| {
            seen.extend(block.owners().map(|(ordinal, _)| ordinal));
        });
        assert!(seen.into_iter().eq(0..many));
    }

    /// A copied ordinal answers as the original does.
    #[test]
    fn copy_keeps_codes_and_owner() {
        let rows = two_owners();
        let mut copy = Rows::new(2);
        copy.copy(2, &rows);
        copy.copy(5, &rows);
        assert_eq!((copy.count(2), copy.count(5), copy.len()), (1, 2, 3));
        assert_eq!(copy.codes(), [-127, 0, 127, 0, 0, 127]);
        assert_eq!(copy.signs(), [0, 1, 2]);
        assert_eq!(copy.cosine(&[0.6, 0.8], 5), Some(0.8));
    }
}
