//! The best matches of a query, without looking at most of the others.
//!
//! Documents are taken window by window. The lists of rare terms are added up for a whole window; those of common ones are
//! looked into only for the documents that they could still bring among the best ("MaxScore": Turtle and Flood 1995, Query
//! evaluation: strategies and optimizations, §4; by windows as in Lucene). What is passed over could not have been among
//! the best, so the outcome is that of scoring everything.

use super::asked::Asked;
use super::index::{FRESH, SEALED, TextIndex};
use super::neighbours;
use super::postings::Posting;
use super::score::{Steps, TermShare};
use crate::bits::{Among, Bits};
use crate::sessions::Sessions;
use crate::tokens::QueryTerm;
use crate::top::{Top, any_reaches, best};

/// Documents whose scores are added up together: these fit the first-level cache.
const WINDOW: usize = 4_096;
/// What it costs to score one document by itself, in postings read one after another. Measured.
const DOCUMENT_COST: usize = 48;
/// Postings from which it pays to score some documents first, for a floor that most others do not reach. Tests are small.
const SEEDED_POSTINGS_MIN: usize = if cfg!(test) { 400 } else { 40_000 };
/// How many documents are scored first for each one that is wanted, and how many are looked at at most.
const SEEDS_PER_HIT: usize = 2;
const SEEDS_LOOKED_AT: usize = 8_192;

/// The outcome of a search of the text leg.
#[derive(Debug, Default)]
pub struct Matches<'a> {
    /// The best, highest score first, equal ones by ordinal.
    pub best: Vec<(u32, f32)>,
    /// The score of a memory that holds every term of the query without end.
    pub mass: f32,
    scores: Scores<'a>,
}

#[derive(Debug)]
enum Scores<'a> {
    /// Those of all memories, by ordinal.
    Known(Vec<f32>),
    /// Found when they are asked for.
    Asked(&'a TextIndex, Box<Asked<'a>>),
}

impl Default for Scores<'_> {
    fn default() -> Self {
        Self::Known(Vec::new())
    }
}

impl Matches<'_> {
    /// The score of a memory, whether or not it is among the best; 0 where none of its words match.
    #[must_use]
    pub fn score(&self, ordinal: u32) -> f32 {
        match &self.scores {
            Scores::Known(scores) => scores.get(ordinal as usize).copied().unwrap_or_default(),
            Scores::Asked(index, asked) => {
                index.document(ordinal).map_or(0.0, |document| asked.score(index, document).0)
            }
        }
    }
}

impl TextIndex {
    /// The best `depth` memories that share a term with the query.
    ///
    /// With `sessions`, a memory also has a share in the words of the turns around it, so far as those match too.
    #[must_use]
    pub fn search<'a>(
        &'a self,
        query: Vec<QueryTerm>,
        among: Among<'_>,
        sessions: Option<&Sessions>,
        depth: usize,
    ) -> Matches<'a> {
        let asked = Asked::of(self, query);
        let mass = asked.mass;
        if let Some(sessions) = sessions.filter(|sessions| !sessions.is_empty()) {
            let (scores, found) = neighbours::scores(self, &asked, among.mask, sessions);
            return Matches { best: best(found, depth), mass, scores: Scores::Known(scores) };
        }
        let mut top = Top::new(depth, 0.0);
        let postings = asked.admitting_postings();
        if among.matching.len() as usize * DOCUMENT_COST < postings {
            for ordinal in among.matching {
                let Some(document) = self.document(ordinal) else { continue };
                if let (score, true) = asked.score(self, document) {
                    top.push(ordinal, score);
                }
            }
        } else {
            if postings >= SEEDED_POSTINGS_MIN {
                top.floor = self.seeded_floor(&asked, among.mask, depth);
            }
            for part in [SEALED, FRESH] {
                self.search_part(&asked, part, among.mask, &mut top);
            }
        }
        Matches { best: best(top.kept, depth), mass, scores: Scores::Asked(self, Box::new(asked)) }
    }

    /// A score that as many documents reach as are wanted: that of the least of some that have the most telling terms. 0 when
    /// there are too few of them.
    fn seeded_floor(&self, asked: &Asked<'_>, mask: &Bits, depth: usize) -> f32 {
        let mut terms: Vec<_> = asked.terms.iter().filter(|term| term.admits).collect();
        terms.sort_by(|one, other| other.worth.total_cmp(&one.worth));
        let mut seeds = Vec::new();
        let wanted = depth.saturating_mul(SEEDS_PER_HIT);
        let documents = terms.iter().flat_map(|term| self.documents_of(term)).take(SEEDS_LOOKED_AT);
        for document in documents {
            if seeds.len() == wanted {
                break;
            }
            if self.owner(document).is_some_and(|ordinal| mask.contains(ordinal)) {
                seeds.push(document);
            }
        }
        seeds.sort_unstable();
        seeds.dedup();
        if seeds.len() < depth || depth == 0 {
            return 0.0;
        }
        let mut scores: Vec<f32> = seeds.iter().map(|seed| asked.score(self, *seed).0).collect();
        let (_, least, _) = scores.select_nth_unstable_by(depth - 1, |one, other| other.total_cmp(one));
        *least
    }

    fn search_part(&self, asked: &Asked<'_>, part: usize, mask: &Bits, top: &mut Top) {
        let (base, documents) = self.span(part);
        let mut lists = Lists::of(asked, part);
        let mut sums = [0.0_f32; WINDOW];
        while let Some((start, rest)) = lists.add_window(&mut sums, top.floor) {
            for (at, chunk) in sums.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                // The bar rises while a window is read.
                let bar = (top.floor - rest).max(f32::MIN_POSITIVE);
                if !any_reaches(chunk, bar) {
                    *chunk = [0.0; 16];
                    continue;
                }
                for (place, sum) in chunk.iter_mut().enumerate() {
                    let sum = std::mem::take(sum);
                    let document = start + (16 * at + place) as u32;
                    if sum < bar {
                        continue;
                    }
                    let owner = (document < documents).then(|| self.owner(base + document)).flatten();
                    let Some(ordinal) = owner.filter(|ordinal| mask.contains(*ordinal)) else { continue };
                    if let Some(score) = lists.complete(document, sum, top.floor) {
                        top.push(ordinal, score);
                    }
                }
            }
        }
    }

    /// What each term of the query gives to the score of `ordinal`.
    #[must_use]
    pub fn shares(
        &self,
        query: Vec<QueryTerm>,
        ordinal: u32,
        mask: &Bits,
        sessions: Option<&Sessions>,
    ) -> Vec<TermShare> {
        let asked = Asked::of(self, query);
        neighbours::shares(self, &asked, ordinal, mask, sessions)
    }
}

