//! Both parts as one index: documents go in and out.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::asked::AskedTerm;
use super::documents::Document;
use super::fresh::Fresh;
use super::postings::Posting;
use super::sealed::{Sealed, ToSeal};
use super::vocabulary::Vocabulary;

/// Stands for "no document" and "no ordinal".
pub(super) const NONE: u32 = u32::MAX;

/// The two parts, by their places in pairs.
pub(super) const SEALED: usize = 0;
pub(super) const FRESH: usize = 1;

/// The text index of one partition.
///
/// A document is one text version of one memory. Documents have numbers of their own, first the sealed ones and then the
/// fresh ones; a document whose memory has moved on to another is dead and is passed over.
#[derive(Debug, Default)]
pub struct TextIndex {
    pub(super) sealed: Arc<Sealed>,
    pub(super) fresh: Fresh,
    /// How many live documents have each term, part by part.
    frequencies: [Vec<u32>; 2],
    /// The memory of each document.
    owners: Vec<u32>,
    /// The live document of each memory.
    current: Vec<u32>,
    live: usize,
    /// Terms of fresh documents that are dead.
    wasted: usize,
}

/// A text as it was analysed: its terms with their numbers of occurrences, in the order of terms, and its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysed<'a> {
    pub terms: Vec<(&'a str, u16)>,
    pub length: u32,
}

impl TextIndex {
    /// An index over a sealed part, of which memory `n` owns document `n`.
    #[must_use]
    pub fn of_snapshot(sealed: Sealed) -> Self {
        let numbers = || (0..sealed.len() as u32).collect();
        Self {
            frequencies: [sealed.postings.counts(), Vec::new()],
            owners: numbers(),
            current: numbers(),
            live: sealed.len(),
            sealed: Arc::new(sealed),
            fresh: Fresh::default(),
            wasted: 0,
        }
    }

    /// What is there, with `sealed` in the place of both parts: `document_of` says which of its documents a memory has, in
    /// the order of memories. Texts that are not in it stay fresh.
    #[must_use]
    pub fn resealed(&self, sealed: Arc<Sealed>, document_of: &mut dyn FnMut(u32) -> Option<u32>) -> Self {
        let documents = sealed.len();
        let mut next = Self {
            frequencies: [sealed.postings.counts(), Vec::new()],
            owners: vec![NONE; documents],
            current: vec![NONE; self.current.len()],
            live: 0,
            sealed,
            fresh: Fresh::default(),
            wasted: 0,
        };
        for ordinal in 0..self.current.len() as u32 {
            let Some(document) = self.document(ordinal) else { continue };
            if let Some(sealed) = document_of(ordinal) {
                next.owners[sealed as usize] = ordinal;
                next.current[ordinal as usize] = sealed;
                next.live += 1;
            } else {
                let (vocabulary, said) = self.read(document);
                let terms = said.terms.iter().zip(said.counts);
                next.fresh.add_counted(terms.map(|(term, count)| (vocabulary.term(*term), *count)), said.length);
                next.own(ordinal);
            }
        }
        (0..documents as u32).filter(|at| next.owners[*at as usize] == NONE).for_each(|dead| {
            uncount(&mut next.frequencies[SEALED], next.sealed.documents.get(dead));
        });
        next
    }

    /// Gives memory `ordinal` this text in place of any it had.
    pub fn put(&mut self, ordinal: u32, text: &str) {
        self.remove(ordinal);
        self.fresh.add(text);
        self.own(ordinal);
    }

    /// Takes memory `ordinal` out.
    pub fn remove(&mut self, ordinal: u32) {
        let Some(document) = self.document(ordinal) else { return };
        self.current[ordinal as usize] = NONE;
        self.live -= 1;
        match self.place(document) {
            (SEALED, at) => uncount(&mut self.frequencies[SEALED], self.sealed.documents.get(at)),
            (_, at) => {
                let dead = self.fresh.documents.get(at);
                self.wasted += dead.terms.len();
                uncount(&mut self.frequencies[FRESH], dead);
            }
        }
    }

    /// How many terms of dead documents the fresh part holds, and how many of all documents the sealed one does.
    #[must_use]
    pub fn wasted(&self) -> (usize, usize) {
        (self.wasted, self.sealed.documents.terms.len())
    }

    /// About how many bytes of memory it takes, mapped files left out.
    #[must_use]
    pub fn footprint(&self) -> usize {
        let numbers = self.frequencies.iter().map(Vec::len).sum::<usize>() + self.owners.len() + self.current.len();
        self.sealed.footprint() + self.fresh.footprint() + 4 * numbers
    }

    /// Documents in the fresh part, and in the sealed one, dead ones included.
    #[must_use]
    pub fn parts(&self) -> (usize, usize) {
        (self.fresh.documents.len(), self.sealed.len())
    }

