//! What a match of one term is worth, and the scores of one search.

/// Saturation of a term in a document of length zero. With [`SATURATION_PER_TOKEN`] it takes the place of BM25's `k1`
/// and `b` (Robertson and Zaragoza 2009, §3.4) without the average length, which one long memory would move for all.
pub const SATURATION: f32 = 0.5;
/// How much slower a term saturates for each token of the document.
pub const SATURATION_PER_TOKEN: f32 = 0.012;
/// Exponent on the inverse document frequency: rare words decide a little more than in plain BM25.
pub const RARITY_EXPONENT: f32 = 1.2;
/// What a neighbouring turn's words count, at distance one and two.
pub const NEIGHBOUR_SHARES: [f32; 2] = [0.5, 0.25];
/// Length in tokens up to which a turn takes its neighbours' words in full: a long one speaks for itself.
pub const NEIGHBOUR_LENGTH: f32 = 40.0;

/// A term's frequency weighed against its document's length: 1 when the term is half saturated.
pub fn density(frequency: u32, length: u32) -> f32 {
    frequency as f32 / (SATURATION + SATURATION_PER_TOKEN * length as f32)
}

/// How much of its neighbours' words a turn of `length` tokens takes.
pub fn openness(length: u32) -> f32 {
    (NEIGHBOUR_LENGTH / length.max(1) as f32).min(1.0)
}

/// The most that a term can add to a score: its weight and rarity among `documents`, of which `frequency` have it.
pub fn worth(weight: f32, documents: usize, frequency: usize) -> f32 {
    let (documents, frequency) = (documents as f32, frequency as f32);
    let idf = (1.0 + (documents - frequency + 0.5) / (frequency + 0.5)).ln();
    weight * idf.powf(RARITY_EXPONENT)
}

/// What a density adds to the score.
pub fn share(worth: f32, density: f32) -> f32 {
    worth * density / (1.0 + density)
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

/// The scores of one search of the text leg.
#[derive(Debug, Default)]
pub struct TextScores {
    /// Score by ordinal; 0 where nothing matched.
    pub(super) scores: Vec<f32>,
    /// Ordinals with an admitting match, in no order, none twice.
    pub(super) admitted: Vec<u32>,
    /// The score of a memory that holds every term of the query without end.
    pub(super) mass: f32,
}

impl TextScores {
    /// The score of `ordinal`; 0 when none of its words match.
    #[must_use]
    pub fn score(&self, ordinal: u32) -> f32 {
        self.scores.get(ordinal as usize).copied().unwrap_or_default()
    }

    /// The score that no memory can exceed: what all terms of the query are worth together.
    #[must_use]
    pub fn mass(&self) -> f32 {
        self.mass
    }

    /// The best `k` matches, highest score first, equal ones by ordinal.
    #[must_use]
    pub fn top(&self, k: usize) -> Vec<(u32, f32)> {
        let mut found: Vec<_> = self.admitted.iter().map(|ordinal| (*ordinal, self.score(*ordinal))).collect();
        let order = |one: &(u32, f32), other: &(u32, f32)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
        if k == 0 {
            return Vec::new();
        }
        if found.len() > k {
            found.select_nth_unstable_by(k - 1, order);
            found.truncate(k);
        }
        found.sort_unstable_by(order);
        found
    }
}

/// Most terms of a query that are scored: the rarest. A pasted page asks for no more than this many words can tell.
pub const QUERY_TERMS_MAX: usize = 512;
