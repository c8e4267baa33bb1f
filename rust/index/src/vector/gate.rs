//! The gate: recall at every selectivity, random and correlated, before and after removals.

use roaring::RoaringBitmap;

use super::kept::Kept;
use super::*;
use crate::bits::{Among, Bits};
use crate::contents::sum_of;
use crate::mapped::Mapped;

const LIVE: u32 = 36_000;
const DIM: usize = 64;
const CLUSTERS: u32 = 60;
const QUERIES: u32 = 40;
const K: usize = 10;

/// A small seeded generator, so that the gate needs no crate and never varies.
struct Chance(u64);

impl Chance {
    /// The next 64 bits (splitmix64).
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Near enough to normal: the sum of four uniform numbers.
    fn normal(&mut self) -> f32 {
        let bits = self.bits();
        (0..4).map(|part| (bits >> (16 * part) & 0xffff) as f32 / 65_536.0 - 0.5).sum()
    }

    fn vector(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.normal()).collect()
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.bits().is_multiple_of(many)
    }
}

/// Cluster of an ordinal. The first cluster is small, so that a mask of it alone is selective.
fn cluster(ordinal: u32) -> u32 {
    if ordinal < LIVE / 1_000 { 0 } else { 1 + ordinal % (CLUSTERS - 1) }
}

/// Random unit vectors, or ones that lie around their cluster's centre.
fn filled(clustered: bool) -> (Vectors, Vec<UnitQuery>) {
    let mut chance = Chance(7);
    let centres: Vec<Vec<f32>> = (0..CLUSTERS).map(|_| chance.vector(DIM)).collect();
    let mut near = |cluster: u32| {
        let mut vector = chance.vector(DIM);
        if clustered {
            vector.iter_mut().zip(&centres[cluster as usize]).for_each(|(x, centre)| *x += centre);
        }
        vector
    };
    let mut vectors = Vectors::new(DIM);
    for ordinal in 0..LIVE {
        vectors.put(ordinal, &near(cluster(ordinal))).unwrap();
    }
    let queries = (0..QUERIES).map(|number| UnitQuery::new(&near(number), DIM).unwrap()).collect();
    (vectors, queries)
}

/// Masks by the share they let through, in thousandths; correlated ones are whole clusters.
fn masks() -> Vec<(u32, RoaringBitmap)> {
    let mut chance = Chance(11);
    let mut random = |every: u64| (0..LIVE).filter(|_| chance.one_in(every)).collect();
    let whole = |clusters: std::ops::RangeInclusive<u32>| {
        (0..LIVE).filter(|&ordinal| clusters.contains(&cluster(ordinal))).collect()
    };
    vec![
        (1, random(1_000)),
        (10, random(100)),
        (100, random(10)),
        (500, random(2)),
        (1, whole(0..=0)),
        (17, whole(1..=1)),
        (100, whole(1..=6)),
        (500, whole(0..=30)),
        (1_000, (0..LIVE + 100).collect()),
    ]
}

/// The oracle: every match scored by the public `cosine`, sorted.
fn brute_force(vectors: &Vectors, query: &UnitQuery, mask: &RoaringBitmap, k: usize) -> Vec<(u32, f32)> {
    let mut all: Vec<(u32, f32)> =
        mask.iter().filter_map(|ordinal| Some((ordinal, vectors.cosine(query, ordinal)?))).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all
}

fn masked(vectors: &Vectors, query: &UnitQuery, mask: &RoaringBitmap, k: usize) -> Search {
    vectors.search(query, Some(Among { matching: mask, mask: &Bits::from(mask) }), k, k)
}

/// Mean recall over the queries; every hit that is found must have its exact score.
fn recall(vectors: &Vectors, queries: &[UnitQuery], mask: &RoaringBitmap) -> f64 {
    let (mut found, mut wanted) = (0, 0);
    for query in queries {
        let truth = brute_force(vectors, query, mask, K);
        let hits = masked(vectors, query, mask, K).hits;
        assert_eq!(hits.len(), truth.len(), "k hits come back whenever k match (I4)");
        found += truth.iter().filter(|hit| hits.contains(hit)).count();
        wanted += truth.len();
    }
    f64::from(found as u32) / f64::from(wanted as u32)
}

