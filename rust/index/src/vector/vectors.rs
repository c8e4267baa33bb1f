//! The index itself: what goes in, what is taken out, what is left after a rebuild.

use roaring::RoaringBitmap;

use super::error::VectorError;
use super::kept::{Kept, ToKeep};
use super::limits::{DIMENSIONS_MAX, ORDINAL_MAX};
use super::rows::Rows;
use super::unit::{UnitQuery, normalise_row};

/// The vectors of many memories, each a dense ordinal with one row or several.
///
/// Removing clears one bit and leaves the rows where they are; [`Vectors::compacted`] leaves them
/// behind. Equal contents give equal hits, however they came about, but for those that a snapshot keeps by cells.
#[derive(Debug, Clone)]
pub struct Vectors {
    pub(super) rows: Rows,
    pub(super) live: RoaringBitmap,
}

impl Vectors {
    /// An empty index of vectors of `dim` numbers.
    ///
    /// A `dim` above [`DIMENSIONS_MAX`] is told by the first [`Vectors::put`].
    #[must_use]
    pub fn new(dim: usize) -> Self {
        Self { rows: Rows::new(dim), live: RoaringBitmap::new() }
    }

    /// The vectors that a snapshot kept, of the ordinals from 0 on.
    pub(crate) fn kept(kept: Kept) -> Self {
        let owned = kept.counts.iter().zip(0..).filter(|(count, _)| **count > 0).map(|(_, ordinal)| ordinal);
        Self { live: owned.collect(), rows: Rows::kept(kept) }
    }

    /// The same with the rows that a snapshot kept, as far as they are still those of the ordinal whose number there
    /// `number_of` tells; for nothing that is mapped takes memory.
    pub(crate) fn resealed(&self, kept: Kept, mut number_of: impl FnMut(u32) -> Option<u32>) -> Self {
        let (mut rows, spans) = Rows::unowned(kept);
        for ordinal in &self.live {
            let exact = self.rows.exact(ordinal);
            let span = number_of(ordinal).and_then(|number| spans.get(number as usize));
            match span.filter(|span| rows.exact.rows(span.range()) == exact) {
                Some(span) => rows.own(ordinal, *span),
                None => rows.append(ordinal, exact),
            }
        }
        Self { rows, live: self.live.clone() }
    }

    /// A copy of what a snapshot keeps of `ordinals`, which are numbered anew from 0 on.
    pub(crate) fn to_keep(&self, ordinals: &RoaringBitmap) -> ToKeep {
        ToKeep { vectors: self.clone(), ordinals: ordinals.clone() }
    }

