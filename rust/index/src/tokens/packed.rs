//! Scripts without spaces: overlapping pairs, and the single characters.

use unicode_normalization::char::is_combining_mark;

use super::{Kind, Sink};

/// Emits the characters of a run and each two that stand side by side.
pub(super) fn emit_run(run: &str, sink: &mut dyn Sink) {
    let mut characters = run.char_indices().filter(|&(at, c)| at == 0 || !is_bare_mark(c)).map(|(at, _)| at).peekable();
    let mut previous: Option<usize> = None;
    while let Some(start) = characters.next() {
        let end = characters.peek().copied().unwrap_or(run.len());
        let alone = previous.is_none() && end == run.len();
        sink.term(if alone { Kind::Lone } else { Kind::Character }, &run[start..end]);
        if let Some(before) = previous {
            sink.term(Kind::Pair, &run[before..end]);
        }
        previous = Some(start);
    }
}

/// A mark that belongs to the character before it. Signs that are letters (Thai vowels) stand alone.
fn is_bare_mark(c: char) -> bool {
    is_combining_mark(c) && !c.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Terms(Vec<(Kind, String)>);

    impl Sink for Terms {
        fn term(&mut self, kind: Kind, term: &str) {
            self.0.push((kind, term.to_owned()));
        }
    }

    fn terms(run: &str) -> Vec<(Kind, String)> {
        let mut terms = Terms(Vec::new());
        emit_run(run, &mut terms);
        terms.0
    }

    #[test]
    fn pairs_overlap() {
        // Three characters give three characters and two pairs.
        let pairs: Vec<_> = terms("数据库").into_iter().filter(|(kind, _)| *kind == Kind::Pair).collect();
        assert_eq!(pairs, [(Kind::Pair, "数据".to_owned()), (Kind::Pair, "据库".to_owned())]);
        assert_eq!(terms("数据库").len(), 5);
    }

    #[test]
    fn one_character_stands_for_itself() {
        // A run of one is evidence enough to be found by.
        assert_eq!(terms("茶"), [(Kind::Lone, "茶".to_owned())]);
    }
}