fn assert_recall(vectors: &Vectors, queries: &[UnitQuery], when: &str) {
    for (thousandths, mask) in masks() {
        let recall = recall(vectors, queries, &mask);
        let floor = if thousandths <= 17 { 1.0 } else { 0.99 };
        assert!(recall >= floor, "recall {recall} at {thousandths} thousandths, {when}");
    }
}

/// The same vectors by way of the files of a snapshot, of which `spoil` may change one.
fn through_files(vectors: &Vectors, spoil: impl FnOnce(&mut Vec<u8>)) -> Option<Vectors> {
    sealed_while(vectors, spoil, |_| ())
}

/// As [`through_files`], of vectors that change while they are written.
fn sealed_while(
    vectors: &Vectors,
    spoil: impl FnOnce(&mut Vec<u8>),
    meanwhile: impl FnOnce(&mut Vectors),
) -> Option<Vectors> {
    let folder = tempfile::tempdir().unwrap();
    let kept = vectors.to_keep(&vectors.live);
    let (mut codes, mut exact) = (Vec::new(), Vec::new());
    kept.write_codes(&mut codes).unwrap();
    kept.write_exact(&mut exact).unwrap();
    spoil(&mut codes);
    let mapped = |name: &str, bytes: Vec<u8>| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Mapped::open(&path, sum_of(&path).unwrap()).unwrap()
    };
    let kept = Kept::new(mapped("codes", codes), mapped("exact", exact), kept.shape())?;
    let mut now = vectors.clone();
    meanwhile(&mut now);
    let numbers: Vec<u32> = vectors.live.iter().collect();
    Some(now.resealed(kept, |ordinal| numbers.binary_search(&ordinal).ok().map(|number| number as u32)))
}

fn sealed(vectors: &Vectors) -> Vectors {
    through_files(vectors, |_| ()).unwrap()
}

fn gate(clustered: bool) {
    let (mut vectors, queries) = filled(clustered);
    assert_recall(&vectors, &queries, "all live");
    let mut in_cells = sealed(&vectors);
    assert_recall(&in_cells, &queries, "in cells");
    let mut chance = Chance(13);
    for ordinal in (0..LIVE).filter(|_| chance.one_in(2)) {
        vectors.remove(ordinal);
        in_cells.remove(ordinal);
    }
    assert_recall(&vectors, &queries, "half removed");
    assert_recall(&in_cells, &queries, "half removed from cells");
    // Those that come after a snapshot are in no cell.
    let gone: Vec<u32> = (0..LIVE).filter(|ordinal| !in_cells.contains(*ordinal)).step_by(3).collect();
    for ordinal in gone {
        in_cells.put(ordinal, filled_again(&vectors, ordinal)).unwrap();
    }
    assert_recall(&in_cells, &queries, "some put back");
}

/// The vector of another ordinal, as one that is new.
fn filled_again(vectors: &Vectors, ordinal: u32) -> &[f32] {
    let other = vectors.live.iter().nth(ordinal as usize % vectors.len()).unwrap();
    vectors.rows_of(other).unwrap()
}

/// I4 for random vectors, which estimates rank worst.
#[test]
fn recall_at_every_selectivity_of_random_vectors() {
    gate(false);
}

/// I4 for clustered vectors, where a mask and a query's neighbours coincide or exclude each other.
#[test]
fn recall_at_every_selectivity_of_clustered_vectors() {
    gate(true);
}

