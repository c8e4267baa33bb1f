//! Words and identifiers: whole, split, and joined to their neighbours.
//!
//! A chunk such as `conf.d/10-cache.toml` is a row of names between joiners; a name such as
//! `parse_http2` is a row of words between underscores; a word such as `HTTPServer2` has parts.
//! Words and parts are found from prose ("http response"); a pair of neighbours with its joiner is
//! found from any stretch of the identifier (`conf.d/10-cache.toml` in `/etc/app/conf.d/10-cache.toml`).

use super::fold::fold_case;
use super::runs::is_joiner;
use super::{Kind, Sink};

/// Most joiner characters between two names that still join them: `://`, `::`, `->`. More is a rule or an ellipsis.
const JOINER_CHARS_MAX: usize = 3;

/// Most parts that a word is split into. Digests and encoded blobs change case all the time; no name has more.
const PARTS_MAX: usize = 12;

/// Emits everything a chunk of joined words can be found by.
pub(super) fn emit_chunk(chunk: &str, sink: &mut dyn Sink) {
    if let Some(word) = plain_word(chunk) {
        return sink.word(&fold_case(word));
    }
    let mut joined = Joined::default();
    let mut rest = chunk;
    let mut gap = "";
    while !rest.is_empty() {
        let (name, tail) = split_where(rest, is_joiner);
        let (sharp, tail) = split_sharp(name, tail);
        let (next_gap, tail) = split_where(tail, |c| !is_joiner(c));
        let possessive = gap == "'" && name.eq_ignore_ascii_case("s");
        if !possessive {
            emit_name(name, sink);
            let name = fold_case(name.trim_matches('_'));
            if !sharp.is_empty() {
                sink.term(Kind::Joined, &format!("{name}{sharp}"));
            }
            if !name.is_empty() {
                if gap.chars().count() > JOINER_CHARS_MAX {
                    joined.finish(sink);
                }
                joined.push(gap, &format!("{name}{sharp}"), sink);
            }
        }
        gap = next_gap;
        rest = tail;
    }
    joined.finish(sink);
}

/// The one word of a chunk that is nothing else, as most are: Latin letters, of which only the first may be a capital. It has
/// no parts, no neighbours and no signs.
fn plain_word(chunk: &str) -> Option<&str> {
    let word = chunk.trim_end_matches(['.', ':', '-', '/', '\\', '@', '&', '\'']);
    let (first, rest) = word.as_bytes().split_first()?;
    (first.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_lowercase)).then_some(word)
}

/// Emits a name's words and, if there are several, their joined forms.
fn emit_name(name: &str, sink: &mut dyn Sink) {
    let mut joined = Joined::default();
    for word in name.split('_').filter(|word| !word.is_empty()) {
        sink.word(&fold_case(word));
        emit_parts(word, sink);
        if name.contains('_') {
            joined.push("_", &fold_case(word), sink);
        }
    }
    joined.finish(sink);
}

/// Emits the parts of a word written in mixed case or with digits.
fn emit_parts(word: &str, sink: &mut dyn Sink) {
    let starts = part_starts(word);
    if starts.len() < 2 || starts.len() > PARTS_MAX {
        return;
    }
    let ends = starts.iter().skip(1).copied().chain([word.len()]);
    for (&start, end) in starts.iter().zip(ends) {
        sink.word(&fold_case(&word[start..end]));
    }
}

/// Where the parts of a word begin: at a digit after a letter and the reverse, at a capital after a small
/// letter, and at the last of several capitals before a small letter (`HTTP|Server|2`). Stops past [`PARTS_MAX`].
fn part_starts(word: &str) -> Vec<usize> {
    let mut starts = vec![0];
    let mut chars = word.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map(|&(_, next)| next);
        if before.is_some_and(|before| is_boundary(before, c, after)) {
            starts.push(at);
            if starts.len() > PARTS_MAX {
                break;
            }
        }
        before = Some(c);
    }
    starts
}

fn is_boundary(before: char, c: char, after: Option<char>) -> bool {
    if before.is_numeric() != c.is_numeric() {
        return before.is_alphabetic() || c.is_alphabetic();
    }
    c.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && after.is_some_and(char::is_lowercase)))
}

/// Splits `text` before the first character that `ends`.
fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Splits off the `++` of `C++` or the `#` of `C#` when nothing more of the name follows.
fn split_sharp<'a>(name: &str, tail: &'a str) -> (&'a str, &'a str) {
    let size = if tail.starts_with("++") { 2 } else { usize::from(tail.starts_with('#')) };
    let ends = !tail[size..].starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '+' || c == '#');
    let named = name.ends_with(char::is_alphabetic);
    tail.split_at(if named && ends { size } else { 0 })
}

/// A growing row of neighbours: emits each adjacent pair, then the whole when it is longer than a pair.
#[derive(Default)]
struct Joined {
    whole: String,
    last_start: usize,
    count: usize,
}

impl Joined {
    fn push(&mut self, gap: &str, name: &str, sink: &mut dyn Sink) {
        let pair_start = self.last_start;
        if self.count > 0 {
            self.whole.push_str(gap);
        }
        self.last_start = self.whole.len();
        self.whole.push_str(name);
        self.count += 1;
        if self.count > 1 {
            sink.term(Kind::Joined, &self.whole[pair_start..]);
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        if self.count > 2 {
            sink.term(Kind::Joined, &self.whole);
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words(Vec<String>);

    impl Sink for Words {
        fn term(&mut self, kind: Kind, term: &str) {
            if kind != Kind::Stem {
                self.0.push(term.to_owned());
            }
        }
    }

    fn terms(chunk: &str) -> Vec<String> {
        let mut words = Words(Vec::new());
        emit_chunk(chunk, &mut words);
        words.0
    }

    #[test]
    fn snake_case_is_whole_and_split() {
        // A stretch of an identifier is a term too.
        let expected = ["parse", "http", "parse_http", "response", "http_response", "parse_http_response"];
        assert_eq!(terms("parse_http_response"), expected);
    }

    #[test]
    fn acronyms_end_before_the_next_word() {
        // Capitals in a row belong together.
        assert_eq!(terms("HTTPServer2"), ["httpserver2", "http", "server", "2"]);
    }

    #[test]
    fn versions_and_codes_keep_their_joints() {
        // The whole and each joint; 3.1.17 shares only single numbers with it.
        assert_eq!(terms("3.11.7"), ["3", "11", "3.11", "7", "11.7", "3.11.7"]);
        assert_eq!(terms("ORA-01555"), ["ora", "01555", "ora-01555"]);
    }

    #[test]
    fn language_names_keep_their_signs() {
        // C++ and C# are more than C.
        assert_eq!(terms("C++"), ["c", "c++"]);
        assert_eq!(terms("C#."), ["c", "c#"]);
        assert_eq!(terms("a+b"), ["a", "b", "a+b"]);
    }

    #[test]
    fn possessives_are_the_name() {
        // "Caroline's" is about Caroline, whichever apostrophe was typed.
        assert_eq!(terms("Caroline's"), ["caroline"]);
    }
}
