//! A search of one partition: filter, legs, fusion, ageing, order.

use memkura_model::recall::{Ageing, Candidate, Curve, Fusion, Weights, fuse};
use memkura_model::{Filter, MemoryId, Timestamp};
use roaring::RoaringBitmap;

use crate::bits::{Among, Bits};
use crate::partition::Partition;
use crate::sessions::Sessions;
use crate::text::{Matches, TermShare};
use crate::tokens::analyse_query;
use crate::vector::{Plan, UnitQuery, Vectors};

/// What is searched for, and how.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Words to look for; `None` leaves out the text leg.
    pub text: Option<&'a str>,
    /// The query's own vector; `None` leaves out the vector leg.
    pub vector: Option<&'a UnitQuery>,
    /// Text in which exact keys are looked for; `None` leaves them out.
    pub keys: Option<&'a str>,
    /// What a hit must be.
    pub filter: &'a Filter,
    /// The instant of the search.
    pub now: Timestamp,
    /// How many hits are wanted.
    pub k: usize,
    /// How the legs become one order.
    pub fusion: Fusion,
    /// How much each leg counts.
    pub weights: Weights,
    /// How freshness is lost.
    pub curve: Curve,
    /// Whether turns of a session share in their neighbours' words and meaning.
    pub neighbours: bool,
    /// Whether memories that were replaced count too.
    pub include_superseded: bool,
    /// The least raw cosine of a hit that no exact key names.
    pub min_similarity: Option<f64>,
}

/// One memory found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The record's number for its row.
    pub row: i64,
    /// Its id.
    pub memory_id: MemoryId,
    /// Its place in the partition.
    pub ordinal: u32,
    /// Whether the query names its key.
    pub key: bool,
    /// What the legs say.
    pub signals: Candidate,
    /// Its own cosine, neighbours left out.
    pub cosine: Option<f64>,
    /// The fused relevance, never negative; about 0.5 for the average candidate.
    pub relevance: f64,
    /// What age and importance change.
    pub ageing: Ageing,
    /// The aged relevance, by which hits are ordered.
    pub score: f64,
}

/// The outcome of a search: the hits in order, and how they were found.
#[derive(Debug)]
pub struct Results {
    /// The best `k`, in order.
    pub found: Vec<Found>,
    /// Memories that passed the filter.
    pub matching: u64,
    /// How the vector leg went about it.
    pub plan: Option<Plan>,
    /// The text score that no memory can exceed.
    pub mass: f64,
}

/// How many of each leg's best are weighed against each other: deep enough that the other leg, age and importance can
/// still bring a memory up. Whoever asks for more hits gets the rest behind them, so that a longer answer begins as a
/// shorter one does.
const POOL: usize = 100;
/// How many of the nearest are found for sure, however many are asked for: so the pool is the same for every length of an
/// answer.
const SURE: usize = 32;
/// What a neighbouring turn's cosine counts, at distance one and two.
const NEIGHBOUR_COSINES: [f64; 2] = [0.3, 0.1];

/// Pseudo-relevance feedback (Rocchio 1971), on cosines: a candidate like the first answers gains. Both are small, since
/// a first answer may be wrong.
const FEEDBACK_ANSWERS: usize = 3;
const FEEDBACK_WEIGHT: f64 = 0.7;
/// Length in tokens from which an answer feeds back in full; below, by the square of its share. A passage tells what
/// a question is about, a single sentence only what it says itself.
const FEEDBACK_LENGTH: f64 = 150.0;
/// Below this share an answer changes nothing that could be seen.
const FEEDBACK_SHARE_MIN: f64 = 0.01;

/// What each leg brought up, and how to ask it of others.
struct Legs<'a> {
    text: Matches<'a>,
    vector: Option<(&'a Vectors, &'a UnitQuery)>,
    nearest: Vec<(u32, f32)>,
    plan: Option<Plan>,
}

/// A memory that a leg or a key brought up, with its place in each leg, from 1, and what it scores there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pooled {
    ordinal: u32,
    text: Option<(usize, f32)>,
    vector: Option<(usize, f32)>,
    is_named: bool,
}

impl Pooled {
    /// Whether it is weighed against the others. A place beyond the pool counts only among those that are in no leg's pool:
    /// how deep a leg was read must not change what a memory in the pool is worth.
    fn is_among_best(&self) -> bool {
        [self.text, self.vector].into_iter().flatten().any(|(rank, _)| rank <= POOL)
    }

    fn rank(&self, place: Option<(usize, f32)>) -> Option<usize> {
        place.map(|(rank, _)| rank).filter(|rank| *rank <= POOL || !self.is_among_best())
    }
}

