//! What a match of one term is worth.

/// Saturation of a term in a document of length zero. With [`SATURATION_PER_TOKEN`] it takes the place of BM25's `k1`
/// and `b` (Robertson and Zaragoza 2009, §3.4) without the average length, which one long memory would move for all.
pub const SATURATION: f32 = 0.6;
/// How much slower a term saturates for each token of the document.
pub const SATURATION_PER_TOKEN: f32 = 0.014;
/// Exponent on the inverse document frequency: rare words decide a little more than in plain BM25.
pub const RARITY_EXPONENT: f32 = 1.2;
/// What a neighbouring turn's words count, at distance one and two.
pub const NEIGHBOUR_SHARES: [f32; 2] = [0.5, 0.25];
/// Length in tokens up to which a turn takes its neighbours' words in full: a long one speaks for itself.
pub const NEIGHBOUR_LENGTH: f32 = 40.0;

/// How much of a term's worth a document of `length` tokens gets that has it `count` times: half where the count is as
/// large as what the length asks for.
pub fn saturation(count: u16, length: u32) -> f32 {
    let density = f32::from(count) / (SATURATION + SATURATION_PER_TOKEN * length as f32);
    density / (1.0 + density)
}

/// A term's count weighed against its document's length: what several turns have of a term can be added up so.
pub fn density_of(saturation: f32) -> f32 {
    saturation / (1.0 - saturation).max(f32::EPSILON)
}

/// How much of its neighbours' words a turn of `length` tokens takes.
pub fn openness(length: u32) -> f32 {
    (NEIGHBOUR_LENGTH / length.max(1) as f32).min(1.0)
}

/// The most that a term can add to a score: its weight and rarity among `documents`, of which `frequency` have it.
pub fn worth(weight: f32, documents: usize, frequency: usize) -> f32 {
    let (documents, frequency) = (documents as f32, frequency as f32);
    // A word that every text has keeps a little worth, however many there are.
    let idf = ((documents - frequency + 0.5) / (frequency + 0.5)).ln_1p();
    weight * idf.powf(RARITY_EXPONENT)
}

/// What a density adds to the score.
pub fn share(worth: f32, density: f32) -> f32 {
    worth * density / (1.0 + density)
}

/// Rounds what terms give to steps so coarse that sums of them are exact: then they are the same in any order, in whichever
/// parts and lists the terms lie (I3, I14).
#[derive(Debug, Clone, Copy, Default)]
pub struct Steps {
    step: f32,
    magic: f32,
}

impl Steps {
    /// Steps for sums up to `mass`, which is positive.
    pub fn of(mass: f32) -> Self {
        /// A number of this many steps and a half has them as the last place of its fraction.
        const STEPS: f32 = (1 << (f32::MANTISSA_DIGITS - 1)) as f32;
        /// Bits that are left for a sum: half as many steps as above stay within the same power of two.
        const BITS: f32 = f32::MANTISSA_DIGITS as f32 - 2.0;
        let step = (mass.max(f32::EPSILON).log2().floor() + 1.0 - BITS).exp2();
        Self { step, magic: 1.5 * STEPS * step }
    }

    /// `share` in whole steps, at least one: what matches keeps a little worth.
    pub fn round(self, share: f32) -> f32 {
        ((share + self.magic) - self.magic).max(self.step)
    }
}

/// What one term of the query gave to one memory's score.
#[derive(Debug, Clone, PartialEq)]
pub struct TermShare {
    /// The term.
    pub term: String,
    /// How many memories of the context have it.
    pub document_frequency: usize,
    /// What it gave.
    pub score: f32,
}

/// Most terms of a query that are scored: the rarest. A pasted page asks for no more than this many words can tell.
pub const QUERY_TERMS_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Sums of rounded shares are the same in any order, and near to those of the shares themselves.
        #[test]
        fn rounded_shares_add_up_exactly(
            shares in prop::collection::vec(prop_oneof![1e-9f32..1e-3, 1e-3f32..20.0], 1..512),
            at in 0usize..512,
        ) {
            let mass: f32 = shares.iter().sum::<f32>() * 1.01;
            let steps = Steps::of(mass);
            let mut rounded: Vec<f32> = shares.iter().map(|share| steps.round(*share)).collect();
            prop_assert!(rounded.iter().all(|share| *share > 0.0));
            let is_in_order = |one: usize, other: usize| shares[one] > shares[other] || rounded[one] <= rounded[other];
            prop_assert!((1..shares.len()).all(|next| is_in_order(next - 1, next) && is_in_order(next, next - 1)));
            let sum = |shares: &[f32]| shares.iter().fold(0.0, |sum, share| sum + share);
            let exactly: f64 = rounded.iter().map(|share| f64::from(*share)).sum();
            prop_assert_eq!(f64::from(sum(&rounded)).to_bits(), exactly.to_bits());
            prop_assert!((f64::from(mass) / 1.01 - exactly).abs() <= shares.len() as f64 * f64::from(mass) * 1e-6);
            rounded.rotate_left(at % shares.len());
            prop_assert_eq!(f64::from(sum(&rounded)).to_bits(), exactly.to_bits());
        }
    }
}