/// Any number of hits can be asked for, and exactly that many come, or all.
#[test]
fn limit_is_exact() {
    let mut chance = Chance(17);
    let mut vectors = Vectors::new(8);
    let query = UnitQuery::new(&chance.vector(8), 8).unwrap();
    assert!(vectors.search(&query, None, 10, 10).hits.is_empty());
    for ordinal in 0..3_000 {
        vectors.put(ordinal, &chance.vector(8)).unwrap();
    }
    let thirty: RoaringBitmap = (1_000..1_030).collect();
    for k in [0, 1, 5, 29, 30, 31, 10_000, usize::MAX] {
        let hits = masked(&vectors, &query, &thirty, k).hits;
        assert_eq!(hits, brute_force(&vectors, &query, &thirty, k));
        assert_eq!(hits.len(), k.min(30));
    }
    let all: RoaringBitmap = (0..3_000).collect();
    for k in [100, 1_500, 2_999, 3_000, 3_001, 10_000] {
        let hits = vectors.search(&query, None, k, k).hits;
        assert_eq!(hits, brute_force(&vectors, &query, &all, k));
    }
}

/// Vectors in a narrow cone, as many embedders make them: all near one direction.
fn cone(live: u32, dim: usize) -> (Vectors, Vec<UnitQuery>) {
    let mut chance = Chance(19);
    let axis: Vec<f32> = chance.vector(dim).iter().map(|x| 8.0 * x).collect();
    let centres: Vec<Vec<f32>> = (0..CLUSTERS).map(|_| chance.vector(dim)).collect();
    let mut near = |cluster: u32| -> Vec<f32> {
        let mut vector = chance.vector(dim);
        for (at, x) in vector.iter_mut().enumerate() {
            *x += axis[at] + centres[cluster as usize][at];
        }
        vector
    };
    let mut vectors = Vectors::new(dim);
    for ordinal in 0..live {
        vectors.put(ordinal, &near(ordinal % CLUSTERS)).unwrap();
    }
    (vectors, (0..6).map(|number| UnitQuery::new(&near(number), dim).unwrap()).collect())
}

/// About the centres of cells, signs answer for a cone; about zero they are found out, and codes answer.
#[test]
fn signs_serve_a_cone_about_its_centres() {
    const CONE: u32 = 31_000;
    let (plain, queries) = cone(CONE, 256);
    let mut in_cells = sealed(&plain);
    let all: RoaringBitmap = (0..CONE).collect();
    let tiers = |vectors: &Vectors, tier| {
        queries.iter().filter(|query| vectors.search(query, None, K, K).plan.tier == tier).count()
    };
    assert_eq!(tiers(&plain, Tier::SignsThenCodes), queries.len());
    assert_eq!(tiers(&in_cells, Tier::Signs), queries.len());
    assert!(recall(&in_cells, &queries, &all) >= 0.99);
    assert!(recall(&plain, &queries, &all) >= 1.0);
    // Those that come later are estimated about the mean of the others.
    for ordinal in 0..1_000 {
        in_cells.put(ordinal, plain.rows_of(ordinal).unwrap()).unwrap();
    }
    assert_eq!(tiers(&in_cells, Tier::Signs), queries.len());
    assert!(recall(&in_cells, &queries, &all) >= 0.99);
}

/// Queries from elsewhere than what the cells were measured by, near no row and far from all, find what scoring all finds.
#[test]
fn queries_unlike_the_rows_are_answered_from_all_cells() {
    let (vectors, _) = filled(true);
    let vectors = sealed(&vectors);
    let mut chance = Chance(23);
    let all: RoaringBitmap = (0..LIVE).collect();
    let mean: Vec<f32> = (0..DIM).map(|at| (0..LIVE).map(|row| vectors.rows_of(row).unwrap()[at]).sum()).collect();
    let opposite: Vec<f32> = mean.iter().map(|x| -x).collect();
    let axis: Vec<f32> = (0..DIM).map(|at| f32::from(u8::from(at == 3))).collect();
    let mut queries: Vec<UnitQuery> =
        [&mean, &opposite, &axis].map(|numbers| UnitQuery::new(numbers, DIM).unwrap()).into();
    queries.extend((0..QUERIES).map(|_| UnitQuery::new(&chance.vector(DIM), DIM).unwrap()));
    let recall = recall(&vectors, &queries, &all);
    assert!(recall >= 0.99, "{recall}");
}

