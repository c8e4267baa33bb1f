//! The index itself: what goes in, what comes out, what a search returns.

use std::borrow::Cow;

use roaring::RoaringBitmap;

use super::error::VectorError;
use super::kernels::kernels;
use super::limits::{DIMENSIONS_MAX, JUDGED_HITS_MIN, ORDINAL_MAX};
use super::plan::{Plan, Tier, choose, shortlist_len};
use super::rows::Rows;
use super::scan::{Found, codes, exact};
use super::shortlist::Shortlist;
use super::unit::{UnitQuery, normalise_row};

/// The vectors of many memories, each a dense ordinal with one row or several.
///
/// Removing clears one bit and leaves the rows where they are; [`Vectors::compacted`] leaves them
/// behind. Equal contents give equal hits, however they came about.
#[derive(Debug, Clone)]
pub struct Vectors {
    rows: Rows,
    live: RoaringBitmap,
}

/// The hits of one search, best first, and how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Ordinals with their exact cosine, highest first, equal ones by ordinal.
    pub hits: Vec<(u32, f32)>,
    /// How they were found.
    pub plan: Plan,
}

impl Vectors {
    /// An empty index of vectors of `dim` numbers.
    ///
    /// A `dim` above [`DIMENSIONS_MAX`] is told by the first [`Vectors::put`].
    #[must_use]
    pub fn new(dim: usize) -> Self {
        Self { rows: Rows::new(dim), live: RoaringBitmap::new() }
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
        self.live.remove(ordinal);
    }

