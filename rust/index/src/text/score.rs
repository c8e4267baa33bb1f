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
