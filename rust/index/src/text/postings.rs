//! Both parts as one index: documents go in and out, a search walks both.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::fresh::Fresh;
use super::score::{NEIGHBOUR_SHARES, QUERY_TERMS_MAX, TermShare, TextScores, density, openness, share, worth};
use super::sealed::Sealed;
use crate::IndexError;
use crate::bits::Bits;
use crate::sessions::Sessions;
use crate::tokens::{self, Analysed, QueryTerm};

/// Stands for "no document" and "no ordinal".
const NONE: u32 = u32::MAX;

/// The text index of one partition.
///
/// A document is one text version of one memory. Documents have numbers of their own, first the sealed ones and then the
/// fresh ones; a document whose memory has moved on to another is dead and is passed over.
#[derive(Debug, Default)]
pub struct TextIndex {
    sealed: Option<Sealed>,
    fresh: Fresh,
    /// The memory of each document.
    owners: Vec<u32>,
    /// Tokens of each document.
    lengths: Vec<u32>,
    /// The live document of each memory.
    current: Vec<u32>,
    live: usize,
}

impl TextIndex {
    /// An index over a sealed part, whose documents are dead until [`TextIndex::adopt`] claims them.
    #[must_use]
    pub fn with_sealed(sealed: Sealed) -> Self {
        let lengths: Vec<u32> = sealed.documents().iter().map(|document| document.length).collect();
        Self { owners: vec![NONE; lengths.len()], lengths, sealed: Some(sealed), ..Self::default() }
    }

    /// An index over a sealed part, of which memory `n` owns document `n`.
    #[must_use]
    pub fn of_snapshot(sealed: Sealed) -> Self {
        let documents = sealed.documents().len();
        let numbers = || (0..documents as u32).collect();
        Self { owners: numbers(), current: numbers(), live: documents, ..Self::with_sealed(sealed) }
    }

    /// Lets memory `ordinal` own sealed document number `document`.
    pub fn adopt(&mut self, ordinal: u32, document: u32) {
        self.owners[document as usize] = ordinal;
        self.own(ordinal, document);
    }

    /// Gives memory `ordinal` this text in place of any it had.
    pub fn put(&mut self, ordinal: u32, text: &Analysed) {
        let document = self.owners.len() as u32;
        self.owners.push(ordinal);
        self.lengths.push(text.length);
        self.fresh.add(document, &text.terms);
        self.own(ordinal, document);
    }

    /// Takes memory `ordinal` out.
    pub fn remove(&mut self, ordinal: u32) {
        if let Some(current) = self.current.get_mut(ordinal as usize)
            && std::mem::replace(current, NONE) != NONE
        {
            self.live -= 1;
        }
    }

    /// About how many bytes of memory it takes, mapped files left out.
    #[must_use]
    pub fn footprint(&self) -> usize {
        let documents = self.sealed.as_ref().map_or(0, |sealed| size_of_val(sealed.documents()));
        documents + self.fresh.footprint() + 4 * (self.owners.len() + self.lengths.len() + self.current.len())
    }

    /// Documents in the fresh part, and in the sealed one, dead ones included.
    #[must_use]
    pub fn parts(&self) -> (usize, usize) {
        (self.fresh.documents(), self.sealed.as_ref().map_or(0, |sealed| sealed.documents().len()))
    }

    /// Scores every memory of `mask` that shares a term with the query.
    ///
    /// With `sessions`, a memory also has a share in the words of the turns around it, so far as those are in `mask`.
    ///
    /// # Errors
    /// When the sealed part cannot be read.
    pub fn search(
        &self,
        query: Vec<QueryTerm>,
        mask: &Bits,
        sessions: Option<&Sessions>,
    ) -> Result<TextScores, IndexError> {
        let mut found = TextScores { scores: vec![0.0; self.current.len()], ..TextScores::default() };
        let mut admitted = Bits::default();
        let mut matches = Vec::new();
        let mut spread = Spread::new(sessions, self.current.len());
        for term in self.telling(query)? {
            let frequency = self.matches(&term.term, mask, &mut matches)?;
            let worth = worth(term.weight, self.live, frequency);
            found.mass += worth;
            spread.over_neighbours(&mut matches, mask, |ordinal| self.length(ordinal));
            for &(ordinal, density) in &matches {
                found.scores[ordinal as usize] += share(worth, density);
                if term.admits && admitted.insert(ordinal) {
                    found.admitted.push(ordinal);
                }
            }
        }
        Ok(found)
    }

    /// What each term of the query gives to the score of `ordinal`.
    ///
    /// # Errors
    /// When the sealed part cannot be read.
    pub fn shares(
        &self,
        query: Vec<QueryTerm>,
        ordinal: u32,
        mask: &Bits,
        sessions: Option<&Sessions>,
    ) -> Result<Vec<TermShare>, IndexError> {
        let mut shares = Vec::new();
        let mut matches = Vec::new();
        let mut spread = Spread::new(sessions, self.current.len());
        for term in self.telling(query)? {
            let document_frequency = self.matches(&term.term, mask, &mut matches)?;
            spread.over_neighbours(&mut matches, mask, |ordinal| self.length(ordinal));
            if let Some((_, density)) = matches.iter().find(|(at, _)| *at == ordinal) {
                let score = share(worth(term.weight, self.live, document_frequency), *density);
                shares.push(TermShare { term: tokens::shown(&term.term).to_owned(), document_frequency, score });
            }
        }
        Ok(shares)
    }

