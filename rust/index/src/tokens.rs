//! Text to terms: the one analyser behind text search.
//!
//! Documents and queries go through the same steps, so a word finds itself in whatever form it was
//! typed: text is folded ([`fold`]), cut into runs by script ([`runs`]), and each run becomes terms.
//! Words and identifiers are emitted whole and split ([`words`]); scripts that do not put spaces
//! between words become overlapping pairs and single characters ([`packed`]); English words also
//! give their stem ([`stem`]). There is no stop-word list and no query syntax.
//!
//! ```
//! use memkura_index::tokens::analyse_query;
//!
//! let name = analyse_query("getUserById is slow");
//! let words = analyse_query("user id");
//! assert!(words.iter().all(|word| name.iter().any(|term| term.term == word.term)));
//! ```

mod fold;
mod packed;
mod runs;
mod stem;
mod tally;
mod words;

#[cfg(test)]
mod cases;

use std::borrow::Cow;

use runs::Run;
use tally::Tally;

/// Version of the analysis. An index built by another version must be rebuilt.
pub const ANALYSER_VERSION: u32 = 1;

/// Longest term kept as it is, in bytes of UTF-8. A longer one (a key, a digest, a page of one letter)
/// is replaced by a prefix and a hash of the same total size, so that it still finds itself.
/// 64 bytes hold the longest words and paths that people type; it also keeps index keys small.
pub const TERM_BYTES_MAX: usize = 64;

/// One distinct term of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    /// The term as documents carry it.
    pub term: String,
    /// Factor on the term's score: what kind of term it is, times `1 + ln(occurrences in the query)`.
    pub weight: f32,
    /// Whether a document that matches this term alone belongs in the result. False for the single
    /// characters of a longer word: 冷 must not bring up everything cold when 冷蔵庫 was asked for.
    pub admits: bool,
}

/// What kind of evidence a term is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word as written, folded, or a part of one (`user` in `getUserById`).
    Word {
        /// Whether a stem follows and carries most of the word's weight.
        stemmed: bool,
    },
    /// The stem of an English word.
    Stem,
    /// Neighbouring words joined as written: `conf.d`, `3.11.7`, `snake_case`.
    Joined,
    /// Two adjacent characters of an unspaced script.
    Pair,
    /// One character of a longer run of an unspaced script.
    Character,
    /// A run of one character, or a pictograph.
    Lone,
}

impl Kind {
    /// Factor of a query term of this kind. A word and its stem share the weight of one word; the
    /// numbers are the middle of a plateau over English, Japanese, Chinese, Korean and code sets.
    fn weight(self) -> f32 {
        match self {
            Kind::Word { stemmed: true } => 0.3,
            Kind::Stem => 0.7,
            Kind::Joined => 0.8,
            Kind::Character => 0.9,
            Kind::Word { stemmed: false } | Kind::Pair | Kind::Lone => 1.0,
        }
    }

    /// Whether the term lengthens the document: the length of BM25 is the number of words, of parts and joined forms of
    /// identifiers, and of characters in unspaced scripts. Stems and pairs say nothing new.
    pub(crate) fn has_length(self) -> bool {
        // What an identifier gives beside its words counts too: a text that says those words in prose, and so is the closer
        // match for a question in prose, stands above it.
        !matches!(self, Kind::Stem | Kind::Pair)
    }
}

/// Analyses a query: the distinct terms, in order of first occurrence.
///
/// ```
/// use memkura_index::tokens::analyse_query;
///
/// assert_eq!(analyse_query("茶")[0].term, "茶");
/// assert!(analyse_query(" \u{3000}\n!!!").is_empty());
/// ```
#[must_use]
pub fn analyse_query(text: &str) -> Vec<QueryTerm> {
    let mut tally = Tally::default();
    each_term(text, &mut tally);
    let weighted = tally.into_terms().map(|(term, seen)| QueryTerm {
        term,
        weight: seen.kind.weight() * (1.0 + (seen.count as f32).ln()),
        admits: seen.kind != Kind::Character,
    });
    weighted.collect()
}

/// A term as it can be shown to a person: a stem without the mark that keeps it apart from words.
#[must_use]
pub fn shown(term: &str) -> &str {
    term.trim_start_matches(stem::STEM_MARK)
}

/// Takes the terms of a text, one occurrence after another.
pub(crate) trait Sink {
    /// One occurrence of a term, which may be too long: see [`bounded`].
    fn term(&mut self, kind: Kind, term: &str);

    /// One occurrence of a word, or of a part of one, and of its stem.
    fn word(&mut self, word: &str) {
        let stem = stem_term(word);
        self.term(Kind::Word { stemmed: stem.is_some() }, word);
        stem.into_iter().for_each(|stem| self.term(Kind::Stem, &stem));
    }
}

/// The stem of a folded word as a term of its own; `None` for anything but an English-looking word.
pub(crate) fn stem_term(word: &str) -> Option<String> {
    stem::stem(word).map(|stem| format!("{}{stem}", stem::STEM_MARK))
}

/// Gives `sink` every occurrence of every term, in the order of the text.
pub(crate) fn each_term(text: &str, sink: &mut dyn Sink) {
    let folded = fold::normalise(text);
    for run in runs::split(&folded) {
        match run {
            Run::Words(chunk) => words::emit_chunk(chunk, sink),
            Run::Packed(run) => packed::emit_run(run, sink),
            Run::Symbol(symbol) => sink.term(Kind::Lone, symbol),
        }
    }
}

/// A term of [`TERM_BYTES_MAX`] bytes at most that stands for a longer one: its beginning, a mark that no word contains, and
/// the FNV-1a hash of the whole.
pub(crate) fn bounded(term: &str) -> Cow<'_, str> {
    const HASH_DIGITS: usize = 16;
    if term.len() <= TERM_BYTES_MAX {
        return Cow::Borrowed(term);
    }
    let mut keep = TERM_BYTES_MAX - HASH_DIGITS - 1;
    while !term.is_char_boundary(keep) {
        keep -= 1;
    }
    let hash = term
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    Cow::Owned(format!("{}\u{2}{hash:016x}", &term[..keep]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_terms_stay_distinct_and_short() {
        // Two digests with one beginning are two terms, neither over the bound.
        let digests = ["é".repeat(100), "é".repeat(101)];
        let [one, other] = digests.each_ref().map(|digest| bounded(digest));
        assert_ne!(one, other);
        assert!(one.len() <= TERM_BYTES_MAX && other.len() <= TERM_BYTES_MAX);
    }
}
