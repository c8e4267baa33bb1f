//! English stems, as extra terms.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};

/// Opens every stem. A control character never occurs in a word, so a stem never meets a word:
/// "univers" the stem is not "univers" as typed.
pub(super) const STEM_MARK: char = '\u{1}';

/// Longest word that is stemmed, in letters. Longer ones are not English, and the stemmer's time is bounded.
const STEMMED_LETTERS_MAX: usize = 32;

/// The stem of a folded English-looking word; `None` for anything but plain letters.
pub(super) fn stem(word: &str) -> Option<Cow<'_, str>> {
    let plain = word.len() <= STEMMED_LETTERS_MAX && word.bytes().all(|b| b.is_ascii_lowercase());
    plain.then(|| Stemmer::new(Algorithm::English).stem(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflections_share_a_stem() {
        // Plural and verb forms meet.
        assert_eq!(stem("paintings"), stem("painting"));
        assert_eq!(stem("running"), stem("runs"));
    }

    #[test]
    fn only_plain_letters_are_stemmed() {
        // Codes and other scripts keep their form.
        assert_eq!(stem("e0382s"), None);
        assert_eq!(stem("größe"), None);
    }
}
