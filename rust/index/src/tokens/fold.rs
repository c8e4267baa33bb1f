//! Equivalent forms become one: compatibility normalisation, case folding, invisible characters.

use std::borrow::Cow;

use caseless::Caseless as _;
use unicode_normalization::UnicodeNormalization as _;

/// Drops characters that are not seen and brings the rest to NFKC, keeping case.
pub(super) fn normalise(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|&c| !is_ignorable(c)).nfkc().map(plain_punctuation).collect())
}

/// Full case folding of an already normalised term.
pub(super) fn fold_case(term: &str) -> Cow<'_, str> {
    if term.is_ascii() {
        let has_capitals = term.bytes().any(|byte| byte.is_ascii_uppercase());
        return if has_capitals { Cow::Owned(term.to_ascii_lowercase()) } else { Cow::Borrowed(term) };
    }
    // Most scripts have no case, and most words no capitals: then nothing changes, and nothing is to be normalised again.
    if term.chars().default_case_fold().eq(term.chars()) {
        return Cow::Borrowed(term);
    }
    Cow::Owned(term.chars().default_case_fold().nfkc().collect())
}

/// Typographic hyphens and apostrophes join words as the plain ones do.
fn plain_punctuation(c: char) -> char {
    match c {
        '\u{2010}' | '\u{2011}' | '\u{2212}' => '-',
        '\u{2018}' | '\u{2019}' => '\'',
        other => other,
    }
}

/// `Default_Ignorable_Code_Point` of Unicode 17: characters with no shape of their own. They would
/// split or hide words ("ign" + U+200B + "ore"), so search does not see them.
fn is_ignorable(c: char) -> bool {
    matches!(u32::from(c),
        0x00AD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F
        | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F
        | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFF8 | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A
        | 0xE0000..=0xE0FFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_vanish() {
        // Zero-width, soft hyphen, byte-order mark, bidi control, tag and variation selector leave no gap.
        for hidden in ['\u{200B}', '\u{2060}', '\u{AD}', '\u{FEFF}', '\u{202E}', '\u{2066}', '\u{E0069}', '\u{E0100}'] {
            assert_eq!(normalise(&format!("ign{hidden}ore")), "ignore");
        }
    }

    #[test]
    fn width_forms_are_equal() {
        // Full-width Latin and half-width Katakana become the ordinary forms.
        assert_eq!(normalise("ＰｏｓｔｇｒｅＳＱＬ ﾃﾞｰﾀﾍﾞｰｽ"), "PostgreSQL データベース");
    }

    #[test]
    fn case_folding_is_full() {
        // Folding may change the number of letters, and final sigma equals sigma.
        assert_eq!(fold_case("STRASSE"), fold_case("straße"));
        assert_eq!(fold_case("ΟΔΟΣ"), fold_case("οδος"));
    }
}
