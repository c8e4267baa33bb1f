//! The posting table: documents that can be found the moment they are added.

use std::collections::HashMap;

/// Postings of documents that are not sealed yet, in memory.
#[derive(Debug, Default)]
pub struct Fresh {
    terms: HashMap<Box<str>, Vec<(u32, u32)>>,
    documents: usize,
    postings: usize,
}

/// What a term takes in memory beside its postings, about.
const TERM_BYTES: usize = 96;

impl Fresh {
    /// Adds a document: each of its terms with its frequency. Ordinals only grow.
    pub fn add(&mut self, ordinal: u32, terms: &[(String, u32)]) {
        self.postings += terms.len();
        for (term, frequency) in terms {
            match self.terms.get_mut(term.as_str()) {
                Some(postings) => postings.push((ordinal, *frequency)),
                None => {
                    self.terms.insert(term.as_str().into(), vec![(ordinal, *frequency)]);
                }
            }
        }
        self.documents += 1;
    }

    /// About how many bytes of memory it takes.
    pub fn footprint(&self) -> usize {
        self.postings * size_of::<(u32, u32)>() + self.terms.len() * TERM_BYTES
    }

    /// Documents added, dead ones included.
    pub fn documents(&self) -> usize {
        self.documents
    }

    /// Calls `each` with the ordinal and frequency of every document that has `term`, in the order of ordinals.
    pub fn walk(&self, term: &str, each: &mut dyn FnMut(u32, u32)) {
        for &(ordinal, frequency) in self.terms.get(term).into_iter().flatten() {
            each(ordinal, frequency);
        }
    }

    /// Calls `each` with every term and its postings, in no particular order.
    pub fn terms(&self) -> impl Iterator<Item = (&str, &[(u32, u32)])> {
        self.terms.iter().map(|(term, postings)| (&**term, postings.as_slice()))
    }
}
