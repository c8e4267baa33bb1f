//! Scans that return the exact best of what they are given.

use super::best::{Best, Hit, best_of};
use super::kernels::kernels;
use super::limits::PREFETCH_ROWS;
use super::rows::Rows;
use super::unit::UnitQuery;

/// What a scan found, best first, and how many ordinals f32 scored for it.
#[derive(Debug)]
pub(super) struct Found {
    pub hits: Vec<Hit>,
    pub scored_exactly: usize,
}

/// Scores every ordinal by f32.
pub(super) fn exact(rows: &Rows, query: &UnitQuery, ordinals: impl Iterator<Item = u32>, k: usize) -> Found {
    let hits: Vec<Hit> =
        ordinals.filter_map(|ordinal| rows.cosine(&query.exact, ordinal).map(|score| Hit { score, ordinal })).collect();
    Found { scored_exactly: hits.len(), hits: best_of(hits, k) }
}

/// Scores every ordinal by its codes, and by f32 those that can still be among the best `k`.
///
/// The result is exact. An ordinal's cosine lies within a margin of what its codes say. Once `k`
/// ordinals are known to reach some score, one that cannot reach it is out, whatever f32 would say.
pub(super) fn codes(rows: &Rows, query: &UnitQuery, ordinals: impl Iterator<Item = u32>, k: usize) -> Found {
    let mut assured = Best::new(k);
    let mut hopeful: Vec<Hit> = Vec::new();
    let mut dots = Vec::new();
    rows.walk(ordinals, |block| {
        dots.resize(block.rows().len(), 0);
        (kernels().dot_codes_rows)(&query.codes.codes, rows.codes(), block.rows(), &mut dots);
        for (ordinal, part) in block.owners() {
            let (least, most) = bounds(rows, query, &block.rows()[part.clone()], &dots[part]);
            if assured.admits(most) {
                assured.offer(Hit { score: least, ordinal });
                hopeful.push(Hit { score: most, ordinal });
            }
        }
    });
    hopeful.retain(|hit| assured.admits(hit.score));
    rescore(rows, query, hopeful, k)
}

/// The least and the most that the cosine of an ordinal with these rows can be.
fn bounds(rows: &Rows, query: &UnitQuery, owned: &[u32], dots: &[i32]) -> (f32, f32) {
    let mut reached = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for (&row, &dot) in owned.iter().zip(dots) {
        let scale = rows.scale(row);
        let (cosine, margin) = (query.codes.cosine(dot, scale), query.codes.margin(scale));
        reached = (reached.0.max(cosine - margin), reached.1.max(cosine + margin));
    }
    reached
}

/// Scores by f32 from the most hopeful down, until none left can be better than the worst kept.
fn rescore(rows: &Rows, query: &UnitQuery, mut hopeful: Vec<Hit>, k: usize) -> Found {
    hopeful.sort_unstable_by(|a, b| b.cmp(a));
    let mut best = Best::new(k);
    let mut scored_exactly = 0;
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
            let all = 0..vectors.len() as u32;
            prop_assert_eq!(
                pairs(&codes(&rows, &query, all.clone(), k)),
                pairs(&exact(&rows, &query, all, k))
            );
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
        let found = codes(&rows, &query, 0..1_000, 10);
        assert!(found.hits.iter().map(|hit| hit.ordinal).eq(0..10));
        assert!(found.scored_exactly < 100, "{} were scored", found.scored_exactly);
    }
}