    /// The texts of the memories in `wanted` that are live, as they were analysed, in the order of ordinals.
    ///
    /// # Errors
    /// When the sealed part cannot be read.
    pub fn extract(&self, wanted: &RoaringBitmap) -> Result<Vec<(u32, Analysed)>, IndexError> {
        let is_wanted = |document: u32| self.owner(document).is_some_and(|ordinal| wanted.contains(ordinal));
        let mut texts = match &self.sealed {
            Some(sealed) => sealed.forward(&is_wanted)?,
            None => BTreeMap::new(),
        };
        for (term, postings) in self.fresh.terms() {
            for &(document, frequency) in postings.iter().filter(|(document, _)| is_wanted(*document)) {
                texts.entry(document).or_default().push((term.to_owned(), frequency));
            }
        }
        let live = wanted.iter().filter_map(|ordinal| Some((ordinal, *self.current.get(ordinal as usize)?)));
        let extracted = live.filter(|(_, document)| *document != NONE).map(|(ordinal, document)| {
            let mut terms = texts.remove(&document).unwrap_or_default();
            terms.sort_unstable();
            (ordinal, Analysed { terms, length: self.lengths[document as usize] })
        });
        Ok(extracted.collect())
    }

    fn own(&mut self, ordinal: u32, document: u32) {
        if self.current.len() <= ordinal as usize {
            self.current.resize(ordinal as usize + 1, NONE);
        }
        if std::mem::replace(&mut self.current[ordinal as usize], document) == NONE {
            self.live += 1;
        }
    }

    /// The memory that a live document belongs to.
    fn owner(&self, document: u32) -> Option<u32> {
        // The postings of a sealed part that a stranger made may name documents that it does not have.
        let ordinal = *self.owners.get(document as usize)?;
        (self.current.get(ordinal as usize) == Some(&document)).then_some(ordinal)
    }

    /// Tokens of a memory's live text.
    pub fn length(&self, ordinal: u32) -> u32 {
        self.lengths[self.current[ordinal as usize] as usize]
    }

    /// The terms to score: all of a query's, or the rarest of a very long one, in query order.
    fn telling(&self, query: Vec<QueryTerm>) -> Result<Vec<QueryTerm>, IndexError> {
        if query.len() <= QUERY_TERMS_MAX {
            return Ok(query);
        }
        let mut counted = Vec::with_capacity(query.len());
        for (at, term) in query.iter().enumerate() {
            let mut frequency = 0_usize;
            self.walk(&term.term, &mut |_, _| frequency += 1)?;
            if frequency > 0 {
                counted.push((frequency, at));
            }
        }
        counted.sort_unstable();
        counted.truncate(QUERY_TERMS_MAX);
        let chosen: std::collections::BTreeSet<usize> = counted.into_iter().map(|(_, at)| at).collect();
        Ok(query.into_iter().enumerate().filter(|(at, _)| chosen.contains(at)).map(|(_, term)| term).collect())
    }

    /// Puts into `matches` the memories of `mask` that have `term`, each with the term's density. Returns how many
    /// memories have it in all.
    fn matches(&self, term: &str, mask: &Bits, matches: &mut Vec<(u32, f32)>) -> Result<usize, IndexError> {
        matches.clear();
        let mut frequency_in_all = 0;
        self.walk(term, &mut |ordinal, frequency| {
            frequency_in_all += 1;
            if mask.contains(ordinal) {
                matches.push((ordinal, density(frequency, self.length(ordinal))));
            }
        })?;
        Ok(frequency_in_all)
    }

    /// Calls `each` with the memory and frequency of every live document that has `term`.
    fn walk(&self, term: &str, each: &mut dyn FnMut(u32, u32)) -> Result<(), IndexError> {
        let mut live = |document: u32, frequency: u32| {
            if let Some(ordinal) = self.owner(document) {
                each(ordinal, frequency);
            }
        };
        if let Some(sealed) = &self.sealed {
            sealed.walk(term, &mut live)?;
        }
        self.fresh.walk(term, &mut live);
        Ok(())
    }
}

/// Lends the words of turns to the turns around them.
struct Spread<'a> {
    sessions: Option<&'a Sessions>,
    /// Density by ordinal for the term at hand; all zero between terms.
    densities: Vec<f32>,
}

impl<'a> Spread<'a> {
    fn new(sessions: Option<&'a Sessions>, ordinals: usize) -> Self {
        let sessions = sessions.filter(|sessions| !sessions.is_empty());
        Self { sessions, densities: if sessions.is_some() { vec![0.0; ordinals] } else { Vec::new() } }
    }

    /// Adds to `matches` what the memories of `mask` have of the term through their neighbours; sorted by ordinal.
    fn over_neighbours(&mut self, matches: &mut Vec<(u32, f32)>, mask: &Bits, length: impl Fn(u32) -> u32) {
        let Some(sessions) = self.sessions else { return };
        let mut reached: Vec<u32> = Vec::with_capacity(matches.len());
        // In the order of ordinals, whichever part a document lies in: sums of floats depend on their order.
        matches.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        for &(ordinal, density) in matches.iter() {
            reached.push(ordinal);
            self.densities[ordinal as usize] += density;
            sessions.neighbours(
                ordinal,
                |turn| mask.contains(turn),
                |turn, distance| {
                    reached.push(turn);
                    self.densities[turn as usize] += density * NEIGHBOUR_SHARES[distance - 1] * openness(length(turn));
                },
            );
        }
        reached.sort_unstable();
        reached.dedup();
        matches.clear();
        for ordinal in reached {
            matches.push((ordinal, std::mem::take(&mut self.densities[ordinal as usize])));
        }
    }
}