/// What is read back is what was put, several rows an ordinal included, and what changed since stays as it is now.
#[test]
fn snapshot_gives_back_what_lives() {
    let mut chance = Chance(29);
    let mut vectors = Vectors::new(20);
    for ordinal in 0..6_000 {
        let rows: Vec<f32> = (0..=(ordinal % 3)).flat_map(|_| chance.vector(20)).collect();
        vectors.put(ordinal, &rows).unwrap();
    }
    (0..6_000).step_by(4).for_each(|ordinal| vectors.remove(ordinal));
    let again = sealed(&vectors);
    assert_eq!((again.dead_rows(), &again.live), (0, &vectors.live));
    assert!(vectors.live.iter().all(|ordinal| again.rows_of(ordinal) == vectors.rows_of(ordinal)));
    assert!(again.footprint() < vectors.footprint() / 4);

    let kept = |vectors: &Vectors| through_files(vectors, |_| ());
    let mut changed = kept(&vectors).unwrap();
    changed.put(1, &chance.vector(20)).unwrap();
    changed.remove(2);
    changed.put(6_001, &chance.vector(20)).unwrap();
    let query = UnitQuery::new(&chance.vector(20), 20).unwrap();
    let resealed = kept(&changed).unwrap();
    for k in [10, 5_000] {
        assert_eq!(changed.search(&query, None, k, k).hits, resealed.search(&query, None, k, k).hits);
        assert_eq!(changed.search(&query, None, k, k).hits, changed.compacted().search(&query, None, k, k).hits);
    }
    assert!(kept(&Vectors::new(20)).unwrap().search(&query, None, 10, 10).hits.is_empty());
}

/// I4: what changes while a snapshot is written, and gaps before it, leave a filter's rows as they are.
#[test]
fn filter_holds_though_vectors_changed_while_they_were_sealed() {
    let mut chance = Chance(37);
    let mut vectors = Vectors::new(20);
    (0..16_000).for_each(|ordinal| vectors.put(ordinal, &chance.vector(20)).unwrap());
    // From here on no number in the snapshot is its ordinal.
    vectors.remove(3);
    let moved = chance.vector(20);
    let sealed = sealed_while(
        &vectors,
        |_| (),
        |vectors| {
            // The last rows of blocks, and some others.
            (32..16_000).step_by(32).for_each(|ordinal| vectors.remove(ordinal));
            (40..16_000).step_by(96).for_each(|ordinal| vectors.put(ordinal, &moved).unwrap());
        },
    );
    let sealed = sealed.unwrap();
    let mask: RoaringBitmap = (0..16_000).filter(|ordinal| ordinal % 100 < 70).collect();
    for _ in 0..20 {
        let query = UnitQuery::new(&chance.vector(20), 20).unwrap();
        let truth = brute_force(&sealed, &query, &mask, 10);
        let found = masked(&sealed, &query, &mask, 10);
        assert_eq!(found.plan.tier, Tier::Signs);
        assert!(found.hits.iter().all(|(ordinal, _)| mask.contains(*ordinal)));
        assert!(truth.iter().filter(|hit| found.hits.contains(hit)).count() >= 9);
    }
}

/// Cells that do not add up are refused, whatever their checksum says.
#[test]
fn cells_that_do_not_add_up_are_refused() {
    let mut chance = Chance(31);
    let mut vectors = Vectors::new(4);
    (0..100).for_each(|ordinal| vectors.put(ordinal, &chance.vector(4)).unwrap());
    let set = |word: usize, value: u32| {
        move |codes: &mut Vec<u8>| codes[4 * word..][..4].copy_from_slice(&value.to_ne_bytes())
    };
    // The count of cells, the share, the rows of the one cell, its centre, the order of rows.
    assert!(through_files(&vectors, |_| ()).is_some());
    for (word, value) in [
        (0, 0),
        (0, 2),
        (0, u32::MAX),
        (1, f32::NAN.to_bits()),
        (2, 99),
        (2, u32::MAX),
        (3, f32::INFINITY.to_bits()),
        (7, 1),
        (8, 100),
        (106, u32::MAX),
    ] {
        assert!(through_files(&vectors, set(word, value)).is_none(), "{value} at {word}");
    }
    assert!(through_files(&vectors, |codes| codes.truncate(codes.len() - 1)).is_none());
}
