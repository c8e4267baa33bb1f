//! Counts terms, keeping the order in which they first occur.

use std::collections::HashMap;

use super::{Kind, TERM_BYTES_MAX};

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
    length: u32,
}

impl Tally {
    /// Counts one occurrence.
    pub(super) fn add(&mut self, kind: Kind, term: &str) {
        if kind.has_length() {
            self.length = self.length.saturating_add(1);
        }
        let bounded = (term.len() > TERM_BYTES_MAX).then(|| shorten(term));
        let term = bounded.as_deref().unwrap_or(term);
        if let Some(&place) = self.places.get(term) {
            let seen = &mut self.seen[place];
            seen.count = seen.count.saturating_add(1);
            if seen.kind == Kind::Character {
                seen.kind = kind;
            }
        } else {
            self.places.insert(term.to_owned(), self.seen.len());
            self.seen.push(Seen { kind, count: 1 });
        }
    }

    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// The terms in order of first occurrence.
    pub(super) fn into_terms(self) -> impl Iterator<Item = (String, Seen)> {
        let mut terms: Vec<_> = self.places.into_iter().collect();
        terms.sort_unstable_by_key(|&(_, place)| place);
        terms.into_iter().zip(self.seen).map(|((term, _), seen)| (term, seen))
    }
}

/// A term of [`TERM_BYTES_MAX`] bytes at most that stands for a longer one: its beginning, a mark
/// that no word contains, and the FNV-1a hash of the whole.
fn shorten(term: &str) -> String {
    const HASH_DIGITS: usize = 16;
    let mut keep = TERM_BYTES_MAX - HASH_DIGITS - 1;
    while !term.is_char_boundary(keep) {
        keep -= 1;
    }
    let hash = term
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{}\u{2}{hash:016x}", &term[..keep])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_terms_stay_distinct_and_short() {
        // Two digests with one beginning are two terms, neither over the bound.
        let (one, other) = (shorten(&"é".repeat(100)), shorten(&"é".repeat(101)));
        assert_ne!(one, other);
        assert!(one.len() <= TERM_BYTES_MAX && other.len() <= TERM_BYTES_MAX);
    }

    #[test]
    fn order_is_that_of_first_occurrence() {
        // Nothing depends on hash order.
        let mut tally = Tally::default();
        for term in ["b", "a", "b", "c"] {
            tally.add(Kind::Word, term);
        }
        let terms: Vec<_> = tally.into_terms().map(|(term, seen)| (term, seen.count)).collect();
        assert_eq!(terms, [("b".to_owned(), 2), ("a".to_owned(), 1), ("c".to_owned(), 1)]);
    }
}
