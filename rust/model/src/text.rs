//! Which code points can be stored, and when two texts count as the same name.

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;

use crate::Invalid;
use crate::limits::NORMALISED_BYTES_MAX;

/// The folded form in which names are compared: NFKC, case folded, outer white space gone, inner runs one space.
#[must_use]
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return one_spaced(&text.to_ascii_lowercase());
    }
    let folded: String = text.nfkc().default_case_fold().nfkc().collect();
    one_spaced(&folded)
}

/// Refuses a text that grows beyond its limit when it is normalised to be searched.
///
/// # Errors
/// Names `field` and the length it would have.
pub fn check_normalised(field: &str, text: &str) -> Result<(), Invalid> {
    /// UAX #15, section 9: the most that NFKC lengthens a UTF-8 text.
    const GROWTH_MAX: usize = 11;
    if text.is_ascii() || text.len() <= NORMALISED_BYTES_MAX / GROWTH_MAX {
        return Ok(());
    }
    let bytes = text.nfkc().map(char::len_utf8).sum();
    if bytes <= NORMALISED_BYTES_MAX {
        return Ok(());
    }
    let problem = format!("has {bytes} bytes once normalised for search (NFKC), the limit is {NORMALISED_BYTES_MAX}");
    Err(Invalid { problem, ..Invalid::too_long(field, bytes, NORMALISED_BYTES_MAX) })
}

fn one_spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// `text` without U+0000, which SQL text cannot hold in every backend; `None` when nothing had to go.
#[must_use]
pub fn repaired(text: &str) -> Option<String> {
    text.contains('\0').then(|| text.replace('\0', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Width, composition, case and spacing do not make another name.
    #[test]
    fn forms_of_one_name_fold_alike() {
        for (one, other) in [
            ("Deploy.Prod", "deploy.prod "),
            ("ＰｏｓｔｇｒｅＳＱＬ", "postgresql"),
            ("ﾃﾞｰﾀ", "データ"),
            ("A\u{30a}", "å"),
            ("a  b", "A\u{3000}b"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} / {other}");
        }
        assert_ne!(fold("deploy.prod"), fold("deploy_prod"));
    }

    /// Characters that stand for phrases count as what they stand for; ordinary text is not slowed by the count.
    #[test]
    fn normalised_length_is_bounded() {
        assert!(check_normalised("query", &"\u{fdfa}".repeat(300_000)).is_err());
        assert!(check_normalised("query", &"\u{fdfa}".repeat(60_000)).is_ok());
        assert!(check_normalised("query", &"検索".repeat(300_000)).is_ok());
    }

    /// Folding twice changes nothing more.
    #[test]
    fn fold_is_idempotent() {
        for text in ["ẞ", "İstanbul", "ΑΣ", "ﾊﾟ ｽ", "ﬁx"] {
            assert_eq!(fold(&fold(text)), fold(text));
        }
    }
}
