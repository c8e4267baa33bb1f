//! Terms and their numbers.

use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::numbers::Numbers;

/// The terms of one part of the index, numbered in the order in which they came: their letters in one row, and an open
/// hash table of the numbers (Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithm L). All of it can be
/// mapped from a file as it is, so that opening looks no term up and copies none.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    pub(super) letters: Numbers<u8>,
    /// Where the letters of each term end.
    pub(super) ends: Numbers<u64>,
    /// A power of two of places, at least twice as many as there are terms: 0, or a term's number and one.
    pub(super) places: Numbers<u32>,
    /// Chosen anew for each vocabulary, so that nobody can write texts whose terms all want one place.
    pub(super) seed: u64,
}

const PLACES_MIN: usize = 16;

impl Default for Vocabulary {
    fn default() -> Self {
        Self {
            letters: Numbers::default(),
            ends: Numbers::default(),
            places: Numbers::Owned(vec![0; PLACES_MIN]),
            seed: RandomState::new().hash_one(()),
        }
    }
}

impl Vocabulary {
    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The term with this number; empty when there is none.
    pub fn term(&self, number: u32) -> &str {
        // Letters out of a file may end within a character.
        std::str::from_utf8(spelled(&self.letters, &self.ends, number)).unwrap_or_default()
    }

    /// The number of a term.
    pub fn find(&self, term: &str) -> Option<u32> {
        self.place(term).ok()
    }

    /// The number of a term, which is added if it is new.
    pub fn number(&mut self, term: &str) -> u32 {
        let place = match self.place(term) {
            Ok(number) => return number,
            Err(place) => place,
        };
        let number = self.ends.len() as u32;
        self.places.to_mut()[place] = number + 1;
        self.letters.to_mut().extend_from_slice(term.as_bytes());
        let end = self.letters.len() as u64;
        self.ends.to_mut().push(end);
        if 2 * self.ends.len() > self.places.len() {
            self.grow();
        }
        number
    }

    /// The number of `term`, or the place where it belongs.
    fn place(&self, term: &str) -> Result<u32, usize> {
        let (letters, ends, places) = (&*self.letters, &*self.ends, &*self.places);
        let mut at = xxh3_64_with_seed(term.as_bytes(), self.seed) as usize & (places.len() - 1);
        // A table that a stranger filled may have no free place.
        for _ in 0..places.len() {
            match places[at] {
                0 => return Err(at),
                number if spelled(letters, ends, number - 1) == term.as_bytes() => return Ok(number - 1),
                _ => at = (at + 1) & (places.len() - 1),
            }
        }
        Err(at)
    }

    fn grow(&mut self) {
        self.places = Numbers::Owned(vec![0; 2 * self.places.len()]);
        for number in 0..self.ends.len() as u32 {
            if let Err(place) = self.place(self.term(number)) {
                self.places.to_mut()[place] = number + 1;
            }
        }
    }

    /// About how many bytes of memory it takes, mapped files left out.
    pub fn footprint(&self) -> usize {
        self.letters.footprint() + self.ends.footprint() + self.places.footprint()
    }

    /// Whether parts out of a file can be those of a vocabulary.
    pub fn is_sound(&self) -> bool {
        let letters = self.letters.len() as u64;
        self.places.len().is_power_of_two()
            && self.ends.is_sorted()
            && self.ends.last().is_none_or(|end| *end == letters)
            && std::str::from_utf8(&self.letters).is_ok()
    }
}

/// The letters of a term; none where there is no such term.
fn spelled<'a>(letters: &'a [u8], ends: &[u64], number: u32) -> &'a [u8] {
    let at = number as usize;
    let start = if at == 0 { Some(0) } else { ends.get(at - 1).map(|end| *end as usize) };
    let letters = start.zip(ends.get(at)).and_then(|(start, end)| letters.get(start..*end as usize));
    letters.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every term has one number, which leads back to it, however many there are.
    #[test]
    fn terms_keep_their_numbers() {
        let mut vocabulary = Vocabulary::default();
        let terms: Vec<String> = (0..1_000).map(|at| format!("t{at}")).chain([String::new(), "冷蔵".into()]).collect();
        for (term, number) in terms.iter().zip(0..) {
            assert_eq!(vocabulary.find(term), None);
            assert_eq!((vocabulary.number(term), vocabulary.number(term)), (number, number));
        }
        assert!(terms.iter().zip(0..).all(|(term, number)| vocabulary.find(term) == Some(number)));
        assert!(terms.iter().zip(0..).all(|(term, number)| vocabulary.term(number) == term));
        assert_eq!((vocabulary.len(), vocabulary.term(2_000), vocabulary.is_sound()), (1_002, "", true));
    }

    /// A table that a stranger filled ends every search.
    #[test]
    fn full_table_is_searched_to_its_end() {
        let vocabulary = Vocabulary { places: Numbers::Owned(vec![9; PLACES_MIN]), ..Vocabulary::default() };
        assert_eq!(vocabulary.find("tea"), None);
    }
}