/// The lists of a query's terms in one part, each read up to some document. Those of admitting terms lead, the most
/// valuable first.
struct Lists<'a> {
    all: Vec<List<'a>>,
    admitting: usize,
    /// The most that the lists from each one on can add together.
    bounds: Vec<f32>,
    /// How many lists were added up for the present window.
    added: usize,
    steps: Steps,
}

struct List<'a> {
    postings: &'a [Posting],
    worth: f32,
}

impl<'a> Lists<'a> {
    fn of(asked: &Asked<'a>, part: usize) -> Self {
        let mut terms: Vec<_> = asked.terms.iter().filter(|term| !term.lists[part].postings.is_empty()).collect();
        let bound = |term: &super::asked::AskedTerm<'_>| asked.steps.round(term.worth * term.lists[part].peak);
        terms.sort_by(|one, other| other.admits.cmp(&one.admits).then(bound(other).total_cmp(&bound(one))));
        let mut sum = 0.0;
        let mut bounds: Vec<f32> = terms.iter().rev().map(|term| (sum += bound(term), sum).1).collect();
        bounds.reverse();
        bounds.push(0.0);
        let lists = terms.iter().map(|term| List { postings: term.lists[part].postings, worth: term.worth });
        let admitting = terms.iter().filter(|term| term.admits).count();
        Self { all: lists.collect(), admitting, bounds, added: 0, steps: asked.steps }
    }

    /// Adds up the next window in which a document could reach `floor`, and says where it starts and what the lists that
    /// were not added could give beside. `None` when there is no such document left.
    fn add_window(&mut self, sums: &mut [f32; WINDOW], floor: f32) -> Option<(u32, f32)> {
        // A document in none of these lists stays below the floor, or is not admitted.
        self.added = (0..self.admitting).find(|at| self.bounds[*at] < floor).unwrap_or(self.admitting);
        let added = &mut self.all[..self.added];
        let next = added.iter().filter_map(|list| list.postings.first()).map(|posting| posting.document).min()?;
        let start = next - next % WINDOW as u32;
        for list in added {
            let end = reach(list.postings, u64::from(start) + WINDOW as u64);
            let (run, left) = list.postings.split_at(end);
            list.postings = left;
            for posting in run {
                sums[posting.document as usize % WINDOW] += self.steps.round(list.worth * posting.saturation);
            }
        }
        Some((start, self.bounds[self.added]))
    }

    /// The score of a document whose sum of the added lists is known; `None` once it cannot reach `floor`. Documents must
    /// come in their order.
    fn complete(&mut self, document: u32, sum: f32, floor: f32) -> Option<f32> {
        let mut sum = sum;
        for at in self.added..self.all.len() {
            if sum + self.bounds[at] < floor {
                return None;
            }
            let list = &mut self.all[at];
            list.postings = &list.postings[reach(list.postings, document.into())..];
            if let Some(posting) = list.postings.first().filter(|posting| posting.document == document) {
                sum += self.steps.round(list.worth * posting.saturation);
            }
        }
        (sum >= floor).then_some(sum)
    }
}

