//! Text to terms: the one analyser behind text search.
//!
//! Documents and queries go through the same steps, so a word finds itself in whatever form it was
//! typed: text is folded ([`fold`]), cut into runs by script ([`runs`]), and each run becomes terms.
//! Words and identifiers are emitted whole and split ([`words`]); scripts that do not put spaces
//! between words become overlapping pairs and single characters ([`packed`]); English words also
//! give their stem ([`stem`]). There is no stop-word list and no query syntax.
//!
//! ```
//! use memkura_index::tokens::{analyse_document, analyse_query};
//!
//! let document = analyse_document("getUserById is slow");
//! let query = analyse_query("user id");
//! assert!(query.iter().all(|asked| document.terms.iter().any(|(term, _)| *term == asked.term)));
//! ```

mod fold;
mod packed;
mod runs;
mod stem;
mod tally;
mod words;

#[cfg(test)]
mod cases;

use runs::Run;
use tally::Tally;

/// Version of the analysis. An index built by another version must be rebuilt.
pub const ANALYSER_VERSION: u32 = 1;

/// Longest term kept as it is, in bytes of UTF-8. A longer one (a key, a digest, a page of one letter)
/// is replaced by a prefix and a hash of the same total size, so that it still finds itself.
/// 64 bytes hold the longest words and paths that people type; it also keeps index keys small.
pub const TERM_BYTES_MAX: usize = 64;

/// Terms of one document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysed {
    /// Each distinct term with the number of times it occurs, in order of first occurrence.
    pub terms: Vec<(String, u32)>,
    /// The document length of BM25: the number of words, of parts and joined forms of identifiers, and of characters in
    /// unspaced scripts. Stems and pairs say nothing new and do not count.
    pub length: u32,
}

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
enum Kind {
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

    /// Whether the term lengthens the document.
    fn has_length(self) -> bool {
        // What an identifier gives beside its words counts too: a text that says those words in prose, and so is the closer
        // match for a question in prose, stands above it.
        !matches!(self, Kind::Stem | Kind::Pair)
    }
}

/// Analyses a document.
///
/// ```
/// use memkura_index::tokens::analyse_document;
///
/// let document = analyse_document("HTTPServer2 and HTTPServer2");
/// assert!(document.terms.contains(&("httpserver2".to_owned(), 2)));
/// assert!(document.length > 3); // an identifier is longer than a word
/// ```
#[must_use]
pub fn analyse_document(text: &str) -> Analysed {
    let mut tally = Tally::default();
    each_term(text, &mut |kind, term| tally.add(kind, term));
    let length = tally.length();
    let terms = tally.into_terms().map(|(term, seen)| (term, seen.count)).collect();
    Analysed { terms, length }
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
    each_term(text, &mut |kind, term| tally.add(kind, term));
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

/// Calls `emit` for every occurrence of every term, in the order of the text.
fn each_term(text: &str, emit: &mut dyn FnMut(Kind, &str)) {
    let folded = fold::normalise(text);
    for run in runs::split(&folded) {
        match run {
            Run::Words(chunk) => words::emit_chunk(chunk, emit),
            Run::Packed(run) => packed::emit_run(run, emit),
            Run::Symbol(symbol) => emit(Kind::Lone, symbol),
        }
    }
}
