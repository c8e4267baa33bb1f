//! Cuts normalised text into runs that are analysed alike.

use unicode_normalization::char::is_combining_mark;

/// A stretch of text of one nature.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Run<'a> {
    /// Words of a spaced script with the punctuation that joins them: `conf.d/10-cache.toml`, `it's`.
    /// Starts with a letter, digit or underscore; may end in joiners.
    Words(&'a str),
    /// Adjacent characters of scripts written without spaces, or (Korean) with endings glued on.
    Packed(&'a str),
    /// One pictograph.
    Symbol(&'a str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    Joiner,
    Packed,
    Symbol,
    Mark,
    Gap,
}

/// Splits `text` into runs; gaps and stray punctuation are left out.
pub(super) fn split(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let class = classify(first);
            let end = match class {
                Class::Word | Class::Mark => end_of(rest, |c| matches!(c, Class::Word | Class::Joiner | Class::Mark)),
                Class::Packed => end_of(rest, |c| matches!(c, Class::Packed | Class::Mark)),
                Class::Symbol | Class::Joiner | Class::Gap => first.len_utf8(),
            };
            let (run, tail) = rest.split_at(end);
            rest = tail;
            match class {
                Class::Word | Class::Mark => return Some(Run::Words(run)),
                Class::Packed => return Some(Run::Packed(run)),
                Class::Symbol => return Some(Run::Symbol(run)),
                Class::Joiner | Class::Gap => {}
            }
        }
    })
}

/// Whether `c` joins two words into one name. `=`, `,`, `;` and brackets do not: they separate.
pub(super) fn is_joiner(c: char) -> bool {
    matches!(c, '.' | '-' | '/' | '\\' | ':' | '@' | '+' | '#' | '&' | '\'')
}

fn end_of(text: &str, belongs: impl Fn(Class) -> bool) -> usize {
    text.char_indices().find(|&(_, c)| !belongs(classify(c))).map_or(text.len(), |(at, _)| at)
}

fn classify(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            '_' => Class::Word,
            _ if c.is_ascii_alphanumeric() => Class::Word,
            _ if is_joiner(c) => Class::Joiner,
            _ => Class::Gap,
        };
    }
    if is_packed(c) {
        Class::Packed
    } else if is_combining_mark(c) {
        Class::Mark
    } else if c.is_alphanumeric() {
        Class::Word
    } else if is_pictograph(c) {
        Class::Symbol
    } else {
        Class::Gap
    }
}

/// Letters of Han, Kana, Bopomofo, Hangul, Thai, Lao, Myanmar and Khmer. The dot ・ separates.
fn is_packed(c: char) -> bool {
    match u32::from(c) {
        // Han, Kana, Bopomofo, Hangul.
        0x3005..=0x3007
        | 0x3021..=0x3029
        | 0x3038..=0x303B
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF
        | 0x3041..=0x309F
        | 0x30A1..=0x30FA
        | 0x30FC..=0x30FF
        | 0x31F0..=0x31FF
        | 0x1AFF0..=0x1B16F
        | 0x3105..=0x312F
        | 0x31A0..=0x31BF
        | 0x1100..=0x11FF
        | 0x3131..=0x318E
        | 0xA960..=0xA97F
        | 0xAC00..=0xD7FF => true,
        0x0E01..=0x0EDF | 0x1000..=0x109F | 0x1780..=0x17DD => {
            (c.is_alphabetic() || is_combining_mark(c)) && !c.is_numeric()
        }
        _ => false,
    }
}

fn is_pictograph(c: char) -> bool {
    matches!(u32::from(c), 0x2600..=0x27BF | 0x1F300..=0x1FAFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_part_company() {
        // A Latin word inside Japanese is a run of its own, and the middle dot separates.
        let runs: Vec<_> = split("Pythonで検索 ジャン・ジャック").collect();
        let expected = [Run::Words("Python"), Run::Packed("で検索"), Run::Packed("ジャン"), Run::Packed("ジャック")];
        assert_eq!(runs, expected);
    }

    #[test]
    fn names_keep_their_joiners() {
        // Leading punctuation is dropped, inner joiners stay, brackets separate.
        let runs: Vec<_> = split("(/etc/conf.d) --dry-run=client 😀").collect();
        let expected = [Run::Words("etc/conf.d"), Run::Words("dry-run"), Run::Words("client"), Run::Symbol("😀")];
        assert_eq!(runs, expected);
    }
}
