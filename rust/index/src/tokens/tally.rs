//! Counts terms, keeping the order in which they first occur.

use std::collections::HashMap;

use super::{Kind, Sink, bounded};

/// How often a term was seen, and as what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The strongest kind: a term that was admitted once stays admitted.
    pub(super) kind: Kind,
    pub(super) count: u32,
}

/// Distinct terms so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    places: HashMap<String, usize>,
    seen: Vec<Seen>,
}

impl Tally {
    /// The terms in order of first occurrence.
    pub(super) fn into_terms(self) -> impl Iterator<Item = (String, Seen)> {
        let mut terms: Vec<_> = self.places.into_iter().collect();
        terms.sort_unstable_by_key(|&(_, place)| place);
        terms.into_iter().zip(self.seen).map(|((term, _), seen)| (term, seen))
    }
}

impl Sink for Tally {
    fn term(&mut self, kind: Kind, term: &str) {
        let term = bounded(term);
        if let Some(&place) = self.places.get(&*term) {
            let seen = &mut self.seen[place];
            seen.count = seen.count.saturating_add(1);
            if seen.kind == Kind::Character {
                seen.kind = kind;
            }
        } else {
            self.places.insert(term.into_owned(), self.seen.len());
            self.seen.push(Seen { kind, count: 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_first_occurrence() {
        // Nothing depends on hash order.
        let mut tally = Tally::default();
        for term in ["b", "a", "b", "c"] {
            tally.term(Kind::Lone, term);
        }
        let terms: Vec<_> = tally.into_terms().map(|(term, seen)| (term, seen.count)).collect();
        assert_eq!(terms, [("b".to_owned(), 2), ("a".to_owned(), 1), ("c".to_owned(), 1)]);
    }
}
