//! The fresh part: documents that can be found the moment they are added.

use super::documents::Documents;
use super::postings::{Posting, TermPostings};
use super::score::saturation;
use super::vocabulary::Vocabulary;
use crate::tokens::{self, Kind, Sink};

/// Texts that are not sealed yet, in memory.
#[derive(Debug, Default)]
pub struct Fresh {
    pub(super) vocabulary: Vocabulary,
    pub(super) documents: Documents,
    /// The documents that have each term, in their order.
    postings: Vec<Vec<Posting>>,
    peaks: Vec<f32>,
    stems: Vec<Stem>,
    /// The terms of the document at hand, one for each occurrence.
    occurrences: Vec<u32>,
}

/// What is known of the stem of a term. Stemming a word takes longer than all else that is done for it.
#[derive(Debug, Clone, Copy, Default)]
enum Stem {
    #[default]
    Unknown,
    None,
    Number(u32),
}

/// What a term takes in memory beside its letters and postings, about.
const TERM_BYTES: usize = 48;

impl Fresh {
    /// Analyses and adds a document.
    pub fn add(&mut self, text: &str) {
        let mut occurrences = std::mem::take(&mut self.occurrences);
        occurrences.clear();
        let mut length = 0;
        let mut counting = Counting {
            vocabulary: &mut self.vocabulary,
            stems: &mut self.stems,
            occurrences: &mut occurrences,
            length: &mut length,
        };
        tokens::each_term(text, &mut counting);
        occurrences.sort_unstable();
        let counted = occurrences.chunk_by(|one, other| one == other);
        self.enter(counted.map(|same| (same[0], u16::try_from(same.len()).unwrap_or(u16::MAX))), length);
        self.occurrences = occurrences;
    }

    /// Adds a document of another part.
    pub fn add_counted<'a>(&mut self, terms: impl Iterator<Item = (&'a str, u16)>, length: u32) {
        let terms: Vec<_> = terms.map(|(term, count)| (self.vocabulary.number(term), count)).collect();
        self.enter(terms.into_iter(), length);
    }

    fn enter(&mut self, terms: impl Iterator<Item = (u32, u16)>, length: u32) {
        let document = self.documents.add(terms, length);
        self.postings.resize_with(self.vocabulary.len(), Vec::new);
        self.peaks.resize(self.vocabulary.len(), 0.0);
        let said = self.documents.get(document);
        for (term, count) in said.terms.iter().zip(said.counts) {
            let (term, saturation) = (*term as usize, saturation(*count, length));
            self.postings[term].push(Posting { document, saturation });
            self.peaks[term] = self.peaks[term].max(saturation);
        }
    }

    /// The documents that have a term.
    pub fn postings(&self, term: u32) -> TermPostings<'_> {
        TermPostings { postings: &self.postings[term as usize], peak: self.peaks[term as usize] }
    }

    /// About how many bytes of memory it takes.
    pub fn footprint(&self) -> usize {
        let postings = size_of::<Posting>() * self.documents.terms.len();
        self.vocabulary.footprint() + TERM_BYTES * self.vocabulary.len() + self.documents.footprint() + postings
    }
}

/// Turns the terms of a text into numbers.
struct Counting<'a> {
    vocabulary: &'a mut Vocabulary,
    stems: &'a mut Vec<Stem>,
    occurrences: &'a mut Vec<u32>,
    length: &'a mut u32,
}

impl Counting<'_> {
    fn count(&mut self, kind: Kind, term: &str) -> u32 {
        if kind.has_length() {
            *self.length = self.length.saturating_add(1);
        }
        let number = self.vocabulary.number(&tokens::bounded(term));
        self.occurrences.push(number);
        number
    }
}

impl Sink for Counting<'_> {
    fn term(&mut self, kind: Kind, term: &str) {
        self.count(kind, term);
    }

    fn word(&mut self, word: &str) {
        let number = self.count(Kind::Word { stemmed: false }, word) as usize;
        if self.stems.len() <= number {
            self.stems.resize(number + 1, Stem::Unknown);
        }
        match self.stems[number] {
            Stem::Number(stem) => self.occurrences.push(stem),
            Stem::None => {}
            Stem::Unknown => {
                let stem = tokens::stem_term(word).map(|stem| self.count(Kind::Stem, &stem));
                self.stems[number] = stem.map_or(Stem::None, Stem::Number);
            }
        }
    }
}
