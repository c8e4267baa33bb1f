//! Sets of ordinals as a search needs them: one bit each for its inner loops, compressed for whoever walks or counts them.

use roaring::RoaringBitmap;

/// A dense set of ordinals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
}

/// Which memories are searched.
#[derive(Debug, Clone, Copy)]
pub struct Among<'a> {
    /// Their ordinals.
    pub matching: &'a RoaringBitmap,
    /// The same.
    pub mask: &'a Bits,
}

impl Bits {
    /// Whether `ordinal` is in the set.
    #[must_use]
    pub fn contains(&self, ordinal: u32) -> bool {
        self.words.get(ordinal as usize / 64).is_some_and(|word| word >> (ordinal % 64) & 1 == 1)
    }

    /// Which of the 32 ordinals from `first` on are in the set, the first as the lowest bit.
    #[must_use]
    pub fn from_on(&self, first: u32) -> u32 {
        let (at, shift) = (first as usize / 64, first % 64);
        let word = |at: usize| self.words.get(at).copied().unwrap_or_default();
        (word(at) >> shift) as u32 | word(at + 1).checked_shl(64 - shift).unwrap_or_default() as u32
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
        // Several at once: one after another they take as long as a search.
        let (mut left, mut several) = (ordinals.iter(), [0; 256]);
        loop {
            let ordinals = left.next_many(&mut several);
            if ordinals.is_empty() {
                return bits;
            }
            for ordinal in ordinals {
                bits.words[*ordinal as usize / 64] |= 1 << (*ordinal % 64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 ordinals at once are what asking for each of them tells, wherever they begin.
    #[test]
    fn many_at_once_are_each_of_them() {
        let bits = Bits::from(&(0..200).filter(|ordinal| ordinal * ordinal % 7 < 3).collect());
        for first in 0..260 {
            let each = (0..32).fold(0, |all, at| all | u32::from(bits.contains(first + at)) << at);
            assert_eq!(bits.from_on(first), each, "from {first} on");
        }
    }
}
