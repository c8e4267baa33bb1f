//! Who is likely enough to be a hit, as estimates from signs tell.
//!
//! How well signs rank depends on the embedder and on the query, so no fixed length of a shortlist suits all. A first one is
//! taken by estimates alone. What its hits score, exactly, then says how far everybody else must be estimated to reach:
//! rows within [`DEVIATIONS`] standard errors of that are read too. Where the estimates of those hits prove to err by more
//! than is said, they are of no use for this embedder.
//!
//! This uses nothing but the query, the vectors and their cells. Anything remembered between searches would depend on
//! when it was learnt, and two processes could answer differently (I3, I14).

use super::best::Hit;
use super::kernels::BLOCK;
use super::limits::{DEVIATIONS, STRAINED_ONE_IN, STRAINED_SHARE};
use super::rows::Rows;
use super::signs::{NOBODY, Sight, SignQuery, Signs};
use super::unit::UnitQuery;
use crate::bits::Bits;
use crate::top::{Top, any_reaches};

/// The most that the cosines of rows are likely to be, of those in cells that are likely to hold hits.
#[derive(Debug)]
pub(super) struct Estimates<'a> {
    signs: &'a Signs,
    query: SignQuery,
    mask: Option<&'a Bits>,
    /// The cells that were not looked at, the most likely last.
    ahead: Vec<Sight>,
    seen: Vec<Seen>,
    top: Top,
}

/// A block that was looked at.
#[derive(Debug)]
struct Seen {
    block: usize,
    sight: Sight,
    /// Rows outside the mask are in it too.
    reach: [f32; BLOCK],
}

/// What was estimated of a hit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimated {
    hit: Hit,
    sight: Sight,
    reach: f32,
    error: f32,
}

/// Those that are likely to be nearest.
#[derive(Debug, PartialEq)]
pub(super) struct Nearest {
    /// In their order.
    pub ordinals: Vec<u32>,
    /// All rows that are estimated to reach this are theirs, but for those in cells that are unlikely to hold any.
    floor: f32,
}

impl<'a> Estimates<'a> {
    /// Prepares to find the `rows` that reach furthest, of ordinals in the mask or of all.
    pub fn new(signs: &'a Signs, query: &UnitQuery, mask: Option<&'a Bits>, rows: usize) -> Self {
        let mut ahead = signs.sights(&query.exact);
        ahead.sort_by(|one, other| one.most.total_cmp(&other.most));
        let top = Top::new(rows, f32::NEG_INFINITY);
        Self { signs, query: SignQuery::new(&query.exact), mask, ahead, seen: Vec::new(), top }
    }