    /// Whether `ordinal` has a vector.
    #[must_use]
    pub fn contains(&self, ordinal: u32) -> bool {
        self.live.contains(ordinal)
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

    /// The best `k` ordinals of `mask` by exact cosine, equal ones by ordinal; without a mask, of
    /// all. When `k` or fewer match, all of them are returned.
    ///
    /// # Panics
    ///
    /// If the query was made for another dimension.
    #[must_use]
    pub fn search(&self, query: &UnitQuery, mask: Option<&RoaringBitmap>, k: usize) -> Search {
        self.assert_same_dim(query);
        let matches = match mask {
            Some(mask) => Cow::Owned(mask & &self.live),
            None => Cow::Borrowed(&self.live),
        };
        let (tier, found) = self.run(query, &matches, k);
        let plan = Plan {
            tier,
            matches: matches.len(),
            live: self.live.len(),
            scored_exactly: found.scored_exactly,
            kernels: kernels().name,
        };
        Search { hits: found.hits.iter().map(|hit| (hit.ordinal, hit.score)).collect(), plan }
    }

    /// A copy without the rows of removed and replaced ordinals. It gives the same hits.
    #[must_use]
    pub fn compacted(&self) -> Self {
        let mut rows = Rows::new(self.dim());
        self.live.iter().for_each(|ordinal| rows.copy(ordinal, &self.rows));
        Self { rows, live: self.live.clone() }
    }

    fn run(&self, query: &UnitQuery, matches: &RoaringBitmap, k: usize) -> (Tier, Found) {
        if k == 0 {
            return (Tier::Exact, Found { hits: Vec::new(), scored_exactly: 0 });
        }
        let tier = choose(matches.len(), k as u64);
        match tier {
            Tier::Exact => (tier, exact(&self.rows, query, matches.iter(), k)),
            Tier::Signs => self.run_signs(query, matches, k),
            Tier::Codes | Tier::SignsThenCodes => (tier, codes(&self.rows, query, matches.iter(), k)),
        }
    }

    fn run_signs(&self, query: &UnitQuery, matches: &RoaringBitmap, k: usize) -> (Tier, Found) {
        let len = shortlist_len(k as u64) as usize;
        let list = Shortlist::new(&self.rows, query, matches.iter(), len);
        let judged = k.max(JUDGED_HITS_MIN);
        let mut found = codes(&self.rows, query, list.ordinals.iter().copied(), judged);
        if list.holds(&self.rows, query, &found.hits) {
            found.hits.truncate(k);
            return (Tier::Signs, found);
        }
        let spent = found.scored_exactly;
        found = codes(&self.rows, query, matches.iter(), k);
        found.scored_exactly += spent;
        (Tier::SignsThenCodes, found)
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

    fn assert_same_dim(&self, query: &UnitQuery) {
        assert_eq!(query.dim(), self.dim(), "the query was made for another dimension");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(vectors.search(&asked, None, 5).hits, [(7, 1.0), (3, 0.6)]);
        let only_three = RoaringBitmap::from([3, 99]);
        assert_eq!(ordinals(&vectors.search(&asked, Some(&only_three), 5)), [3]);
        vectors.remove(7);
        vectors.remove(1_000);
        assert_eq!(ordinals(&vectors.search(&asked, None, 5)), [3]);
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

    /// A memory of several rows is one hit, with the score of its nearest row, on every scan.
    #[test]
    fn nearest_row_speaks_for_its_ordinal() {
        let mut vectors = Vectors::new(2);
        for ordinal in 0..1_000 {
            let angle = 0.1 + ordinal as f32 * 1e-3;
            let near_and_far = [angle.cos(), angle.sin(), -1.0, 0.0];
            vectors.put(ordinal, &near_and_far[..2 + 2 * (ordinal as usize % 2)]).unwrap();
        }
        vectors.put(500, &[-1.0, 0.0, 0.0, -1.0, 1.0, 0.0]).unwrap();
        let found = vectors.search(&query(&[1.0, 0.0]), None, 3);
        assert_eq!(ordinals(&found), [500, 0, 1]);
        assert_eq!((found.hits[0].1, found.plan.tier), (1.0, Tier::Codes));
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
            assert_eq!(compacted.search(&asked, None, k), vectors.search(&asked, None, k));
        }
    }

    /// I14: the order in which memories were put, or a detour on the way, leaves hits as they are.
    #[test]
    fn history_does_not_show_in_hits() {
        let vector = |ordinal: u32| {
            let x = f64::from(ordinal % 50) as f32;
            [x.sin(), x.cos(), (x * 0.7).sin()]
        };
        let (mut forward, mut backward) = (Vectors::new(3), Vectors::new(3));
        for ordinal in 0..300 {
            forward.put(ordinal, &vector(ordinal)).unwrap();
            backward.put(299 - ordinal, &[1.0, 1.0, 1.0]).unwrap();
            backward.put(299 - ordinal, &vector(299 - ordinal)).unwrap();
        }
        let asked = query(&[0.3, 0.2, 0.9]);
        assert_eq!(forward.search(&asked, None, 20), backward.search(&asked, None, 20));
    }

    /// The narrowest and a wide vector are searched like any other.
    #[test]
    fn dimensions_1_and_4096_are_searched() {
        for dim in [1, 4_096] {
            let mut vectors = Vectors::new(dim);
            for ordinal in 0..100 {
                let mut numbers = vec![0.01; dim];
                numbers[ordinal as usize % dim] = if ordinal % 2 == 0 { 2.0 } else { -2.0 };
                vectors.put(ordinal, &numbers).unwrap();
            }
            let mut asked = vec![0.01; dim];
            asked[0] = 2.0;
            let found = vectors.search(&query(&asked), None, 2);
            assert_eq!((found.hits[0].0, found.plan.tier), (0, Tier::Codes));
            assert!((1.0 - found.hits[0].1).abs() < 1e-5, "cosine {}", found.hits[0].1);
        }
    }

    /// A query of another dimension is a mistake in the caller's code, and is told at once.
    #[test]
    #[should_panic(expected = "another dimension")]
    fn query_of_another_dimension_panics() {
        let _ = Vectors::new(2).search(&query(&[1.0]), None, 1);
    }
}
