//! A set of ordinals as one bit each: what the inner loops of a search test.

use roaring::RoaringBitmap;

/// A dense set of ordinals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Whether `ordinal` is in the set.
    #[must_use]
    pub fn contains(&self, ordinal: u32) -> bool {
        self.words.get(ordinal as usize / 64).is_some_and(|word| word >> (ordinal % 64) & 1 == 1)
    }

    /// Puts `ordinal` in; says whether it was new.
    pub fn insert(&mut self, ordinal: u32) -> bool {
        let at = ordinal as usize / 64;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        let bit = 1 << (ordinal % 64);
        let is_new = self.words[at] & bit == 0;
        self.words[at] |= bit;
        is_new
    }

    /// Takes `ordinal` out.
    pub fn remove(&mut self, ordinal: u32) {
        if let Some(word) = self.words.get_mut(ordinal as usize / 64) {
            *word &= !(1 << (ordinal % 64));
        }
    }
}

impl From<&RoaringBitmap> for Bits {
    fn from(ordinals: &RoaringBitmap) -> Self {
        let mut bits = Self { words: vec![0; ordinals.max().map_or(0, |max| max as usize / 64 + 1)] };
        for ordinal in ordinals {
            bits.words[ordinal as usize / 64] |= 1 << (ordinal % 64);
        }
        bits
    }
}
