//! The terms of a document on their way into tantivy: one text, which its tokenizer takes apart again. tantivy's own form of
//! tokens made elsewhere is JSON, read anew for each part of the index: more work than all the rest of sealing.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// The name by which the schema calls [`Terms`].
pub const TERMS: &str = "terms";

/// Stands between terms: no text of ours holds it, and it is never part of a word.
const END: char = '\0';

/// One text of all terms, each as often as it occurs. Their order and places are not kept by the index.
pub fn joined(terms: &[(String, u32)]) -> String {
    let mut text = String::new();
    for (term, frequency) in terms {
        for _ in 0..*frequency {
            text.push_str(term);
            text.push(END);
        }
    }
    text
}

/// Takes apart what [`joined`] made.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    token: Token,
}

/// What is left of one text.
pub struct TermStream<'a> {
    left: &'a str,
    token: &'a mut Token,
}

impl Tokenizer for Terms {
    type TokenStream<'a> = TermStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermStream<'a> {
        self.token = Token { position: 0, ..Token::default() };
        TermStream { left: text, token: &mut self.token }
    }
}

impl TokenStream for TermStream<'_> {
    fn advance(&mut self) -> bool {
        let Some((term, left)) = self.left.split_once(END) else { return false };
        self.left = left;
        self.token.text.clear();
        self.token.text.push_str(term);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What goes in comes out, as often as it was said.
    #[test]
    fn terms_come_apart_again() {
        let given = [("tea".to_owned(), 2), ("a b".to_owned(), 1), ("冷蔵".to_owned(), 1)];
        let mut tokenizer = Terms::default();
        let text = joined(&given);
        let mut stream = tokenizer.token_stream(&text);
        let mut found = Vec::new();
        while stream.advance() {
            found.push(stream.token().text.clone());
        }
        assert_eq!(found, ["tea", "tea", "a b", "冷蔵"]);
    }
}