    /// The owners of the rows that reach furthest, and of all that reach as far as the last of them: a tie broken by ordinal
    /// would let the numbering of memories decide which are found. Of more rows than were asked for, when those belong to
    /// fewer than `ordinals_min`.
    pub fn nearest(&mut self, ordinals_min: usize) -> Nearest {
        loop {
            while let Some(sight) = self.ahead.pop_if(|sight| sight.most >= self.top.floor) {
                self.look_at(&sight);
                // From then on it settles by itself, whenever it has grown: to do so at each cell takes longer than the cell.
                if self.top.floor == f32::NEG_INFINITY {
                    self.top.settle();
                }
            }
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

    /// Estimates the rows of a cell.
    fn look_at(&mut self, sight: &Sight) {
        for block in self.signs.blocks_of(sight) {
            let mut wanted = self.mask.map_or(u32::MAX, |mask| self.signs.rows_of(block, mask));
            if wanted == 0 {
                continue;
            }
            self.seen.push(Seen { block, sight: *sight, reach: [0.0; BLOCK] });
            let Some(Seen { reach, .. }) = self.seen.last_mut() else { continue };
            wanted &= self.signs.estimate((&self.query, sight), DEVIATIONS, block, self.top.floor, reach);
            let owners = self.signs.owners(block);
            while wanted != 0 {
                let row = wanted.trailing_zeros() as usize;
                wanted &= wanted - 1;
                if owners[row] != NOBODY {
                    self.top.push(owners[row], reach[row]);
                }
            }
        }
    }

    /// What was estimated of each of these hits, of its row that reaches furthest.
    pub fn of_hits(&self, rows: &Rows, hits: &[Hit]) -> Vec<Estimated> {
        let places = hits.iter().flat_map(|hit| rows.range(hit.ordinal).map(|row| (self.signs.place(row), *hit)));
        let mut places: Vec<_> = places.collect();
        places.sort_unstable_by_key(|((block, _), _)| *block);
        let mut found: Vec<Estimated> = Vec::new();
        for Seen { block, sight, reach } in &self.seen {
            let first = places.partition_point(|((before, _), _)| before < block);
            let here = places[first..].iter().take_while(|((there, _), _)| there == block);
            found.extend(here.map(|(place, hit)| {
                let error = self.signs.error(sight, *place);
                Estimated { hit: *hit, sight: *sight, reach: reach[place.1], error }
            }));
        }
        found.sort_unstable_by(|one, other| other.hit.cmp(&one.hit).then(other.reach.total_cmp(&one.reach)));
        found.dedup_by_key(|estimated| estimated.hit.ordinal);
        found
    }

    /// The others that are likely to reach `least`, in cells that are likely to hold such: in any, when the cells of the sure
    /// hits were hardly likely to.
    pub fn likely(&mut self, least: f32, nearest: &Nearest, sure: &[Estimated]) -> Vec<u32> {
        let strained = sure.iter().filter(|estimated| estimated.sight.is_strained(least, STRAINED_SHARE)).count();
        let is_unlike = strained.saturating_mul(STRAINED_ONE_IN) > sure.len();
        while let Some(sight) = self.ahead.pop_if(|sight| is_unlike || sight.most >= least) {
            self.look_at(&sight);
        }
        let mut found = in_order(self.reaching(least).map(|(owner, _)| owner).collect());
        found.retain(|ordinal| nearest.ordinals.binary_search(ordinal).is_err());
        found
    }

    /// The rows of matches that are likely to reach `least`, as far as they were looked at.
    fn reaching(&self, least: f32) -> impl Iterator<Item = (u32, f32)> {
        let is_match = |owner: u32| owner != NOBODY && self.mask.is_none_or(|mask| mask.contains(owner));
        let rows = self.seen.iter().filter(move |seen| any_reaches(&seen.reach, least));
        let rows = rows.flat_map(|seen| self.signs.owners(seen.block).iter().copied().zip(seen.reach));
        rows.filter(move |(owner, reach)| *reach >= least && is_match(*owner))
    }
}

/// Whether the estimates of hits were as good as is said: on average they lie no more than one standard error low. Where they
/// do, so may those of others that were never looked at.
pub(super) fn are_fair(hits: &[Estimated]) -> bool {
    let deviations = hits.iter().filter(|estimated| estimated.error > 0.0);
    let deviations = deviations.map(|Estimated { hit, reach, error, .. }| (hit.score - reach) / error + DEVIATIONS);
    let (sum, count) = deviations.fold((0.0, 0.0), |(sum, count), deviation| (sum + deviation, count + 1.0));
    sum <= count
}

fn in_order(mut ordinals: Vec<u32>) -> Vec<u32> {
    ordinals.sort_unstable();
    ordinals.dedup();
    ordinals
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::unit::normalise;
    use super::*;

    /// Owners of rows of four numbers that differ in their signs alone, and are therefore estimated exactly: the greater the
    /// number that these make, the greater the score.
    fn signs(rows: &[(u32, u32)]) -> Signs {
        let mut signs = Signs::about(vec![0.0; 4]);
        for (at, (owner, number)) in rows.iter().enumerate() {
            signs.push(&[3, 2, 1, 0].map(|bit| if number >> bit & 1 == 1 { 0.5 } else { -0.5 }));
            signs.own(at..at + 1, *owner);
        }
        signs
    }

    fn query() -> UnitQuery {
        UnitQuery::new(&[8.0, 4.0, 2.0, 1.0], 4).unwrap()
    }

    /// What the rows are estimated to reach.
    fn reached(signs: &Signs, mask: Option<&Bits>) -> Vec<(u32, f32)> {
        let mut estimates = Estimates::new(signs, &query(), mask, usize::MAX);
        estimates.nearest(usize::MAX);
        estimates.reaching(f32::NEG_INFINITY).collect()
    }

    fn nearest(signs: &Signs, rows: usize, ordinals: usize) -> Nearest {
        Estimates::new(signs, &query(), None, rows).nearest(ordinals)
    }

    /// The nearest come in the order of ordinals, one for all of an owner's rows, and a tie at the end is taken whole.
    #[test]
    fn ties_at_the_end_are_all_taken() {
        let signs = signs(&[(7, 5), (3, 9), (3, 1), (5, 5), (9, 2)]);
        let tie = reached(&signs, None)[0].1;
        assert_eq!(nearest(&signs, 2, 1), Nearest { ordinals: vec![3, 5, 7], floor: tie });
    }

    /// Rows of the same owner do not crowd out the others: as many owners come as are asked for, if there are so many.
    #[test]
    fn rows_of_one_owner_do_not_crowd_out_others() {
        let signs = signs(&[(7, 2), (3, 9), (3, 8), (5, 3), (9, 1)]);
        assert_eq!(nearest(&signs, 2, 1).ordinals, [3]);
        assert_eq!(nearest(&signs, 2, 2).ordinals, [3, 5, 7]);
        assert_eq!(nearest(&signs, 2, 99).ordinals, [3, 5, 7, 9]);
    }

    /// Nobody outside the mask is told.
    #[test]
    fn mask_is_kept_to() {
        let signs = signs(&[(7, 2), (3, 9), (3, 8), (5, 3), (9, 1)]);
        let mask = Bits::from(&[3, 9].into());
        assert_eq!(reached(&signs, Some(&mask)).iter().map(|(owner, _)| *owner).collect::<Vec<_>>(), [3, 3, 9]);
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
            for (at, owner) in owners.iter().enumerate() {
                signs.push(&normalise(&vector(at)).unwrap());
                signs.own(at..at + 1, *owner);
            }
            signs.own(owners.len() / 3..owners.len() / 2, NOBODY);
            let mask = masked.map(|masked| Bits::from(&masked.into_iter().collect()));
            let query = UnitQuery::new(&vector(owners.len()), 12).unwrap();
            let sight = signs.sights(&query.exact)[0];
            let mut all = Vec::new();
            for block in signs.blocks_of(&sight) {
                let mut reach = [0.0; BLOCK];
                signs.estimate((&SignQuery::new(&query.exact), &sight), DEVIATIONS, block, 0.0, &mut reach);
                all.extend(signs.owners(block).iter().copied().zip(reach));
            }
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
            let likely = estimates.likely(nearest.floor - drop, &nearest, &[]);
            let further = within(nearest.floor - drop);
            let others = further.into_iter().filter(|ordinal| !nearest.ordinals.contains(ordinal));
            prop_assert_eq!(likely, others.collect::<Vec<u32>>());
        }
    }
}
