//! A search: plans, scans, and takes a longer way when the short one was too short.

use std::borrow::Cow;

use roaring::RoaringBitmap;

use super::kernels::kernels;
use super::limits::SURE_HITS_MIN;
use super::plan::{Plan, Tier, choose, is_too_long, shortlist_len};
use super::scan::{Found, codes, exact};
use super::shortlist::{Estimates, are_fair};
use super::unit::UnitQuery;
use super::vectors::Vectors;
use crate::bits::{Among, Bits};

/// The hits of one search, best first, and how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Ordinals with their exact cosine, highest first, equal ones by ordinal.
    pub hits: Vec<(u32, f32)>,
    /// How they were found.
    pub plan: Plan,
}

/// What a search is for.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    query: &'a UnitQuery,
    matches: &'a RoaringBitmap,
    /// The same, unless all match that live.
    mask: Option<&'a Bits>,
    k: usize,
    sure: usize,
}

impl Vectors {
    /// The best `k` ordinals by exact cosine, equal ones by ordinal, of `among` or of all. When `k` or fewer match, all of
    /// them are returned.
    ///
    /// When many match, the first `sure` are found but for a few in a thousand (see decision 0012), and what stands behind
    /// those by estimates alone.
    ///
    /// # Panics
    ///
    /// If the query was made for another dimension.
    #[must_use]
    pub fn search(&self, query: &UnitQuery, among: Option<Among<'_>>, k: usize, sure: usize) -> Search {
        self.assert_same_dim(query);
        let matches = among.map_or(Cow::Borrowed(&self.live), |among| Cow::Owned(among.matching & &self.live));
        let wanted = Wanted { query, matches: &matches, mask: among.map(|among| among.mask), k, sure };
        let (tier, found) = self.run(&wanted);
        let plan = Plan {
            tier,
            matches: matches.len(),
            live: self.live.len(),
            scored_exactly: found.scored_exactly,
            kernels: kernels().name,
        };
        Search { hits: found.hits.iter().map(|hit| (hit.ordinal, hit.score)).collect(), plan }
    }

    fn run(&self, wanted: &Wanted<'_>) -> (Tier, Found) {
        let Wanted { query, matches, k, .. } = *wanted;
        if k == 0 {
            return (Tier::Exact, Found::default());
        }
        let tier = choose(matches.len(), self.live.len(), k);
        match tier {
            Tier::Exact => (tier, exact(&self.rows, query, matches, k)),
            Tier::Signs => {
                let (tier, mut found) = self.run_signs(&Wanted { k: k.max(SURE_HITS_MIN), ..*wanted });
                found.hits.truncate(k);
                (tier, found)
            }
            Tier::Codes | Tier::SignsThenCodes => (tier, codes(&self.rows, query, matches.iter(), k, Found::default())),
        }
    }

    fn run_signs(&self, wanted: &Wanted<'_>) -> (Tier, Found) {
        let Wanted { query, matches, mask, k, sure } = *wanted;
        let mut estimates = Estimates::new(&self.rows.signs, query, mask, shortlist_len(k));
        let nearest = estimates.nearest(k);
        let found = codes(&self.rows, query, nearest.ordinals.iter().copied(), k, Found::default());
        let sure = &found.hits[..sure.clamp(SURE_HITS_MIN, k).min(found.hits.len())];
        let found_so = estimates.of_hits(&self.rows, sure);
        let least = sure.last().filter(|_| are_fair(&found_so)).map(|hit| hit.score);
        let likely = least.map(|least| estimates.likely(least, &nearest, &found_so));
        if let Some(likely) = likely.filter(|likely| !is_too_long(likely.len(), matches.len())) {
            return (Tier::Signs, codes(&self.rows, query, likely.into_iter(), k, found));
        }
        let others = matches.iter().filter(|ordinal| nearest.ordinals.binary_search(ordinal).is_err());
        (Tier::SignsThenCodes, codes(&self.rows, query, others, k, found))
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
        let found = vectors.search(&query(&[1.0, 0.0]), None, 3, 3);
        assert_eq!(ordinals(&found), [500, 0, 1]);
        assert_eq!((found.hits[0].1, found.plan.tier), (1.0, Tier::Codes));
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
        assert_eq!(forward.search(&asked, None, 20, 20), backward.search(&asked, None, 20, 20));
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
            let found = vectors.search(&query(&asked), None, 2, 2);
            assert_eq!((found.hits[0].0, found.plan.tier), (0, Tier::Codes));
            assert!((1.0 - found.hits[0].1).abs() < 1e-5, "cosine {}", found.hits[0].1);
        }
    }

    /// A query of another dimension is a mistake in the caller's code, and is told at once.
    #[test]
    #[should_panic(expected = "another dimension")]
    fn query_of_another_dimension_panics() {
        let _ = Vectors::new(2).search(&query(&[1.0]), None, 1, 1);
    }
}
