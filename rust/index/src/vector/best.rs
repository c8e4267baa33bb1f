//! The best few of many, in the one order that every hit list has.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// An ordinal and its score. The better of two is the greater: higher score, then lower ordinal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub score: f32,
    pub ordinal: u32,
}

impl Ord for Hit {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.ordinal.cmp(&self.ordinal))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Hit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Hit {}

/// Keeps the best `k` of the hits offered to it.
#[derive(Debug)]
pub(super) struct Best {
    k: usize,
    // The worst that is kept lies on top, ready to be replaced.
    kept: BinaryHeap<Reverse<Hit>>,
}

impl Best {
    pub fn new(k: usize) -> Self {
        Self { k, kept: BinaryHeap::new() }
    }

    /// Keeps `hit` if fewer than `k` better ones were offered.
    pub fn offer(&mut self, hit: Hit) {
        if self.kept.len() < self.k {
            self.kept.push(Reverse(hit));
        } else if let Some(mut worst) = self.kept.peek_mut()
            && hit > worst.0
        {
            worst.0 = hit;
        }
    }

    /// Whether a hit of this score could still be kept, whatever its ordinal.
    pub fn admits(&self, score: f32) -> bool {
        self.kept.len() < self.k || self.kept.peek().is_some_and(|worst| score >= worst.0.score)
    }

    /// The hits kept, best first.
    pub fn into_sorted(self) -> Vec<Hit> {
        // Ascending by `Reverse` is descending by `Hit`.
        self.kept.into_sorted_vec().into_iter().map(|Reverse(hit)| hit).collect()
    }
}

/// The best `k` of `hits`, best first, when all are at hand.
pub(super) fn best_of(mut hits: Vec<Hit>, k: usize) -> Vec<Hit> {
    if k < hits.len() {
        hits.select_nth_unstable_by(k, |a, b| b.cmp(a));
        hits.truncate(k);
    }
    hits.sort_unstable_by(|a, b| b.cmp(a));
    hits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ordinals(hits: &[Hit]) -> Vec<u32> {
        hits.iter().map(|hit| hit.ordinal).collect()
    }

    /// Equal scores are ordered by ordinal, lowest first, also where the list is cut.
    #[test]
    fn ties_keep_the_lower_ordinal() {
        let hits: Vec<Hit> = [3, 1, 2].map(|ordinal| Hit { score: 0.5, ordinal }).to_vec();
        let mut best = Best::new(2);
        for &hit in &hits {
            best.offer(hit);
        }
        assert_eq!(ordinals(&best.into_sorted()), [1, 2]);
        assert_eq!(ordinals(&best_of(hits, 2)), [1, 2]);
    }

    /// Nothing is kept for k = 0, and nothing is admitted.
    #[test]
    fn none_of_many_is_none() {
        let mut best = Best::new(0);
        best.offer(Hit { score: 1.0, ordinal: 0 });
        assert!(!best.admits(1.0));
        assert!(best.into_sorted().is_empty());
    }

    proptest! {
        /// Offered one by one or given at once, the best are the same, in the same order.
        #[test]
        fn both_ways_agree(scores in prop::collection::vec(0u8..20, 0..60), k in 0usize..70) {
            let hits: Vec<Hit> = scores
                .iter()
                .zip(0..)
                .map(|(&score, ordinal)| Hit { score: f32::from(score), ordinal })
                .collect();
            let mut best = Best::new(k);
            for &hit in &hits {
                best.offer(hit);
            }
            prop_assert_eq!(ordinals(&best.into_sorted()), ordinals(&best_of(hits, k)));
        }
    }
}