impl Partition {
    /// Searches the partition.
    #[must_use]
    pub fn search(&self, query: &Query<'_>) -> Results {
        let matching = self.matching(query.filter, query.now, query.include_superseded);
        let mask = self.mask(&matching);
        let depth = if query.k <= POOL { POOL } else { self.len() };
        let legs = self.legs(query, Among { matching: &matching, mask: &mask }, depth);
        let keys = self.named(query, &mask);
        let pool = legs.pool(&keys);
        let cosines: Vec<_> = pool.iter().map(|pooled| legs.cosine_of(pooled)).collect();
        let mut signals = self.signals(query, &legs, &mask, &pool, &cosines);
        let relevance = self.relevance(query, &legs, &pool, &mut signals);
        let found = pool.iter().enumerate().map(|(at, pooled)| {
            let column = &self.columns[pooled.ordinal as usize];
            let ageing = Ageing::new(query.curve, column.decay_rate, column.fresh_from, query.now, column.importance);
            Found {
                row: column.row,
                memory_id: column.memory_id,
                ordinal: pooled.ordinal,
                key: pooled.is_named,
                signals: signals[at],
                cosine: cosines[at],
                relevance: relevance[at],
                ageing,
                score: ageing.apply(relevance[at]),
            }
        });
        let found = found.filter(|found| {
            found.key || query.min_similarity.is_none_or(|least| found.cosine.is_some_and(|cosine| cosine >= least))
        });
        let found = best(found.collect(), &keys, query.k);
        Results { found, matching: matching.len(), plan: legs.plan, mass: f64::from(legs.text.mass) }
    }

    /// What each term of the query gives to the text score of the memory at `ordinal`.
    #[must_use]
    pub fn term_shares(&self, query: &Query<'_>, ordinal: u32) -> Vec<TermShare> {
        let Some(text) = query.text else { return Vec::new() };
        let mask = self.mask(&self.matching(query.filter, query.now, query.include_superseded));
        let sessions = query.neighbours.then_some(&self.sessions);
        self.text.shares(analyse_query(text), ordinal, &mask, sessions)
    }

    fn mask(&self, matching: &RoaringBitmap) -> Bits {
        if matching.len() == self.live.len() { self.live_bits.clone() } else { Bits::from(matching) }
    }

    fn legs<'a>(&'a self, query: &Query<'a>, among: Among<'_>, depth: usize) -> Legs<'a> {
        let sessions = query.neighbours.then_some(&self.sessions);
        let text = query.text.map(|text| self.text.search(analyse_query(text), among, sessions, depth));
        let text = text.unwrap_or_default();
        let vector = self.vectors.as_ref().zip(query.vector).filter(|(vectors, query)| vectors.dim() == query.dim());
        // To look for each in a set of all takes longer than not to.
        let part = (among.matching.len() < self.live.len()).then_some(among);
        let search = vector.map(|(vectors, unit)| vectors.search(unit, part, depth, SURE));
        let plan = search.as_ref().map(|search| search.plan);
        Legs { text, vector, nearest: search.map(|search| search.hits).unwrap_or_default(), plan }
    }

    /// What the legs say of each memory in the pool.
    fn signals(
        &self,
        query: &Query<'_>,
        legs: &Legs<'_>,
        mask: &Bits,
        pool: &[Pooled],
        cosines: &[Option<f64>],
    ) -> Vec<Candidate> {
        let sessions = query.neighbours.then_some(&self.sessions).filter(|sessions| !sessions.is_empty());
        let around = |ordinal: u32, own: f64| {
            sessions.map_or(own, |sessions| legs.among_neighbours(ordinal, own, mask, sessions))
        };
        let signals = pool.iter().zip(cosines).map(|(pooled, cosine)| Candidate {
            feedback: 0.0,
            is_pooled: pooled.is_among_best() || pooled.is_named,
            text: f64::from(pooled.text.map_or_else(|| legs.text.score(pooled.ordinal), |(_, score)| score)),
            vector: cosine.map(|own| around(pooled.ordinal, own)),
            text_rank: pooled.rank(pooled.text),
            vector_rank: pooled.rank(pooled.vector),
        });
        signals.collect()
    }

    /// The fused relevance of each memory in the pool; where both legs took part and the first answers are passages, with
    /// what those say of the others.
    fn relevance(&self, query: &Query<'_>, legs: &Legs<'_>, pool: &[Pooled], signals: &mut [Candidate]) -> Vec<f64> {
        let weights = legs.weights(query.weights);
        let relevance = fuse(query.fusion, weights, signals);
        if query.fusion != Fusion::Score || !legs.are_both() {
            return relevance;
        }
        let answers = self.feeding_answers(legs, pool, signals, &relevance);
        if answers.is_empty() {
            return relevance;
        }
        for (signal, pooled) in signals.iter_mut().zip(pool) {
            signal.feedback = legs.feedback(&answers, pooled.ordinal);
        }
        fuse(query.fusion, weights, signals)
    }

    /// The first answers as queries of their own, each with the share to which it feeds back.
    fn feeding_answers(
        &self,
        legs: &Legs<'_>,
        pool: &[Pooled],
        signals: &[Candidate],
        relevance: &[f64],
    ) -> Vec<(UnitQuery, f64)> {
        let Some((vectors, _)) = legs.vector else { return Vec::new() };
        let mut order: Vec<usize> = (0..pool.len()).filter(|at| signals[*at].is_pooled).collect();
        order.sort_by(|one, other| relevance[*other].total_cmp(&relevance[*one]).then(one.cmp(other)));
        let answers = order.into_iter().take(FEEDBACK_ANSWERS).filter_map(|at| {
            let answer = pool[at].ordinal;
            let share = (f64::from(self.text.length(answer)) / FEEDBACK_LENGTH).min(1.0).powi(2);
            (share >= FEEDBACK_SHARE_MIN).then(|| Some((vectors.query_of(answer)?, share))).flatten()
        });
        answers.collect()
    }

    fn named(&self, query: &Query<'_>, mask: &Bits) -> Vec<u32> {
        let named = query.keys.map(|text| self.keys.named_in(text)).unwrap_or_default();
        named.into_iter().filter(|ordinal| mask.contains(*ordinal)).collect()
    }
}

