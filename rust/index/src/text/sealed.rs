//! The sealed part: texts that no longer change, in memory or in one mapped file.
//!
//! The file is how many there are of each kind, and then all of them, widest numbers first, so that each lies where it can be
//! used as it is.

use std::io::Write;
use std::sync::Arc;

use super::documents::{Documents, are_starts};
use super::postings::{Postings, TermPostings};
use super::vocabulary::Vocabulary;
use crate::mapped::Mapped;
use crate::numbers::Sections;

/// Texts that no longer change.
#[derive(Debug, Default)]
pub struct Sealed {
    pub(super) vocabulary: Vocabulary,
    pub(super) documents: Documents,
    pub(super) postings: Postings,
}

impl Sealed {
    /// Documents, dead ones included.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// About how many bytes of memory it takes, mapped files left out.
    pub fn footprint(&self) -> usize {
        self.vocabulary.footprint() + self.documents.footprint() + self.postings.footprint()
    }

    /// The documents that have a term.
    pub fn postings(&self, term: u32) -> TermPostings<'_> {
        self.postings.get(term)
    }

    /// Writes all of it.
    pub fn write(&self, file: &mut impl Write) -> std::io::Result<()> {
        let Self { vocabulary, documents, postings } = self;
        let head: [u64; 6] = [
            documents.len() as u64,
            vocabulary.len() as u64,
            documents.terms.len() as u64,
            vocabulary.places.len() as u64,
            vocabulary.letters.len() as u64,
            vocabulary.seed,
        ];
        let sections: [&[u8]; 11] = [
            bytemuck::cast_slice(&head),
            bytemuck::cast_slice(&documents.starts),
            bytemuck::cast_slice(&postings.starts),
            bytemuck::cast_slice(&vocabulary.ends),
            bytemuck::cast_slice(&postings.all),
            bytemuck::cast_slice(&documents.terms),
            bytemuck::cast_slice(&documents.lengths),
            bytemuck::cast_slice(&postings.peaks),
            bytemuck::cast_slice(&vocabulary.places),
            bytemuck::cast_slice(&documents.counts),
            &vocabulary.letters,
        ];
        sections.into_iter().try_for_each(|section| file.write_all(section))
    }

    /// The part that was written to `file`; `None` when its sections do not add up, or make no sense.
    pub fn read(file: Mapped) -> Option<Self> {
        let mut sections = Sections::of(file);
        let head = sections.next::<u64>(6)?;
        let [documents, terms, occurrences, places, letters, seed] = head.first_chunk().copied()?;
        let document_starts = sections.next(documents.checked_add(1)?)?;
        let term_starts = sections.next(terms.checked_add(1)?)?;
        let ends = sections.next(terms)?;
        let all = sections.next(occurrences)?;
        let document_terms = sections.next(occurrences)?;
        let lengths = sections.next(documents)?;
        let peaks = sections.next(terms)?;
        let places = sections.next(places)?;
        let counts = sections.next(occurrences)?;
        let letters = sections.next(letters)?;
        let sealed = Self {
            vocabulary: Vocabulary { letters, ends, places, seed },
            documents: Documents { starts: document_starts, terms: document_terms, counts, lengths },
            postings: Postings { starts: term_starts, all, peaks },
        };
        let is_sound = sections.are_read()
            && sealed.vocabulary.is_sound()
            && sealed.documents.is_sound()
            && are_starts(&sealed.postings.starts, sealed.postings.all.len());
        is_sound.then_some(sealed)
    }
}

/// The texts to seal: both parts as they are, and which documents live.
#[derive(Debug)]
pub struct ToSeal {
    pub(super) sealed: Arc<Sealed>,
    pub(super) vocabulary: Vocabulary,
    pub(super) documents: Documents,
    /// The live documents, in the order of ordinals.
    pub(super) wanted: Vec<u32>,
}

impl ToSeal {
    /// One part of the live documents, with no term that only others have.
    pub fn seal(self) -> Sealed {
        const UNKNOWN: u32 = u32::MAX;
        let mut vocabulary = Vocabulary::default();
        let mut documents = Documents::default();
        let parts = [(&self.sealed.vocabulary, &self.sealed.documents), (&self.vocabulary, &self.documents)];
        let mut numbers = parts.map(|(terms, _)| vec![UNKNOWN; terms.len()]);
        let sealed = self.sealed.len() as u32;
        for document in self.wanted {
            let (at, document) = if document < sealed { (0, document) } else { (1, document - sealed) };
            let ((terms, from), numbers) = (parts[at], &mut numbers[at]);
            let said = from.get(document);
            let renumbered = said.terms.iter().zip(said.counts).filter_map(|(term, count)| {
                // A document that a stranger made may have terms that are none.
                let number = numbers.get_mut(*term as usize)?;
                if *number == UNKNOWN {
                    *number = vocabulary.number(terms.term(*term));
                }
                Some((*number, *count))
            });
            documents.add(renumbered, said.length);
        }
        let postings = Postings::of(&documents, vocabulary.len());
        Sealed { vocabulary, documents, postings }
    }
}
