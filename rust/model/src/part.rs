//! Long texts in parts, each short enough for an embedder to read whole.

/// Most of an embedder's reading window that one part may take, in estimated tokens: common small models read 512.
const PART_TOKENS: f32 = 400.0;
/// How much of a part, in estimated tokens, the next one repeats, so that nothing stands cut in two in both.
const OVERLAP_TOKENS: f32 = 50.0;

/// How many bytes each part goes beyond the one before it, at least. It ends in the second half of at most [`PART_TOKENS`],
/// and the next begins [`OVERLAP_TOKENS`] earlier: 200 characters of three bytes less 50 of them, or more of any others.
pub const PART_BYTES_MIN: usize = 440;

/// Estimated tokens of a character: four letters of an alphabet make a token, a character of an unspaced script is one.
fn tokens(character: char) -> f32 {
    if u32::from(character) < 0x1100 { 0.25 } else { 1.0 }
}

/// The parts of `text`, in order, overlapping; one part when it is short. Cut after a sentence or a space where one is near.
pub fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let end = from + end_of_part(&text[from..], PART_TOKENS);
        if end >= text.len() {
            start = None;
            return Some(&text[from..]);
        }
        let end = from + last_break(&text[from..end]);
        start = Some(overlapping_start(text, from, end));
        Some(&text[from..end])
    })
}

/// The byte at which `budget` tokens are used up.
fn end_of_part(text: &str, budget: f32) -> usize {
    let mut used = 0.0;
    let end = text.char_indices().find(|(_, character)| {
        used += tokens(*character);
        used > budget
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Where to cut `part`: after the last end of a sentence in its second half, else after the last space there, else its end.
fn last_break(part: &str) -> usize {
    let half = part.floor_char_boundary(part.len() / 2);
    let after = |is_break: fn(char) -> bool| {
        part[half..].char_indices().rev().find(|(_, c)| is_break(*c)).map(|(at, c)| half + at + c.len_utf8())
    };
    after(|c| matches!(c, '.' | '!' | '?' | '\n' | '。' | '！' | '？'))
        .or_else(|| after(char::is_whitespace))
        .unwrap_or(part.len())
}

/// Where the part after `end` begins: some tokens before it, and always after the part's own beginning.
fn overlapping_start(text: &str, from: usize, end: usize) -> usize {
    let mut used = 0.0;
    let back = text[from..end].char_indices().rev().find(|(_, character)| {
        used += tokens(*character);
        used > OVERLAP_TOKENS
    });
    match back {
        Some((at, _)) if at > 0 => from + at,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A short text is one part, as it is.
    #[test]
    fn short_text_is_one_part() {
        assert_eq!(parts("short").collect::<Vec<_>>(), ["short"]);
        assert_eq!(parts("").collect::<Vec<_>>(), [""]);
    }

    /// A long Japanese text is cut at ends of sentences.
    #[test]
    fn long_text_is_cut_between_sentences() {
        let text = "港の灯台は夜に光る。".repeat(200);
        let parts: Vec<_> = parts(&text).collect();
        assert!(parts.len() > 4);
        assert!(parts.iter().all(|part| part.ends_with('。') && part.chars().count() <= 400));
    }

    proptest! {
        /// Every character is in some part, parts overlap or touch, go on by their least step, and none is over its budget.
        #[test]
        fn parts_cover_the_text(text in "(?s)[a-z .。あ漢\\n]{0,6000}|([か。]{150,250}|[a-zж. ]{150,450}|[𠮷。]{50,200}){0,20}") {
            let mut covered = 0;
            let mut before = None;
            for part in parts(&text) {
                let start = part.as_ptr() as usize - text.as_ptr() as usize;
                prop_assert!(before.is_none_or(|before| start >= before + PART_BYTES_MIN));
                before = Some(start);
                prop_assert!(start <= covered);
                prop_assert!(part.chars().map(tokens).sum::<f32>() <= PART_TOKENS);
                covered = start + part.len();
            }
            prop_assert_eq!(covered, text.len());
        }
    }
}