/// How many postings come before `document`: found in ever longer steps, since it is mostly near.
fn reach(postings: &[Posting], document: u64) -> usize {
    let is_before = |posting: &Posting| u64::from(posting.document) < document;
    let mut step = 1;
    while postings.get(step - 1).is_some_and(is_before) {
        step *= 2;
    }
    let (from, to) = (step / 2, (step - 1).min(postings.len()));
    from + postings[from..to].partition_point(is_before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use roaring::RoaringBitmap;

    use super::super::index::Analysed;
    use super::super::score::{saturation, worth};
    use super::*;
    use crate::tokens::analyse_query;

    /// A chance that gives every run the same numbers.
    struct Chance(u64);

    impl Chance {
        /// Below `end`, the small numbers far more often than the large ones.
        fn rank(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (self.0 >> 40) as f64 / f64::from(1 << 24);
            ((end as f64).powf(unit) - 1.0) as usize
        }

        /// Words of both kinds: those that are one term, and those whose characters admit nothing.
        /// One word is in every text, and worth almost nothing.
        fn text(&mut self, words: usize) -> String {
            let word = |rank: usize| {
                if rank.is_multiple_of(3) { format!("語{}末", rank % 50) } else { format!("w{rank} running") }
            };
            (0..words).map(|_| word(self.rank(400)) + " ").collect::<String>() + "everywhere"
        }
    }

    /// Texts over several windows, part of them sealed, some replaced and some removed.
    fn grown(seed: u64, texts: u32) -> (TextIndex, RoaringBitmap) {
        let mut chance = Chance(seed);
        let mut index = TextIndex::default();
        let mut live = RoaringBitmap::new();
        for ordinal in 0..texts {
            let words = 3 + chance.rank(30);
            index.put(ordinal, &chance.text(words));
            live.insert(ordinal);
            if ordinal == texts / 2 {
                let sealed = index.to_seal(&live).seal();
                index = index.resealed(std::sync::Arc::new(sealed), &mut Some);
            }
        }
        for ordinal in (0..texts).step_by(7) {
            index.remove(ordinal);
            live.remove(ordinal);
        }
        for ordinal in (1..texts).step_by(11) {
            let words = 3 + chance.rank(30);
            index.put(ordinal, &chance.text(words));
            live.insert(ordinal);
        }
        (index, live)
    }

    /// Every match with its score, the best first, by the formulas alone.
    fn scored(index: &TextIndex, query: &[QueryTerm], live: &RoaringBitmap, among: &RoaringBitmap) -> Vec<(u32, f32)> {
        let texts: Vec<_> = live.iter().map(|ordinal| (ordinal, index.analysed(ordinal).unwrap())).collect();
        let count = |said: &Analysed<'_>, term: &QueryTerm| {
            said.terms.iter().find(|(known, _)| *known == term.term).map(|(_, count)| *count)
        };
        let having = |term: &QueryTerm| texts.iter().filter(|(_, said)| count(said, term).is_some()).count();
        let worths: Vec<f32> = query.iter().map(|term| worth(term.weight, texts.len(), having(term))).collect();
        let steps = Steps::of(worths.iter().sum());
        let score = |said: &Analysed<'_>| {
            let shares = query.iter().zip(&worths).map(|(term, worth)| {
                count(said, term).map_or(0.0, |count| steps.round(worth * saturation(count, said.length)))
            });
            shares.sum::<f32>()
        };
        let admits = |said: &Analysed<'_>| query.iter().any(|term| term.admits && count(said, term).is_some());
        let found = texts.iter().filter(|(ordinal, said)| among.contains(*ordinal) && admits(said));
        best(found.map(|(ordinal, said)| (*ordinal, score(said))).collect(), usize::MAX)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

        /// What is passed over was not among the best: at every depth the hits are the first of all that match, as they are
        /// scored here one by one from what each text says, scores to the bit.
        #[test]
        fn best_are_those_of_scoring_everything(seed in any::<u64>(), every in prop::sample::select(vec![1, 2, 9, 500])) {
            let (index, live) = grown(seed, 9_000);
            let matching: RoaringBitmap = live.iter().filter(|ordinal| ordinal % every == 0).collect();
            let mask = Bits::from(&matching);
            let among = Among { matching: &matching, mask: &mask };
            let mut chance = Chance(seed ^ 1);
            for words in [1, 2, 5, 12] {
                let query = analyse_query(&chance.text(words));
                let all = scored(&index, &query, &live, &matching);
                for depth in [1, 10, 100, usize::MAX] {
                    let found = index.search(query.clone(), among, None, depth);
                    prop_assert_eq!(&found.best, &all[..depth.min(all.len())]);
                    prop_assert!(all.iter().all(|(ordinal, score)| found.score(*ordinal).to_bits() == score.to_bits()));
                }
            }
        }
    }
}
