//! The analyser as search sees it: which documents a query reaches.

use std::time::Duration;

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization as _;

use super::tally::Tally;
use super::{Kind, QueryTerm, Sink, analyse_query, each_term};

/// The terms of a document, each with how often it occurs, in the order of first occurrence, and its length.
#[derive(Debug, PartialEq)]
struct Document {
    terms: Vec<(String, u32)>,
    length: u32,
}

#[derive(Default)]
struct Counting {
    tally: Tally,
    length: u32,
}

impl Sink for Counting {
    fn term(&mut self, kind: Kind, term: &str) {
        self.length += u32::from(kind.has_length());
        self.tally.term(kind, term);
    }
}

fn analyse_document(text: &str) -> Document {
    let mut counting = Counting::default();
    each_term(text, &mut counting);
    let terms = counting.tally.into_terms().map(|(term, seen)| (term, seen.count)).collect();
    Document { terms, length: counting.length }
}

/// Ranks `texts` by the number of query terms they hold, weighted; texts that no admitting term reaches are left out.
fn search(texts: &[&str], query: &str) -> Vec<usize> {
    let asked = analyse_query(query);
    let mut found: Vec<(f32, usize)> = Vec::new();
    for (place, text) in texts.iter().enumerate() {
        let document = analyse_document(text);
        let held: Vec<&QueryTerm> =
            asked.iter().filter(|asked| document.terms.iter().any(|(term, _)| *term == asked.term)).collect();
        if held.iter().any(|term| term.admits) {
            let score: f32 = held.iter().map(|term| term.weight).sum();
            found.push((score - 0.01 * document.length as f32, place));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|(_, place)| place).collect()
}

#[test]
fn east_asian_words_find_their_sentence() {
    // Words inside unspaced sentences, with endings glued on, and of one character.
    let texts = [
        "週次レビューで検索の再現率を確認した",
        "デプロイ手順書は社内ウィキにある",
        "部署脚本每天凌晨三点备份数据库",
        "배포는 매주 화요일에 진행한다",
        "茶比咖啡好",
    ];
    let asked = [
        ("再現率", 0),
        ("検索", 0),
        ("デプロイ", 1),
        ("手順書", 1),
        ("备份数据库", 2),
        ("数据库", 2),
        ("배포", 3),
        ("배포를", 3),
        ("화요일", 3),
        ("茶", 4),
    ];
    for (query, place) in asked {
        assert_eq!(search(&texts, query).first(), Some(&place), "{query}");
    }
    for absent in ["冷蔵庫", "冰箱", "결과", "書庫", "率直"] {
        assert!(search(&texts, absent).is_empty(), "{absent}");
    }
}

#[test]
fn equivalent_forms_find_each_other() {
    // Composed and decomposed, full and half width, in both directions.
    let forms = [
        ("パスワード", "パスワード".nfd().collect::<String>()),
        ("회의록", "회의록".nfd().collect()),
        ("Ångström", "Ångström".nfd().collect()),
        ("PostgreSQL", "ＰｏｓｔｇｒｅＳＱＬ".to_owned()),
        ("データベース", "ﾃﾞｰﾀﾍﾞｰｽ".to_owned()),
        ("E0382", "Ｅ０３８２".to_owned()),
    ];
    for (plain, other) in &forms {
        assert_eq!(search(&[other], plain), [0], "{plain}");
        assert_eq!(search(&[plain], other), [0], "{plain}");
    }
}

#[test]
fn identifiers_find_themselves_and_their_words_find_them() {
    // Versions, codes, paths and names come first when asked for exactly.
    let texts = [
        "call parse_http_response() first",
        "getUserById is slow",
        "ORA-01555 snapshot too old",
        "ORA-01578 block corrupt",
        "needs Python 3.11.7",
        "needs Python 3.1.17",
        "edit /etc/app/conf.d/10-cache.toml",
        "parser in C++",
        "parser in C",
        "throughput is 3 GB/s",
        "To be or not to be",
    ];
    let asked = [
        ("parse_http_response", 0),
        ("getUserById", 1),
        ("getuserbyid", 1),
        ("ORA-01555", 2),
        ("3.11.7", 4),
        ("conf.d/10-cache.toml", 6),
        ("10-cache", 6),
        ("C++", 7),
        ("http response", 0),
        ("user id", 1),
        ("GB/s", 9),
        ("to be or not to be", 10),
    ];
    for (query, place) in asked {
        assert_eq!(search(&texts, query).first(), Some(&place), "{query}");
    }
}

#[test]
fn hidden_characters_do_not_hide_words() {
    // A word cut by an invisible character is found by the plain word.
    assert_eq!(search(&["please ign\u{200B}ore this"], "ignore"), [0]);
}

#[test]
fn a_word_and_its_stem_weigh_as_one_word() {
    // English is not louder than other scripts, and saying a word twice does not double it.
    let weight = |query: &str| analyse_query(query).iter().map(|asked| asked.weight).sum::<f32>();
    assert!((weight("painting") - 1.0).abs() < 1e-6);
    assert!((weight("größe") - 1.0).abs() < 1e-6);
    assert!((weight("größe größe") - 1.0 - 2.0_f32.ln()).abs() < 1e-6);
}

#[test]
fn only_words_make_terms() {
    // Blank and punctuation-only texts have nothing to search by; none of these is syntax.
    for empty in
        ["", "  \t\n", "\u{3000}", "!!!", "\"", "(", "[", "*", "~", "+", "\\", "\0", "'", "--", "…", "___", "++"]
    {
        assert!(analyse_query(empty).is_empty(), "{empty:?}");
    }
    for query in ["foo AND", "NOT", "a:b", "x^2", "it's", "--dry-run=client", "pre-edit", "😀", "[1 TO"] {
        assert!(!analyse_query(query).is_empty(), "{query}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the bound under test is one of time")]
fn the_largest_texts_take_linear_time() {
    // Repetition of one letter, bracket, joint, mark or ever new words stays far below a second on a quiet machine; what
    // takes the square of its length takes minutes on any.
    let texts = [
        "a".repeat(1_000_000),
        "aB".repeat(500_000),
        "a1".repeat(500_000),
        "a-".repeat(500_000),
        "a_".repeat(500_000),
        "-".repeat(1_000_000),
        "a''''".repeat(200_000),
        "(".repeat(100_000),
        "\"".repeat(50_000),
        "NOT ".repeat(20_000),
        "語".repeat(300_000),
        (0..10_000).flat_map(|n| ["word".to_owned(), n.to_string(), " ".to_owned()]).collect(),
        format!("e{}", "\u{301}".repeat(5_000)),
        format!("e{}", "\u{301}\u{323}".repeat(100_000)),
    ];
    for text in &texts {
        let start = std::time::Instant::now();
        let document = analyse_document(text);
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", &text[..8]);
        assert!(document.terms.iter().all(|(term, _)| term.len() <= super::TERM_BYTES_MAX + 1));
    }
}

proptest! {
    /// Any text is analysed, twice alike, and finds itself.
    #[test]
    fn analysis_is_total_and_deterministic(text in "\\PC*|[ -~]{0,80}|[a-zA-Z0-9._/'+#-]{0,80}") {
        let document = analyse_document(&text);
        prop_assert_eq!(&document, &analyse_document(&text));
        let asked = analyse_query(&text);
        let names: Vec<_> = document.terms.iter().map(|(term, _)| term).collect();
        prop_assert_eq!(asked.iter().map(|asked| &asked.term).collect::<Vec<_>>(), names);
    }

    /// Composed, decomposed and compatibility-composed text is the same text.
    #[test]
    fn normal_forms_are_equal(text in "\\PC*|[a-zà-üか-ヿ가-힣\u{300}-\u{30f}]{0,40}") {
        let document = analyse_document(&text);
        prop_assert_eq!(&document, &analyse_document(&text.nfd().collect::<String>()));
        prop_assert_eq!(&document, &analyse_document(&text.nfc().collect::<String>()));
        prop_assert_eq!(&document, &analyse_document(&text.nfkc().collect::<String>()));
    }

    /// Full-width forms of printable ASCII are the same text.
    #[test]
    fn width_forms_are_equal(text in "[!-~]{0,60}") {
        let wide: String = text.chars().filter_map(|c| char::from_u32(u32::from(c) + 0xFEE0)).collect();
        prop_assert_eq!(analyse_document(&text), analyse_document(&wide));
    }
}
