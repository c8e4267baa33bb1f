//! How the orders of the text leg and the vector leg become one.

use crate::{Invalid, InvalidKind};

/// Ways to make one order of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fusion {
    /// By how far a candidate stands out in each leg: its score less the candidates' mean, in their standard deviations.
    #[default]
    Score,
    /// By rank alone: `Σ weight / (60 + rank)` (Cormack, Clarke and Büttcher 2009).
    Rrf,
}

impl Fusion {
    /// Reads `score` or `rrf`.
    ///
    /// # Errors
    /// On any other text.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "score" => Ok(Self::Score),
            "rrf" => Ok(Self::Rrf),
            _ => Err(Invalid::value("fusion", "is not known", text, "Use score or rrf")),
        }
    }
}

/// The constant of reciprocal rank fusion, as its authors set it.
pub const RRF_K: f64 = 60.0;

/// How much each leg counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// The text leg.
    pub text: f64,
    /// The vector leg.
    pub vector: f64,
}

impl Weights {
    /// The weights that `fusion` was measured best with.
    #[must_use]
    pub const fn of(fusion: Fusion) -> Self {
        match fusion {
            Fusion::Score => Self { text: 0.35, vector: 0.65 },
            Fusion::Rrf => Self { text: 1.0, vector: 1.0 },
        }
    }

    /// Checks that both lie within bounds in which sums and ratios mean something, and are not both zero.
    ///
    /// # Errors
    /// Names the weight at fault.
    pub fn check(self) -> Result<Self, Invalid> {
        /// Only the ratio of weights counts, and nobody needs a larger one.
        const WEIGHT_MAX: f64 = 1e6;
        for (leg, weight) in [("text", self.text), ("vector", self.vector)] {
            if !(0.0..=WEIGHT_MAX).contains(&weight) {
                let problem = format!("lies outside 0 to {WEIGHT_MAX}");
                return Err(Invalid::value(format!("weights.{leg}"), problem, weight, "Give a weight within"));
            }
        }
        if self.text.max(self.vector) >= 1.0 / WEIGHT_MAX {
            return Ok(self);
        }
        Err(Invalid::new(InvalidKind::Value, "weights", "are both 0", "0", "Let at least one leg count"))
    }
}

/// What the legs say of one memory. Raw scores are those of the leg, whether or not the memory was in its top.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Candidate {
    /// Whether it is among those that the others are measured by: the best of a leg.
    pub is_pooled: bool,
    /// The text score; 0 when no word matches.
    pub text: f64,
    /// The cosine, neighbours included; `None` when it has no vector.
    pub vector: Option<f64>,
    /// What its likeness to the first answers adds to the cosine.
    pub feedback: f64,
    /// The place in the text leg, from 1.
    pub text_rank: Option<usize>,
    /// The place in the vector leg, from 1.
    pub vector_rank: Option<usize>,
}

impl Candidate {
    /// How near its meaning is, with what feedback adds.
    fn nearness(&self) -> Option<f64> {
        Some(self.vector? + self.feedback)
    }
}

/// Standard deviations below the candidates' mean at which relevance would reach 0. What lies above keeps its distances,
/// so that age and importance weigh alike at the top and in the middle.
const FLOOR: f64 = 4.0;
/// Below this share of relevance, what is left is never used up: however far a candidate lies behind, one that lies
/// further comes after it.
const TAIL: f64 = 0.05;

/// The relevance of each candidate: 0.5 for the average one under [`Fusion::Score`], always positive there; never
/// negative.
#[must_use]
pub fn fuse(fusion: Fusion, weights: Weights, candidates: &[Candidate]) -> Vec<f64> {
    match fusion {
        Fusion::Score => fuse_scores(weights, candidates),
        Fusion::Rrf => candidates.iter().map(|candidate| reciprocal(weights, candidate)).collect(),
    }
}

fn fuse_scores(weights: Weights, candidates: &[Candidate]) -> Vec<f64> {
    let pool = || candidates.iter().filter(|candidate| candidate.is_pooled);
    let text = Spread::of(pool().map(|candidate| candidate.text));
    let vector = Spread::of(pool().filter_map(Candidate::nearness));
    let total = weights.text + weights.vector;
    let fused = candidates.iter().map(|candidate| {
        // Without a vector nothing is known of its meaning: it stands where the average one does.
        let vector = candidate.nearness().map_or(0.0, |nearness| vector.deviations(nearness));
        let standing = (weights.text * text.deviations(candidate.text) + weights.vector * vector) / total;
        positive((standing + FLOOR) / (2.0 * FLOOR))
    });
    fused.collect()
}

