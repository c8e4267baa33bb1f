//! The rows of all memories, side by side: arrays by row number, and who owns which rows.

use std::ops::Range;

use super::codes::{RowScale, push_codes};
use super::kept::Kept;
use super::kernels::{kernels, prefetch};
use super::limits::DIMENSIONS_MAX;
use super::signs::{NOBODY, Signs};
use super::table::Table;
use super::walk::{Block, Span, walk};

/// Rows are only added. Whether an ordinal is alive is known to its owner, not here.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    dim: usize,
    pub(super) signs: Signs,
    pub(super) codes: Table<i8>,
    scales: Vec<RowScale>,
    pub(super) exact: Table<f32>,
    spans: Vec<Span>,
}

impl Rows {
    pub fn new(dim: usize) -> Self {
        Self {
            dim,
            // No row of an impossible length ever enters, so none needs a centre either.
            signs: Signs::about(vec![0.0; dim.min(DIMENSIONS_MAX)]),
            codes: Table::new(dim),
            scales: Vec::new(),
            exact: Table::new(dim),
            spans: Vec::new(),
        }
    }

    /// The rows that a snapshot kept, each ordinal's after those of the ordinals before it.
    pub fn kept(kept: Kept) -> Self {
        let (mut rows, spans) = Self::unowned(kept);
        (0..).zip(spans).for_each(|(ordinal, span)| rows.own(ordinal, span));
        rows
    }

    /// The same, as nobody's, and which rows each ordinal had.
    pub fn unowned(kept: Kept) -> (Self, Vec<Span>) {
        let Kept { dim, signs, codes, scales, exact, counts } = kept;
        let mut first = 0;
        let spans = counts.into_iter().map(|count| {
            let span = Span { first, count };
            first += count;
            span
        });
        let spans = spans.collect();
        (Self { dim, spans: Vec::new(), signs, codes, scales, exact }, spans)
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    /// About how many bytes of memory they take, mapped files left out.
    pub fn footprint(&self) -> usize {
        let tables = self.signs.footprint() + self.codes.tail_len() + 4 * self.exact.tail_len();
        tables + self.scales.len() * size_of::<RowScale>() + self.spans.len() * size_of::<Span>()
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
        self.disown(ordinal);
        let first = self.len() as u32;
        for unit in unit_rows.chunks_exact(self.dim) {
            self.signs.push(unit);
            self.scales.push(push_codes(unit, self.codes.tail_mut()));
        }
        self.exact.tail_mut().extend_from_slice(unit_rows);
        self.own(ordinal, Span { first, count: self.len() as u32 - first });
    }

    /// The f32 rows of `ordinal`, one after another.
    pub fn exact(&self, ordinal: u32) -> &[f32] {
        self.exact.rows(self.range(ordinal))
    }

    /// The largest exact cosine of the ordinal's rows with a unit query; `None` if it has no rows.
    pub fn cosine(&self, query: &[f32], ordinal: u32) -> Option<f32> {
        let dot = kernels().dot_exact;
        let rows = self.exact(ordinal).chunks_exact(self.dim);
        // f32 rounding can carry a vector's product with itself just past 1, which no cosine is.
        rows.map(|row| dot(query, row).clamp(-1.0, 1.0)).max_by(f32::total_cmp)
    }

    /// Asks memory for the first row that [`Self::cosine`] will read.
    pub fn prefetch(&self, ordinal: u32) {
        prefetch(&self.exact(ordinal)[..self.dim]);
    }

    pub fn scale(&self, row: u32) -> RowScale {
        self.scales[row as usize]
    }

    /// Dot products of the query's codes with those of `rows`.
    pub fn dot_codes(&self, query: &[i16], rows: &[u32], dots: &mut [i32]) {
        self.codes.score(kernels().dot_codes_rows, query, rows, dots);
    }

    /// Takes an ordinal's rows away from it. They stay where they are, and are nobody's.
    pub fn disown(&mut self, ordinal: u32) {
        self.signs.own(self.range(ordinal), NOBODY);
        if let Some(span) = self.spans.get_mut(ordinal as usize) {
            *span = Span::default();
        }
    }

    /// Walks ordinals in the order given, resolved to row numbers.
    pub fn walk(&self, ordinals: impl Iterator<Item = u32>, visit: impl FnMut(&Block)) {
        walk(&self.spans, ordinals, visit);
    }

    /// Makes an ordinal that owns none the owner of these rows.
    pub fn own(&mut self, ordinal: u32, span: Span) {
        let at = ordinal as usize;
        if at >= self.spans.len() {
            self.spans.resize(at + 1, Span::default());
        }
        self.spans[at] = span;
        self.signs.own(self.range(ordinal), ordinal);
    }

    fn span(&self, ordinal: u32) -> Span {
        self.spans.get(ordinal as usize).copied().unwrap_or_default()
    }

    /// The rows of an ordinal.
    pub fn range(&self, ordinal: u32) -> Range<usize> {
        self.span(ordinal).range()
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

    /// Each row has its codes, in the order of appending.
    #[test]
    fn rows_are_coded_as_they_are_appended() {
        let rows = two_owners();
        assert_eq!(rows.codes.rows(0..3), [127, 0, 0, 127, -127, 0]);
        assert_eq!((rows.count(5), rows.count(2), rows.count(9), rows.len()), (2, 1, 0, 3));
    }

    /// Appending again replaces what an ordinal owns and leaves the old rows behind.
    #[test]
    fn appending_again_replaces() {
        let mut rows = two_owners();
        rows.append(5, &[0.0, -1.0]);
        assert_eq!((rows.exact(5), rows.count(5), rows.len()), (&[0.0, -1.0][..], 1, 4));
    }
}