    /// Memories that have a text.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// One more than the largest ordinal that was ever given a text.
    pub(super) fn ordinals(&self) -> usize {
        self.current.len()
    }

    /// How many live documents have a term, by its numbers in both parts.
    pub(super) fn frequency(&self, numbers: [Option<u32>; 2]) -> usize {
        let one = |part: usize| numbers[part].map_or(0, |number| self.frequencies[part][number as usize]);
        (one(SEALED) + one(FRESH)) as usize
    }

    /// The live document of a memory.
    pub(super) fn document(&self, ordinal: u32) -> Option<u32> {
        self.current.get(ordinal as usize).copied().filter(|document| *document != NONE)
    }

    /// The memory that a live document belongs to.
    pub(super) fn owner(&self, document: u32) -> Option<u32> {
        let ordinal = *self.owners.get(document as usize)?;
        (self.current.get(ordinal as usize) == Some(&document)).then_some(ordinal)
    }

    /// The part in which a document lies, and its number there.
    pub(super) fn place(&self, document: u32) -> (usize, u32) {
        let sealed = self.sealed.len() as u32;
        if document < sealed { (SEALED, document) } else { (FRESH, document - sealed) }
    }

    /// The documents that have a term of a query.
    pub(super) fn documents_of(&self, term: &AskedTerm<'_>) -> impl Iterator<Item = u32> {
        let lists = [SEALED, FRESH].into_iter().zip(term.lists);
        lists.flat_map(|(part, list)| self.postings_of(part, list.postings).map(|(document, _)| document))
    }

    /// The documents of postings of one part, with what these give them.
    pub(super) fn postings_of(&self, part: usize, postings: &[Posting]) -> impl Iterator<Item = (u32, f32)> {
        let (base, documents) = self.span(part);
        let postings = postings.iter().filter(move |posting| posting.document < documents);
        postings.map(move |posting| (base + posting.document, posting.saturation))
    }

    /// The number of the first document of a part, and how many it has. The postings of a part that a stranger made may name
    /// documents that it does not have.
    pub(super) fn span(&self, part: usize) -> (u32, u32) {
        let sealed = self.sealed.len() as u32;
        if part == SEALED { (0, sealed) } else { (sealed, self.fresh.documents.len() as u32) }
    }

    /// A document, with the vocabulary of its part.
    fn read(&self, document: u32) -> (&Vocabulary, Document<'_>) {
        match self.place(document) {
            (SEALED, at) => (&self.sealed.vocabulary, self.sealed.documents.get(at)),
            (_, at) => (&self.fresh.vocabulary, self.fresh.documents.get(at)),
        }
    }

    /// Tokens of a memory's live text.
    #[must_use]
    pub fn length(&self, ordinal: u32) -> u32 {
        self.document(ordinal).map_or(0, |document| self.read(document).1.length)
    }

    /// The live text of a memory, as it was analysed.
    #[must_use]
    pub fn analysed(&self, ordinal: u32) -> Option<Analysed<'_>> {
        let (vocabulary, said) = self.read(self.document(ordinal)?);
        let terms = said.terms.iter().zip(said.counts).map(|(term, count)| (vocabulary.term(*term), *count));
        let mut terms: Vec<_> = terms.collect();
        terms.sort_unstable();
        Some(Analysed { terms, length: said.length })
    }

    /// A copy of the texts of `ordinals`, to be sealed. What is sealed already is shared.
    #[must_use]
    pub fn to_seal(&self, ordinals: &RoaringBitmap) -> ToSeal {
        ToSeal {
            sealed: Arc::clone(&self.sealed),
            vocabulary: self.fresh.vocabulary.clone(),
            documents: self.fresh.documents.clone(),
            wanted: ordinals.iter().filter_map(|ordinal| self.document(ordinal)).collect(),
        }
    }

    /// Makes the document that was just added the text of a memory that has none.
    fn own(&mut self, ordinal: u32) {
        self.frequencies[FRESH].resize(self.fresh.vocabulary.len(), 0);
        let document = self.fresh.documents.len() as u32 - 1;
        for term in self.fresh.documents.get(document).terms {
            self.frequencies[FRESH][*term as usize] += 1;
        }
        if self.current.len() <= ordinal as usize {
            self.current.resize(ordinal as usize + 1, NONE);
        }
        self.current[ordinal as usize] = self.owners.len() as u32;
        self.owners.push(ordinal);
        self.live += 1;
    }
}

/// Takes a document that died out of the frequencies of its terms.
fn uncount(frequencies: &mut [u32], dead: Document<'_>) {
    for term in dead.terms {
        // A document that a stranger made may have terms that are none, or one twice.
        if let Some(frequency) = frequencies.get_mut(*term as usize) {
            *frequency = frequency.saturating_sub(1);
        }
    }
}
