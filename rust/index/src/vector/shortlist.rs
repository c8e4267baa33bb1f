//! A short list of likely ordinals from sign bits, and the judgement whether it was long enough.
//!
//! Sign bits are taken about a centre. Many embedders put all texts into one narrow cone; without
//! a centre their sign bits are mostly the cone's own (recall 0.5), about its mean they are not (0.99).
//!
//! How well sign bits rank still depends on the embedder and on the query, so no fixed length suits all.
//! A list is judged after the fact: its best hits, by exact score, have some spread of distances.
//! Where the list ends well beyond that spread, hits of the same quality further out are rare.
//! Where it ends within, the list cut the hits off, and the codes of all matches must be read.
//!
//! The judgement uses nothing but the query and the vectors. One remembered between searches
//! would depend on when it was made, and two processes could answer differently (I3, I14).

use roaring::RoaringBitmap;

use super::best::Hit;
use super::limits::EDGE_DEVIATIONS;
use super::rows::Rows;
use super::unit::UnitQuery;

/// The ordinals nearest by sign bits, and the largest distance among them.
#[derive(Debug)]
pub(super) struct Shortlist {
    pub ordinals: RoaringBitmap,
    edge: u32,
}

impl Shortlist {
    /// Takes at least `len` of the ordinals, with all that are as near as the last of them: a tie
    /// broken by ordinal would let the numbering of memories decide which are found.
    pub fn new(rows: &Rows, query: &UnitQuery, ordinals: &RoaringBitmap, len: usize) -> Self {
        let mut edge = Edge::new(rows.dim(), len);
        let mut near = Vec::new();
        walk_distances(rows, query, ordinals, |ordinal, distance| {
            if edge.admits(distance) {
                near.push((ordinal, distance));
            }
        });
        let edge = edge.distance as u32;
        let within = near.into_iter().filter(|&(_, distance)| distance <= edge);
        Self { ordinals: within.map(|(ordinal, _)| ordinal).collect(), edge }
    }

    /// Whether the list reaches far enough beyond its best `hits` to have missed hardly any.
    pub fn holds(&self, rows: &Rows, query: &UnitQuery, hits: &[Hit]) -> bool {
        let mut distances = Vec::with_capacity(hits.len());
        let ordinals = hits.iter().map(|hit| hit.ordinal).collect();
        walk_distances(rows, query, &ordinals, |_, distance| {
            distances.push(f64::from(distance));
        });
        let count = distances.len() as f64;
        let mean = distances.iter().sum::<f64>() / count;
        let variance = distances.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / count;
        mean + EDGE_DEVIATIONS * variance.sqrt() <= f64::from(self.edge)
    }
}

/// The distance within which the nearest `len` of all seen so far lie. It only ever shrinks.
struct Edge {
    len: usize,
    distance: usize,
    /// How many were admitted at each distance, and how many within the edge.
    at: Vec<usize>,
    within: usize,
}

impl Edge {
    fn new(distance_max: usize, len: usize) -> Self {
        Self { len: len.max(1), distance: distance_max, at: vec![0; distance_max + 1], within: 0 }
    }

    fn admits(&mut self, distance: u32) -> bool {
        let distance = distance as usize;
        if distance > self.distance {
            return false;
        }
        self.at[distance] += 1;
        self.within += 1;
        // Draws in while enough lie strictly inside; at distance 0 none do.
        while self.within - self.at[self.distance] >= self.len {
            self.within -= self.at[self.distance];
            self.distance -= 1;
        }
        true
    }
}

/// Gives each ordinal with the fewest sign bits by which one of its rows differs from the query.
fn walk_distances(rows: &Rows, query: &UnitQuery, ordinals: &RoaringBitmap, mut visit: impl FnMut(u32, u32)) {
    let signs = rows.signs_of(&query.exact);
    let mut distances = Vec::new();
    rows.walk(ordinals, |block| {
        distances.resize(block.rows().len(), 0);
        rows.sign_distances(&signs, block.rows(), &mut distances);
        block.for_each_owner(&distances, u32::min, &mut visit);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::unit::normalise;

    /// Rows of 64 numbers whose sign bits differ from the all-positive query in `distances`.
    fn rows_at(distances: &[u32]) -> (Rows, UnitQuery) {
        let mut rows = Rows::new(64);
        for (ordinal, &distance) in (0..).zip(distances) {
            let numbers: Vec<f32> = (0..64).map(|bit| if bit < distance { -1.0 } else { 1.0 }).collect();
            rows.append(ordinal, &normalise(&numbers).unwrap());
        }
        (rows, UnitQuery::new(&[1.0; 64], 64).unwrap())
    }

    fn hits(ordinals: impl Iterator<Item = u32>) -> Vec<Hit> {
        ordinals.map(|ordinal| Hit { score: 0.5, ordinal }).collect()
    }

    /// The nearest are taken in ordinal order, and a tie at the edge is taken whole.
    #[test]
    fn ties_at_the_edge_are_all_taken() {
        let (rows, query) = rows_at(&[9, 3, 5, 3, 1, 3]);
        let list = Shortlist::new(&rows, &query, &(0..6).collect(), 2);
        assert_eq!((list.ordinals, list.edge), ([1, 3, 4, 5].into(), 3));
    }

    /// A list longer than what there is holds everything.
    #[test]
    fn short_supply_is_taken_whole() {
        let (rows, query) = rows_at(&[9, 3]);
        let list = Shortlist::new(&rows, &query, &(0..2).collect(), 5);
        assert_eq!(list.ordinals, [0, 1].into());
    }

    /// A list that ends far beyond its best hits holds; one whose hits crowd its edge does not.
    #[test]
    fn list_is_judged_by_where_its_hits_lie() {
        let (rows, query) = rows_at(&[4, 5, 6, 20, 20, 21]);
        let list = Shortlist::new(&rows, &query, &(0..6).collect(), 5);
        assert!(list.holds(&rows, &query, &hits(0..3)));
        assert!(!list.holds(&rows, &query, &hits(2..5)));
    }
}