/// `relevance` where it is above [`TAIL`]; below, a value between 0 and that which falls with it, without a bend.
fn positive(relevance: f64) -> f64 {
    if relevance >= TAIL { relevance } else { TAIL * TAIL / (2.0 * TAIL - relevance) }
}

/// Where scores of one leg lie.
struct Spread {
    mean: f64,
    deviation: f64,
}

impl Spread {
    fn of(scores: impl Iterator<Item = f64> + Clone) -> Self {
        let count = scores.clone().count().max(1) as f64;
        let mean = scores.clone().sum::<f64>() / count;
        let variance = scores.map(|score| (score - mean).powi(2)).sum::<f64>() / count;
        Self { mean, deviation: variance.sqrt() }
    }

    /// How many standard deviations `score` lies above the mean. Scores that are all alike say nothing.
    fn deviations(&self, score: f64) -> f64 {
        /// Below this, a spread is rounding.
        const NOTHING: f64 = 1e-9;
        if self.deviation < NOTHING { 0.0 } else { (score - self.mean) / self.deviation }
    }
}

/// Scaled so that first place in both legs is 1.
fn reciprocal(weights: Weights, candidate: &Candidate) -> f64 {
    let part =
        |weight: f64, rank: Option<usize>| rank.map_or(0.0, |rank| weight * (RRF_K + 1.0) / (RRF_K + rank as f64));
    (part(weights.text, candidate.text_rank) + part(weights.vector, candidate.vector_rank))
        / (weights.text + weights.vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Weights = Weights { text: 1.0, vector: 1.0 };

    fn close(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-12, "{one} {other}");
    }

    /// Ranks give `(60 + 1) / (60 + rank)`, and a leg that does not know a memory gives nothing.
    #[test]
    fn reciprocal_rank_is_the_formula() {
        let both = Candidate { text_rank: Some(1), vector_rank: Some(1), ..Candidate::default() };
        let text_only = Candidate { text_rank: Some(3), ..Candidate::default() };
        let fused = fuse(Fusion::Rrf, EVEN, &[both, text_only]);
        close(fused[0], 1.0);
        close(fused[1], 61.0 / 63.0 / 2.0);
    }

    /// A word match keeps its worth whatever the vectors say.
    #[test]
    fn keyword_only_candidate_survives() {
        let word = Candidate { is_pooled: true, text: 5.0, vector: Some(0.1), ..Candidate::default() };
        let near = Candidate { is_pooled: true, text: 0.0, vector: Some(0.2), ..Candidate::default() };
        let nothing = Candidate { is_pooled: true, vector: Some(0.1), ..Candidate::default() };
        let fused = fuse(Fusion::Score, EVEN, &[word, near, nothing]);
        assert!(fused[0] > fused[2] && fused[1] > fused[2]);
    }

    /// One candidate alone, equal cosines and missing legs give finite scores.
    #[test]
    fn odd_pools_give_finite_scores() {
        let candidate = Candidate { is_pooled: true, vector: Some(0.3), ..Candidate::default() };
        for pool in [vec![candidate], vec![candidate, candidate], vec![Candidate::default()]] {
            for score in fuse(Fusion::Score, EVEN, &pool) {
                close(score, 0.5);
            }
        }
    }

    /// Far behind the best, order is still order.
    #[test]
    fn candidates_far_behind_keep_their_order() {
        let scores = [(0..100).map(f64::from).collect(), vec![-50.0, -500.0, -5000.0]].concat();
        let candidate = |(at, score): (usize, &f64)| Candidate {
            is_pooled: at < 100,
            vector: Some(*score),
            ..Candidate::default()
        };
        let candidates: Vec<_> = scores.iter().enumerate().map(candidate).collect();
        let fused = fuse(Fusion::Score, EVEN, &candidates);
        assert!(fused[..100].is_sorted());
        assert!(fused[0] > fused[100] && fused[100] > fused[101] && fused[101] > fused[102] && fused[102] > 0.0);
    }

    /// Weights that mean nothing are refused.
    #[test]
    fn useless_weights_are_refused() {
        assert!(Weights { text: 0.0, vector: 0.0 }.check().is_err());
        assert!(Weights { text: -1.0, vector: 1.0 }.check().is_err());
        assert!(Weights { text: f64::NAN, vector: 1.0 }.check().is_err());
        assert!(EVEN.check().is_ok());
    }
}
