//! What each document says: its terms with their numbers of occurrences, side by side in one row for all documents.

use crate::numbers::Numbers;

/// The terms of documents, which are only added.
#[derive(Debug, Clone)]
pub struct Documents {
    /// Where the terms of each document begin, and at last where those of all end.
    pub(super) starts: Numbers<u64>,
    pub(super) terms: Numbers<u32>,
    pub(super) counts: Numbers<u16>,
    /// The length of each document in tokens.
    pub(super) lengths: Numbers<u32>,
}

/// The terms of one document: their numbers in no order, how often each occurs, and the document's length in tokens.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub terms: &'a [u32],
    pub counts: &'a [u16],
    pub length: u32,
}

/// The documents as they are now: where their numbers lie is found out once.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllDocuments<'a> {
    starts: &'a [u64],
    terms: &'a [u32],
    counts: &'a [u16],
    lengths: &'a [u32],
}

impl<'a> AllDocuments<'a> {
    /// One of them.
    pub fn get(&self, document: u32) -> Document<'a> {
        let at = document as usize;
        let span = self.starts[at] as usize..self.starts[at + 1] as usize;
        Document { terms: &self.terms[span.clone()], counts: &self.counts[span], length: self.lengths[at] }
    }
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            starts: Numbers::Owned(vec![0]),
            terms: Numbers::default(),
            counts: Numbers::default(),
            lengths: Numbers::default(),
        }
    }
}

impl Documents {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// One of them.
    pub fn get(&self, document: u32) -> Document<'_> {
        self.all().get(document)
    }

    /// All of them, for whoever reads many.
    pub fn all(&self) -> AllDocuments<'_> {
        AllDocuments { starts: &self.starts, terms: &self.terms, counts: &self.counts, lengths: &self.lengths }
    }

    /// Adds a document. Returns its number.
    pub fn add(&mut self, terms: impl IntoIterator<Item = (u32, u16)>, length: u32) -> u32 {
        let (numbers, counts) = (self.terms.to_mut(), self.counts.to_mut());
        for (term, count) in terms {
            numbers.push(term);
            counts.push(count);
        }
        let end = numbers.len() as u64;
        self.starts.to_mut().push(end);
        self.lengths.to_mut().push(length);
        self.lengths.len() as u32 - 1
    }

    /// About how many bytes of memory they take, mapped files left out.
    pub fn footprint(&self) -> usize {
        self.starts.footprint() + self.terms.footprint() + self.counts.footprint() + self.lengths.footprint()
    }

    /// Whether parts out of a file fit each other.
    pub fn is_sound(&self) -> bool {
        are_starts(&self.starts, self.terms.len()) && self.counts.len() == self.terms.len()
    }
}

/// Whether rising numbers part a row of `count` into pieces.
pub fn are_starts(starts: &[u64], count: usize) -> bool {
    starts.first() == Some(&0) && starts.last() == Some(&(count as u64)) && starts.is_sorted()
}
