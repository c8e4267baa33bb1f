//! Where each term occurs.

use bytemuck::{Pod, Zeroable};

use super::documents::Documents;
use super::score::saturation;
use crate::numbers::Numbers;

/// That a document has a term, and how much of the term's worth that gives it.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Posting {
    pub document: u32,
    pub saturation: f32,
}

/// The postings of all terms, term after term, each list in the order of documents.
#[derive(Debug, Clone)]
pub struct Postings {
    /// Where the list of each term begins, and at last where those of all end.
    pub(super) starts: Numbers<u64>,
    pub(super) all: Numbers<Posting>,
    /// The largest saturation in each list.
    pub(super) peaks: Numbers<f32>,
}

impl Default for Postings {
    fn default() -> Self {
        Self { starts: Numbers::Owned(vec![0]), all: Numbers::default(), peaks: Numbers::default() }
    }
}

/// The documents that have one term, and the most of its worth that any of them gets.
#[derive(Debug, Clone, Copy, Default)]
pub struct TermPostings<'a> {
    pub postings: &'a [Posting],
    pub peak: f32,
}

impl Postings {
    /// Turns around what `documents` say, which has terms up to number `terms`.
    pub fn of(documents: &Documents, terms: usize) -> Self {
        let mut starts = vec![0_u64; terms + 1];
        for term in &*documents.terms {
            starts[*term as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut ends: Vec<usize> = starts[..terms].iter().map(|start| *start as usize).collect();
        let mut postings = vec![Posting::zeroed(); documents.terms.len()];
        let mut peaks = vec![0.0_f32; terms];
        for document in 0..documents.len() as u32 {
            let said = documents.get(document);
            for (term, count) in said.terms.iter().zip(said.counts) {
                let (term, saturation) = (*term as usize, saturation(*count, said.length));
                postings[ends[term]] = Posting { document, saturation };
                ends[term] += 1;
                peaks[term] = peaks[term].max(saturation);
            }
        }
        Self { starts: Numbers::Owned(starts), all: Numbers::Owned(postings), peaks: Numbers::Owned(peaks) }
    }

    /// Those of one term.
    pub fn get(&self, term: u32) -> TermPostings<'_> {
        let (starts, at) = (&*self.starts, term as usize);
        TermPostings { postings: &self.all[starts[at] as usize..starts[at + 1] as usize], peak: self.peaks[at] }
    }

    /// About how many bytes of memory they take, mapped files left out.
    pub fn footprint(&self) -> usize {
        self.starts.footprint() + self.all.footprint() + self.peaks.footprint()
    }

    /// How many postings each term has.
    pub fn counts(&self) -> Vec<u32> {
        self.starts.windows(2).map(|ends| (ends[1] - ends[0]) as u32).collect()
    }
}
