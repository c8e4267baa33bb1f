//! When two texts say the same thing in the same words.

use unicode_normalization::UnicodeNormalization;

use crate::fold;

/// The constants of the 128-bit FNV-1a hash (Fowler, Noll, Vo).
const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A 128-bit hash (FNV-1a) of a text as it is.
#[must_use]
pub fn exact_hash(text: &str) -> u128 {
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

/// A 128-bit fingerprint of a text that case, width, spacing, composition and punctuation between words do not change.
///
/// Punctuation inside a word or number stays: `v1.2` and `v12` are different facts. FNV-1a (Fowler, Noll, Vo) over
/// the folded text: it is an index key, checked against the text wherever something depends on it.
#[must_use]
pub fn fingerprint(summary: &str, content: Option<&str>) -> u128 {
    let mut hash = OFFSET;
    for part in [summary, content.unwrap_or_default()] {
        for byte in plain_words(part).bytes().chain([0x1f]) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
    hash
}

/// Whether two texts are the same but for spacing and composition: what may be stored once without losing anything.
#[must_use]
pub fn is_same_text(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").nfc().collect::<String>();
    one == other || plain(one) == plain(other)
}

/// The words of a text without what [`fingerprint`] leaves out of account.
#[must_use]
pub fn plain_words(text: &str) -> String {
    let folded = fold(text);
    let words = folded.split(' ').map(|word| word.trim_matches(is_edge_punctuation));
    words.collect::<Vec<_>>().join(" ").nfc().collect()
}

/// Marks that end sentences or set words off. Signs that carry meaning (`+`, `-`, `#`, `%`) are not among them.
fn is_edge_punctuation(character: char) -> bool {
    matches!(
        character,
        '.' | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '"'
            | '\''
            | '('
            | ')'
            | '。'
            | '、'
            | '，'
            | '！'
            | '？'
            | '「'
            | '」'
            | '“'
            | '”'
            | '‘'
            | '’'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same words in another dress are one text.
    #[test]
    fn dress_does_not_change_the_fingerprint() {
        let plain = fingerprint("deadline is 15 October", None);
        for other in ["Deadline is 15 October.", " deadline  is 15\tOCTOBER", "ｄｅａｄｌｉｎｅ is 15 October!"]
        {
            assert_eq!(fingerprint(other, None), plain, "{other}");
        }
    }

    /// Only dress that can carry no meaning is left out of account before one text is kept for two.
    #[test]
    fn texts_that_may_mean_something_else_are_not_the_same() {
        assert!(is_same_text("tea  is\tgreen ", "tea is green") && is_same_text("caf\u{e9}", "cafe\u{301}"));
        for (one, other) in [
            ("ship only if !debug", "ship only if debug"),
            ("2⁵", "25"),
            ("the password is Hunter2", "the password is hunter2"),
            ("option -v", "option -V"),
            (":-)", ":-("),
            ("5'", "5\""),
            ("Deploys happen on Friday?", "Deploys happen on Friday."),
        ] {
            assert!(!is_same_text(one, other), "{one} / {other}");
        }
    }

    /// Different facts keep different fingerprints.
    #[test]
    fn different_facts_differ() {
        for (one, other) in [
            ("15 October", "16 October"),
            ("pool size 10", "pool size 100"),
            ("X is enabled", "X is not enabled"),
            ("use v1.2", "use v1.3"),
            ("use v1.2", "use v12"),
            ("C", "C++"),
            ("5", "-5"),
        ] {
            assert_ne!(fingerprint(one, None), fingerprint(other, None), "{one} / {other}");
        }
        assert_ne!(fingerprint("a", Some("b")), fingerprint("a b", None));
    }
}
