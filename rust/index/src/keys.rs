//! Exact keys: which memories a query calls by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use memkura_model::fold;

/// The folded keys of one partition.
#[derive(Debug, Default)]
pub struct Keys {
    named: HashMap<Arc<str>, BTreeSet<u32>>,
    of: HashMap<u32, Arc<str>>,
    /// How many keys there are of each length in bytes: only those lengths are looked for in a query.
    lengths: BTreeMap<usize, usize>,
}

/// How much of a query is looked through for keys, in bytes: names stand in questions, not in pasted documents.
const QUERY_BYTES: usize = 2_000;

impl Keys {
    /// Enters `ordinal` under `key`.
    pub fn add(&mut self, key: &str, ordinal: u32) {
        self.add_folded(fold(key).into(), ordinal);
    }

    /// Enters `ordinal` under a key that is folded already.
    pub fn add_folded(&mut self, key: Arc<str>, ordinal: u32) {
        *self.lengths.entry(key.len()).or_default() += 1;
        self.named.entry(Arc::clone(&key)).or_default().insert(ordinal);
        self.of.insert(ordinal, key);
    }

    /// The folded key of `ordinal`.
    pub fn of(&self, ordinal: u32) -> Option<&str> {
        self.of.get(&ordinal).map(|key| &**key)
    }

    /// Takes `ordinal` out.
    pub fn remove(&mut self, ordinal: u32) {
        let Some(key) = self.of.remove(&ordinal) else { return };
        if let Some(count) = self.lengths.get_mut(&key.len()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&key.len());
            }
        }
        if let Some(ordinals) = self.named.get_mut(&key) {
            ordinals.remove(&ordinal);
            if ordinals.is_empty() {
                self.named.remove(&key);
            }
        }
    }

    /// The ordinals whose key stands in `query` as a word of its own, longest key first, then by ordinal.
    pub fn named_in(&self, query: &str) -> Vec<u32> {
        if self.named.is_empty() {
            return Vec::new();
        }
        let folded = fold(query);
        let end = folded.floor_char_boundary(QUERY_BYTES);
        let text = &folded[..end];
        let mut found: Vec<&str> = Vec::new();
        for start in starts(text) {
            for length in self.lengths.keys() {
                let Some(candidate) = text.get(start..start + length) else { continue };
                if is_whole(text, start + length) && self.named.contains_key(candidate) && !found.contains(&candidate) {
                    found.push(candidate);
                }
            }
        }
        found.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        found.into_iter().flat_map(|key| self.named[key].iter().copied()).collect()
    }
}

/// Places where a name can begin: wherever the character before does not continue it.
fn starts(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut before = None;
    text.char_indices().filter_map(move |(at, character)| {
        let begins = before.is_none_or(|before| !continues(before, character));
        before = Some(character);
        begins.then_some(at)
    })
}

/// Whether a name that ends at `end` is not cut out of a longer one.
fn is_whole(text: &str, end: usize) -> bool {
    let before = text[..end].chars().next_back();
    let after = text[end..].chars().next();
    !matches!((before, after), (Some(before), Some(after)) if continues(before, after))
}

/// Whether `next` belongs to the same word as `before`. Scripts that set no spaces between words have no such bounds.
fn continues(before: char, next: char) -> bool {
    is_word(before) && is_word(next)
}

fn is_word(character: char) -> bool {
    character == '_' || (character.is_alphanumeric() && !is_unspaced(character))
}

fn is_unspaced(character: char) -> bool {
    matches!(u32::from(character), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Keys {
        let mut keys = Keys::default();
        names.iter().enumerate().for_each(|(at, name)| keys.add(name, at as u32));
        keys
    }

    /// A key is found in a sentence, in any form, and as a whole word alone.
    #[test]
    fn key_is_found_as_a_whole_word() {
        let keys = keys(&["deploy.prod", "deploy", "本番手順", "a b"]);
        assert_eq!(keys.named_in("what is Ｄeploy.Prod?"), [0, 1]);
        assert!(keys.named_in("deployment").is_empty());
        assert!(keys.named_in("redeploy").is_empty());
        assert_eq!(keys.named_in("本番手順はどこですか"), [2]);
        assert_eq!(keys.named_in("deployの手順"), [1]);
        assert_eq!(keys.named_in("is A  B right"), [3]);
    }

    /// A key that was taken out is not found.
    #[test]
    fn removed_key_is_not_found() {
        let mut keys = keys(&["x", "y"]);
        keys.remove(0);
        assert_eq!(keys.named_in("x y"), [1]);
    }
}