impl Legs<'_> {
    /// Whether both legs took part.
    fn are_both(&self) -> bool {
        self.text.mass > 0.0 && self.vector.is_some()
    }

    /// What likeness to the answers adds to the cosine of a memory.
    fn feedback(&self, answers: &[(UnitQuery, f64)], ordinal: u32) -> f64 {
        let Some((vectors, _)) = self.vector else { return 0.0 };
        let likeness =
            answers.iter().filter_map(|(answer, share)| Some(share * f64::from(vectors.cosine(answer, ordinal)?)));
        FEEDBACK_WEIGHT * likeness.sum::<f64>() / FEEDBACK_ANSWERS as f64
    }

    /// Every memory that a leg or a key brought up, in the order of ordinals.
    fn pool(&self, keys: &[u32]) -> Vec<Pooled> {
        let one = |ordinal: u32| Pooled { ordinal, text: None, vector: None, is_named: false };
        let texts =
            (1..).zip(&self.text.best).map(|(rank, (at, score))| Pooled { text: Some((rank, *score)), ..one(*at) });
        let vectors =
            (1..).zip(&self.nearest).map(|(rank, (at, score))| Pooled { vector: Some((rank, *score)), ..one(*at) });
        let named = keys.iter().map(|at| Pooled { is_named: true, ..one(*at) });
        let mut pool: Vec<Pooled> = texts.chain(vectors).chain(named).collect();
        pool.sort_unstable_by_key(|pooled| pooled.ordinal);
        pool.dedup_by(|later, pooled| {
            let is_same = later.ordinal == pooled.ordinal;
            if is_same {
                pooled.text = pooled.text.or(later.text);
                pooled.vector = pooled.vector.or(later.vector);
                pooled.is_named |= later.is_named;
            }
            is_same
        });
        pool
    }

    fn cosine_of(&self, pooled: &Pooled) -> Option<f64> {
        pooled.vector.map_or_else(|| self.cosine(pooled.ordinal), |(_, cosine)| Some(f64::from(cosine)))
    }

    fn cosine(&self, ordinal: u32) -> Option<f64> {
        let (vectors, query) = self.vector?;
        vectors.cosine(query, ordinal).map(f64::from)
    }

    /// The cosine of a turn among those around it: their weighted mean.
    fn among_neighbours(&self, ordinal: u32, own: f64, mask: &Bits, sessions: &Sessions) -> f64 {
        let (mut sum, mut weights) = (own, 1.0);
        sessions.neighbours(
            ordinal,
            |turn| mask.contains(turn),
            |turn, distance| {
                if let Some(cosine) = self.cosine(turn) {
                    let weight = NEIGHBOUR_COSINES[distance - 1];
                    sum += weight * cosine;
                    weights += weight;
                }
            },
        );
        sum / weights
    }

    /// The weights of the legs that took part: one leg alone counts in full.
    fn weights(&self, wished: Weights) -> Weights {
        match (self.text.mass > 0.0, self.vector.is_some()) {
            (true, false) => Weights { text: 1.0, vector: 0.0 },
            (false, true) => Weights { text: 0.0, vector: 1.0 },
            _ => wished,
        }
    }
}

/// The best `k`: those that the query names lead, in the order of naming; then those that were weighed against each
/// other, by score; then the rest, by score. Equal ones by id.
fn best(mut found: Vec<Found>, keys: &[u32], k: usize) -> Vec<Found> {
    let named = |found: &Found| keys.iter().position(|key| *key == found.ordinal).unwrap_or(usize::MAX);
    let order = |one: &Found, other: &Found| {
        named(one)
            .cmp(&named(other))
            .then(other.signals.is_pooled.cmp(&one.signals.is_pooled))
            .then(other.score.total_cmp(&one.score))
            .then(one.memory_id.cmp(&other.memory_id))
    };
    if k < found.len() {
        found.select_nth_unstable_by(k, order);
        found.truncate(k);
    }
    found.sort_unstable_by(order);
    found
}
