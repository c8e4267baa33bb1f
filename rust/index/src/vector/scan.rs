//! Scans that return the exact best of what they are given.

use roaring::RoaringBitmap;

use super::best::{Best, Hit, best_of};
use super::limits::PREFETCH_ROWS;
use super::rows::Rows;
use super::unit::UnitQuery;

/// What a scan found, best first, and how many ordinals f32 scored for it.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub hits: Vec<Hit>,
    pub scored_exactly: usize,
}

/// The least and the most that a cosine can be, as far as codes tell.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    least: f32,
    most: f32,
}

impl Bounds {
    /// The bounds of the larger of two cosines.
    fn of_larger(self, other: Self) -> Self {
        Self { least: self.least.max(other.least), most: self.most.max(other.most) }
    }
}

/// Scores every ordinal by f32.
pub(super) fn exact(rows: &Rows, query: &UnitQuery, ordinals: &RoaringBitmap, k: usize) -> Found {
    let score = |ordinal| Some(Hit { score: rows.cosine(&query.exact, ordinal)?, ordinal });
    let hits: Vec<Hit> = ordinals.iter().filter_map(score).collect();
    Found { scored_exactly: hits.len(), hits: best_of(hits, k) }
}

/// Scores every ordinal by its codes, and by f32 those that can still be among the best `k`.
///
/// The result is exact. An ordinal's cosine lies within a margin of what its codes say. Once `k`
/// ordinals are known to reach some score, one that cannot reach it is out, whatever f32 would say.
/// What was `found` before, of other ordinals, competes with them.
pub(super) fn codes(
    rows: &Rows,
    query: &UnitQuery,
    ordinals: impl Iterator<Item = u32>,
    k: usize,
    found: Found,
) -> Found {
    let mut assured = Best::new(k);
    found.hits.iter().for_each(|hit| assured.offer(*hit));
    let mut hopeful: Vec<Hit> = Vec::new();
    let (mut dots, mut bounds) = (Vec::new(), Vec::new());
    rows.walk(ordinals, |block| {
        dots.resize(block.rows().len(), 0);
        rows.dot_codes(&query.codes.codes, block.rows(), &mut dots);
        bounds.clear();
        let scored = block.rows().iter().zip(&dots);
        bounds.extend(scored.map(|(&row, &dot)| bounds_of(rows, query, row, dot)));
        block.for_each_owner(&bounds, Bounds::of_larger, |ordinal, Bounds { least, most }| {
            if assured.admits(most) {
                assured.offer(Hit { score: least, ordinal });
                hopeful.push(Hit { score: most, ordinal });
            }
        });
    });
    hopeful.retain(|hit| assured.admits(hit.score));
    rescore(rows, query, hopeful, k, found)
}

fn bounds_of(rows: &Rows, query: &UnitQuery, row: u32, dot: i32) -> Bounds {
    let scale = rows.scale(row);
    let (cosine, margin) = (query.codes.cosine(dot, scale), query.codes.margin(scale));
    Bounds { least: cosine - margin, most: cosine + margin }
}

/// Scores by f32 from the most hopeful down, until none left can be better than the worst kept.
fn rescore(rows: &Rows, query: &UnitQuery, mut hopeful: Vec<Hit>, k: usize, found: Found) -> Found {
    hopeful.sort_unstable_by(|a, b| b.cmp(a));
    let mut best = Best::new(k);
    let mut scored_exactly = found.scored_exactly;
    found.hits.into_iter().for_each(|hit| best.offer(hit));
    for (at, hope) in hopeful.iter().enumerate() {
        if !best.admits(hope.score) {
            break;
        }
        if let Some(ahead) = hopeful.get(at + PREFETCH_ROWS) {
            rows.prefetch(ahead.ordinal);
        }
        if let Some(score) = rows.cosine(&query.exact, hope.ordinal) {
            best.offer(Hit { score, ordinal: hope.ordinal });
        }
        scored_exactly += 1;
    }
    Found { hits: best.into_sorted(), scored_exactly }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vector::unit::normalise;

    fn pairs(found: &Found) -> Vec<(u32, f32)> {
        found.hits.iter().map(|hit| (hit.ordinal, hit.score)).collect()
    }

    proptest! {
        /// The scan of codes returns what scoring everything returns, ties and twins included.
        #[test]
        fn codes_find_the_exact_hits(
            vectors in prop::collection::vec(prop::collection::vec(-3i8..=3, 5), 2..60),
            finer in prop::collection::vec(-1e-3f32..1e-3, 5),
            k in 1usize..20,
        ) {
            let unit = |steps: &[i8], nudge: f32| {
                let numbers = steps.iter().zip(&finer);
                let vector: Vec<f32> =
                    numbers.map(|(&step, x)| f32::from(step) + nudge * x + 1e-6).collect();
                normalise(&vector).unwrap()
            };
            let mut rows = Rows::new(5);
            for (ordinal, steps) in (0..).zip(&vectors) {
                // Every third memory has two rows; equal steps give exact ties or near ones.
                let mut owned = unit(steps, (ordinal % 2) as f32);
                if ordinal % 3 == 0 {
                    owned.extend(unit(steps, -1.0));
                }
                rows.append(ordinal, &owned);
            }
            let query = UnitQuery::new(&unit(&vectors[0], 0.5), 5).unwrap();
            let all: RoaringBitmap = (0..vectors.len() as u32).collect();
            let exactly = pairs(&exact(&rows, &query, &all, k));
            prop_assert_eq!(&pairs(&codes(&rows, &query, all.iter(), k, Found::default())), &exactly);
            // In two parts, of which the second meets what the first found.
            let half = all.len() as u32 / 2;
            let found = codes(&rows, &query, 0..half, k, Found::default());
            prop_assert_eq!(&pairs(&codes(&rows, &query, half..all.len() as u32, k, found)), &exactly);
        }
    }

    /// Of many unlike vectors only a few are scored by f32.
    #[test]
    fn codes_spare_most_exact_scores() {
        let mut rows = Rows::new(2);
        for ordinal in 0..1_000 {
            let angle = ordinal as f32 * 3e-3;
            rows.append(ordinal, &normalise(&[angle.cos(), angle.sin()]).unwrap());
        }
        let query = UnitQuery::new(&[1.0, 0.0], 2).unwrap();
        let found = codes(&rows, &query, 0..1_000, 10, Found::default());
        assert!(found.hits.iter().map(|hit| hit.ordinal).eq(0..10));
        assert!(found.scored_exactly < 100, "{} were scored", found.scored_exactly);
    }
}
