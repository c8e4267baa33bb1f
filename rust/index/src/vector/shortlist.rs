//! Who is likely enough to be a hit, as estimates from signs tell.
//!
//! How well signs rank depends on the embedder and on the query, so no fixed length of a shortlist suits all. A first one is
//! taken by estimates alone. What its hits score, exactly, then says how far everybody else must be estimated to reach:
//! rows within [`DEVIATIONS`] standard errors of that are read too. Where the estimates of those hits prove to err by more
//! than is said, they are of no use for this embedder.
//!
//! This uses nothing but the query and the vectors. Anything remembered between searches would depend on when it was
//! learnt, and two processes could answer differently (I3, I14).

use super::best::Hit;
use super::kernels::BLOCK;
use super::limits::DEVIATIONS;
use super::rows::Rows;
use super::signs::{NOBODY, SignQuery, Signs};
use super::unit::UnitQuery;
use crate::bits::Bits;
use crate::top::{Top, any_reaches};

/// The most that each row's cosine is likely to be.
#[derive(Debug)]
pub(super) struct Estimates<'a> {
    query: SignQuery,
    owners: &'a [u32],
    mask: Option<&'a Bits>,
    reach: Vec<f32>,
    top: Top,
}

/// Those that are likely to be nearest.
#[derive(Debug, PartialEq)]
pub(super) struct Nearest {
    /// In their order.
    pub ordinals: Vec<u32>,
    /// All rows estimated to reach this are theirs.
    floor: f32,
}

impl<'a> Estimates<'a> {
    /// Estimates the rows of ordinals in the mask, or all, and finds the `rows` that reach furthest.
    pub fn new(signs: &'a Signs, query: &UnitQuery, mask: Option<&'a Bits>, rows: usize) -> Self {
        let owners = signs.owners();
        let (mut top, mut reach) = (Top::new(rows, f32::NEG_INFINITY), Vec::with_capacity(owners.len()));
        let wanted = |block: usize| mask.map_or(u32::MAX, |mask| signs.rows_of(block, mask));
        let query = SignQuery::new(&query.exact, signs.centre());
        signs.for_each_block(&query, DEVIATIONS, wanted, |block, mut reaching, most| {
            reach.resize(block * BLOCK, f32::NEG_INFINITY);
            reach.extend_from_slice(most);
            while reaching != 0 {
                let row = reaching.trailing_zeros() as usize;
                reaching &= reaching - 1;
                let owner = owners[block * BLOCK + row];
                if owner != NOBODY {
                    top.push(owner, most[row]);
                }
            }
            top.floor
        });
        Self { query, owners, mask, reach, top }
    }

    /// The owners of the rows that reach furthest, and of all that reach as far as the last of them: a tie broken by ordinal
    /// would let the numbering of memories decide which are found. Of more rows than were asked for, when those belong to
    /// fewer than `ordinals_min`.
    pub fn nearest(&mut self, ordinals_min: usize) -> Nearest {
        loop {
            self.top.settle();
            let ordinals = in_order(self.top.kept.iter().map(|(ordinal, _)| *ordinal).collect());
            let rows = self.top.depth();
            if ordinals.len() >= ordinals_min || self.top.kept.len() < rows {
                // With fewer rows than were asked for, nobody is left.
                let floor = if self.top.kept.len() < rows { f32::NEG_INFINITY } else { self.top.floor };
                return Nearest { ordinals, floor };
            }
            self.top = self.furthest(rows.saturating_mul(2));
        }
    }

    fn furthest(&self, rows: usize) -> Top {
        let mut top = Top::new(rows, f32::NEG_INFINITY);
        self.reaching(f32::NEG_INFINITY).for_each(|(owner, reach)| top.push(owner, reach));
        top
    }

    /// Whether the estimates of these hits were as good as is said: on average they lie no more than one standard error low.
    /// Where they do, so may those of others that were never looked at.
    pub fn are_fair(&self, rows: &Rows, hits: &[Hit]) -> bool {
        let deviations = hits.iter().filter_map(|hit| {
            let errors = rows.range(hit.ordinal).map(|row| rows.signs.error(&self.query, row));
            let most = errors.map(|(slot, error)| (self.reach[slot], error));
            let (most, error) =
                most.max_by(|one, other| one.0.total_cmp(&other.0)).filter(|(_, error)| *error > 0.0)?;
            Some((hit.score - most) / error + DEVIATIONS)
        });
        let (sum, count) = deviations.fold((0.0, 0.0), |(sum, count), deviation| (sum + deviation, count + 1.0));
        sum <= count
    }

    /// The others that are likely to reach `least`.
    pub fn likely(&self, least: f32, nearest: &Nearest) -> Vec<u32> {
        if least >= nearest.floor {
            return Vec::new();
        }
        let rows = self.reaching(least).filter(|(_, reach)| *reach < nearest.floor);
        let mut found = in_order(rows.map(|(owner, _)| owner).collect());
        found.retain(|ordinal| nearest.ordinals.binary_search(ordinal).is_err());
        found
    }

    /// The rows of matches that are likely to reach `least`.
    fn reaching(&self, least: f32) -> impl Iterator<Item = (u32, f32)> {
        let is_match = |owner: u32| owner != NOBODY && self.mask.is_none_or(|mask| mask.contains(owner));
        let blocks = self.owners.as_chunks::<BLOCK>().0.iter().zip(self.reach.as_chunks::<BLOCK>().0);
        let rows = blocks
            .filter(move |(_, reach)| any_reaches(reach, least))
            .flat_map(|(owners, reach)| owners.iter().copied().zip(reach.iter().copied()));
        rows.filter(move |(owner, reach)| *reach >= least && is_match(*owner))
    }
}