    /// Numbers in each vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.rows.dim()
    }

    /// Ordinals that have a vector.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len() as usize
    }

    /// Whether no ordinal has a vector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// About how many bytes of memory they take, mapped files left out.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.rows.footprint()
    }

    /// Rows of removed and replaced ordinals, which still take memory until [`Vectors::compacted`].
    #[must_use]
    pub fn dead_rows(&self) -> usize {
        let owned: usize = self.live.iter().map(|ordinal| self.rows.count(ordinal)).sum();
        self.rows.len() - owned
    }

    /// Gives `ordinal` these rows, one vector of [`Vectors::dim`] numbers after another, in place
    /// of any it had. Each is normalised here.
    ///
    /// # Errors
    ///
    /// [`VectorError`] when the rows are of the wrong length, or one of them is refused by
    /// [`normalise`](super::normalise), or no more can be numbered. Then nothing was changed.
    pub fn put(&mut self, ordinal: u32, rows: &[f32]) -> Result<(), VectorError> {
        let unit_rows = self.checked(ordinal, rows)?;
        self.rows.append(ordinal, &unit_rows);
        self.live.insert(ordinal);
        Ok(())
    }

    /// Takes `ordinal` out of every later search. Nothing happens if it has no vector.
    pub fn remove(&mut self, ordinal: u32) {
        if self.live.remove(ordinal) {
            self.rows.disown(ordinal);
        }
    }

    /// Whether `ordinal` has a vector.
    #[must_use]
    pub fn contains(&self, ordinal: u32) -> bool {
        self.live.contains(ordinal)
    }

    /// Whether these rows, once normalised, are what `ordinal` has.
    #[must_use]
    pub fn has(&self, ordinal: u32, rows: &[f32]) -> bool {
        self.rows_of(ordinal).is_some_and(|kept| {
            kept.len() == rows.len() && self.checked(ordinal, rows).is_ok_and(|unit_rows| unit_rows == kept)
        })
    }

    /// The vectors of `ordinal`, normalised, one after the other.
    #[must_use]
    pub fn rows_of(&self, ordinal: u32) -> Option<&[f32]> {
        self.contains(ordinal).then(|| self.rows.exact(ordinal))
    }

    /// The first vector of `ordinal` as a query: what is like this memory? `None` if it has no vector.
    #[must_use]
    pub fn query_of(&self, ordinal: u32) -> Option<UnitQuery> {
        let row = &self.rows_of(ordinal)?[..self.dim()];
        // What is kept was checked when it came in.
        UnitQuery::new(row, self.dim()).ok()
    }

    /// The exact cosine of `ordinal` with the query, the largest over its rows; `None` if it has no
    /// vector.
    ///
    /// # Panics
    ///
    /// If the query was made for another dimension.
    #[must_use]
    pub fn cosine(&self, query: &UnitQuery, ordinal: u32) -> Option<f32> {
        self.assert_same_dim(query);
        if !self.contains(ordinal) {
            return None;
        }
        self.rows.cosine(&query.exact, ordinal)
    }

    /// A copy without the rows of removed and replaced ordinals. It gives the same hits.
    #[must_use]
    pub fn compacted(&self) -> Self {
        let mut rows = Rows::new(self.dim());
        for ordinal in &self.live {
            rows.append(ordinal, self.rows.exact(ordinal));
        }
        Self { rows, live: self.live.clone() }
    }

    /// The rows, normalised, if all of them may enter.
    fn checked(&self, ordinal: u32, rows: &[f32]) -> Result<Vec<f32>, VectorError> {
        let dim = self.dim();
        if dim > DIMENSIONS_MAX {
            return Err(VectorError::TooManyDimensions { found: dim });
        }
        if dim == 0 || rows.is_empty() || !rows.len().is_multiple_of(dim) {
            return Err(VectorError::WrongLength { expected: dim, found: rows.len() });
        }
        if ordinal > ORDINAL_MAX {
            return Err(VectorError::OrdinalTooLarge { ordinal });
        }
        if !self.rows.has_room_for(rows.len() / dim) {
            return Err(VectorError::Full { rows: self.rows.len() });
        }
        let mut unit_rows = Vec::with_capacity(rows.len());
        for (number, row) in rows.chunks_exact(dim).enumerate() {
            unit_rows.extend(normalise_row(number, row)?);
        }
        Ok(unit_rows)
    }

    pub(super) fn assert_same_dim(&self, query: &UnitQuery) {
        assert_eq!(query.dim(), self.dim(), "the query was made for another dimension");
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Tier;
    use super::super::search::Search;
    use super::*;
    use crate::bits::{Among, Bits};

    fn query(numbers: &[f32]) -> UnitQuery {
        UnitQuery::new(numbers, numbers.len()).unwrap()
    }

    fn ordinals(search: &Search) -> Vec<u32> {
        search.hits.iter().map(|hit| hit.0).collect()
    }

    /// What is put is found with its cosine; what is removed or masked out is not.
    #[test]
    fn put_search_remove() {
        let mut vectors = Vectors::new(2);
        vectors.put(7, &[2.0, 0.0]).unwrap();
        vectors.put(3, &[0.6, 0.8]).unwrap();
        let asked = query(&[1.0, 0.0]);
        assert_eq!(vectors.search(&asked, None, 5, 5).hits, [(7, 1.0), (3, 0.6)]);
        let only_three = RoaringBitmap::from([3, 99]);
        let among = Among { matching: &only_three, mask: &Bits::from(&only_three) };
        assert_eq!(ordinals(&vectors.search(&asked, Some(among), 5, 5)), [3]);
        vectors.remove(7);
        vectors.remove(1_000);
        assert_eq!(ordinals(&vectors.search(&asked, None, 5, 5)), [3]);
        assert_eq!((vectors.len(), vectors.contains(7)), (1, false));
        assert_eq!((vectors.cosine(&asked, 7), vectors.cosine(&asked, 3)), (None, Some(0.6)));
    }

    /// One bad row among good ones keeps all of them out, and leaves what was there.
    #[test]
    fn put_is_all_or_nothing() {
        let mut vectors = Vectors::new(2);
        vectors.put(0, &[1.0, 0.0]).unwrap();
        let bad_row = vectors.put(0, &[0.0, 1.0, 0.0, 0.0]);
        assert_eq!(bad_row, Err(VectorError::Zero { row: 1 }));
        for length in [0, 3] {
            let wrong = VectorError::WrongLength { expected: 2, found: length };
            assert_eq!(vectors.put(0, &vec![1.0; length]), Err(wrong));
        }
        let far = ORDINAL_MAX + 1;
        let too_large = VectorError::OrdinalTooLarge { ordinal: far };
        assert_eq!(vectors.put(far, &[1.0, 0.0]), Err(too_large));
        assert_eq!((vectors.len(), vectors.dead_rows()), (1, 0));
        assert_eq!(vectors.cosine(&query(&[1.0, 0.0]), 0), Some(1.0));
    }

    /// A dimension that no index can hold is refused at the first vector, and so is none at all.
    #[test]
    fn impossible_dimensions_are_refused() {
        let wide = DIMENSIONS_MAX + 1;
        let refused = Vectors::new(wide).put(0, &vec![1.0; wide]);
        assert_eq!(refused, Err(VectorError::TooManyDimensions { found: wide }));
        let empty = VectorError::WrongLength { expected: 0, found: 0 };
        assert_eq!(Vectors::new(0).put(0, &[]), Err(empty));
    }

    /// A rebuild drops dead rows and changes no hit; a removed ordinal may come back.
    #[test]
    fn compacting_changes_no_hit() {
        let mut vectors = Vectors::new(3);
        for ordinal in 0..200_u16 {
            let x = f32::from(ordinal);
            vectors.put(ordinal.into(), &[x.sin(), x.cos(), 0.5]).unwrap();
        }
        (0..200).step_by(3).for_each(|ordinal| vectors.remove(ordinal));
        vectors.put(1, &[0.1, 0.2, 0.3, 0.3, 0.2, 0.1]).unwrap();
        vectors.put(0, &[0.3, 0.1, 0.2]).unwrap();
        let compacted = vectors.compacted();
        // 67 removed, of which one came back with a new row, and one that was replaced.
        assert_eq!((vectors.dead_rows(), compacted.dead_rows()), (68, 0));
        for k in [1, 10, 200] {
            let asked = query(&[0.2, 0.4, 0.1]);
            assert_eq!(compacted.search(&asked, None, k, k), vectors.search(&asked, None, k, k));
        }
    }

    /// I3: where estimates choose, an index that grew, with memories that were removed, replaced and put back, finds what one
    /// does that was made at once; and the sure ones of many hits are those of scoring everything.
    #[test]
    fn estimates_forget_how_an_index_came_about() {
        let vector = |seed: u32| -> Vec<f32> {
            (0..24).map(|at| ((seed * 24 + at) as f32 * 1.618).sin() + ((seed % 40 * 24 + at) as f32).cos()).collect()
        };
        let mut grown = Vectors::new(24);
        (0..14_000).for_each(|ordinal| grown.put(ordinal, &vector(ordinal + 19_999)).unwrap());
        (0..14_000).step_by(5).for_each(|ordinal| grown.remove(ordinal));
        for ordinal in 0..13_700 {
            let rows = if ordinal % 3 == 0 { [vector(ordinal), vector(ordinal + 7)].concat() } else { vector(ordinal) };
            grown.put(ordinal, &rows).unwrap();
        }
        (13_700..14_000).for_each(|ordinal| grown.remove(ordinal));
        let rebuilt = grown.compacted();
        let asked = query(&vector(40_000));
        for (k, sure) in [(10, 10), (100, 32)] {
            let found = grown.search(&asked, None, k, sure);
            assert_eq!(found, rebuilt.search(&asked, None, k, sure));
            assert_eq!((found.hits.len(), found.plan.tier), (k, Tier::Signs));
            let everything = grown.search(&asked, None, 13_700, 13_700);
            assert_eq!((&found.hits[..sure], everything.plan.tier), (&everything.hits[..sure], Tier::Exact));
        }
    }

    /// Vectors of which nearly all numbers are zero are estimated worse than is said; that is found out.
    #[test]
    fn sparse_vectors_are_not_left_to_estimates() {
        // Counts of hashed words, of which few are frequent and most are rare.
        let vector = |seed: u32| -> Vec<f32> {
            let mut state = u64::from(seed) * 2_654_435_761 + 1;
            let mut vector = vec![0.0; 384];
            for _ in 0..20 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let word = 3_000_f64.powf((state >> 11) as f64 / (1_u64 << 53) as f64) as u64;
                vector[(word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % 384] += 1.0;
            }
            vector
        };
        let mut vectors = Vectors::new(384);
        (0..12_000).for_each(|ordinal| vectors.put(ordinal, &vector(ordinal)).unwrap());
        let exact = |asked: &UnitQuery| vectors.search(asked, None, 4_000, 4_000).hits[..10].to_vec();
        let found = (0..40).map(|seed| {
            let asked = query(&vector(seed * 101 + 15_000));
            let hits = vectors.search(&asked, None, 10, 10).hits;
            exact(&asked).iter().filter(|hit| hits.contains(hit)).count()
        });
        assert!(found.sum::<usize>() >= 398);
    }
}