fn in_order(mut ordinals: Vec<u32>) -> Vec<u32> {
    ordinals.sort_unstable();
    ordinals.dedup();
    ordinals
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNERS: [u32; BLOCK] = {
        let mut owners = [NOBODY; BLOCK];
        (owners[0], owners[1], owners[2], owners[3], owners[4]) = (7, 3, 3, 5, 9);
        owners
    };

    fn estimates(reach: [f32; 6], mask: Option<&Bits>, rows: usize) -> Estimates<'_> {
        let query = SignQuery::new(&[1.0], &[0.0]);
        let mut estimates = Estimates { query, owners: &OWNERS, reach: reach.to_vec(), mask, top: Top::new(1, 0.0) };
        estimates.reach.resize(BLOCK, f32::NEG_INFINITY);
        estimates.top = estimates.furthest(rows);
        estimates
    }

    /// The nearest come in the order of ordinals, one for all of an owner's rows, and a tie at the end is taken whole.
    #[test]
    fn ties_at_the_end_are_all_taken() {
        let mut estimates = estimates([0.5, 0.9, 0.1, 0.5, 0.2, 1.0], None, 2);
        assert_eq!(estimates.nearest(1), Nearest { ordinals: vec![3, 5, 7], floor: 0.5 });
    }

    /// Rows of the same owner do not crowd out the others: as many owners come as are asked for, if there are so many.
    #[test]
    fn rows_of_one_owner_do_not_crowd_out_others() {
        let mut estimates = estimates([0.2, 0.9, 0.8, 0.3, 0.1, 1.0], None, 2);
        assert_eq!(estimates.nearest(2).ordinals, [3, 5, 7]);
        assert_eq!(estimates.nearest(99).ordinals, [3, 5, 7, 9]);
    }

    /// Those likely to reach a score are told, without those that were near before, and nobody outside the mask.
    #[test]
    fn likely_ones_beyond_the_nearest_are_told() {
        let mask = Bits::from(&[3, 5, 7].into());
        let mut estimates = estimates([0.4, 0.9, 0.5, 0.3, 0.6, 1.0], Some(&mask), 1);
        let nearest = estimates.nearest(1);
        assert_eq!(nearest.ordinals, [3]);
        assert_eq!(estimates.likely(0.35, &nearest), [7]);
        assert_eq!(estimates.likely(0.3, &nearest), [5, 7]);
        assert_eq!(estimates.likely(0.9, &nearest), [] as [u32; 0]);
    }

    proptest! {
        /// Blocks that are passed over, a floor that rises on the way, dead rows and a mask change nothing: the nearest and
        /// the likely ones are those of sorting all.
        #[test]
        fn all_are_as_sorted_plainly(
            seed in any::<u32>(),
            owners in prop::collection::vec(0u32..120, 1..200),
            masked in prop::option::of(prop::collection::vec(0u32..120, 0..80)),
            (rows, ordinals_min) in (1usize..60, 1usize..60),
            drop in 0f32..0.5,
        ) {
            let vector = |at: usize| -> Vec<f32> {
                (0..12).map(|place| ((seed as usize % 9_973 + at * 12 + place) as f32 * 1.3).sin()).collect()
            };
            let mut signs = Signs::about(vec![0.0; 12]);
            owners.iter().enumerate().for_each(|(at, owner)| signs.push(*owner, &vector(at)));
            signs.disown(owners.len() / 3..owners.len() / 2);
            let mask = masked.map(|masked| Bits::from(&masked.into_iter().collect()));
            let query = UnitQuery::new(&vector(owners.len()), 12).unwrap();
            let mut all = Vec::new();
            signs.for_each_block(&SignQuery::new(&query.exact, signs.centre()), DEVIATIONS, |_| u32::MAX, |block, _, most| {
                all.extend(signs.owners()[block * BLOCK..].iter().copied().zip(most.iter().copied()));
                f32::NEG_INFINITY
            });
            all.retain(|(owner, _)| *owner != NOBODY && mask.as_ref().is_none_or(|mask| mask.contains(*owner)));
            all.sort_by(|one, other| other.1.total_cmp(&one.1));

            let mut estimates = Estimates::new(&signs, &query, mask.as_ref(), rows);
            let nearest = estimates.nearest(ordinals_min);
            let within = |least: f32| in_order(all.iter().filter(|row| row.1 >= least).map(|row| row.0).collect());
            prop_assert_eq!(&nearest.ordinals, &within(nearest.floor));
            let everybody = within(f32::NEG_INFINITY);
            prop_assert!(nearest.ordinals.len() >= ordinals_min.min(everybody.len()));
            let least = all.get(rows - 1).map_or(f32::NEG_INFINITY, |row| row.1);
            prop_assert!(nearest.floor <= least);
            let likely = estimates.likely(nearest.floor - drop, &nearest);
            let further = within(nearest.floor - drop);
            let others = further.into_iter().filter(|ordinal| !nearest.ordinals.contains(ordinal));
            prop_assert_eq!(likely, others.collect::<Vec<u32>>());
        }
    }
}
