//! From ordinals to rows and back: a scan scores rows, a search wants memories.

use super::limits::BLOCK_ORDINALS;

/// The rows of one ordinal, which always lie together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub first: u32,
    pub count: u32,
}

impl Span {
    /// The numbers of the rows.
    pub fn range(self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

/// Some ordinals and the numbers of all their rows, in the same order.
#[derive(Debug, Default)]
pub(super) struct Block {
    ordinals: Vec<u32>,
    rows: Vec<u32>,
    // Where each ordinal's part of `rows` ends.
    ends: Vec<usize>,
    one_row_each: bool,
}

/// Walks the ordinals, some hundreds at a time, resolved to row numbers by their spans.
pub(super) fn walk(spans: &[Span], mut ordinals: impl Iterator<Item = u32>, mut visit: impl FnMut(&Block)) {
    let mut block = Block::default();
    while block.fill(spans, ordinals.by_ref().take(BLOCK_ORDINALS)) {
        visit(&block);
    }
}

impl Block {
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Visits each ordinal with the best of its rows' scores, which are given as long as
    /// [`Self::rows`]. An ordinal without rows is not visited.
    pub fn for_each_owner<S: Copy>(&self, scores: &[S], better: impl Fn(S, S) -> S, mut visit: impl FnMut(u32, S)) {
        if self.one_row_each {
            // By far the most common block, and the inner loop of every scan.
            for (&ordinal, &score) in self.ordinals.iter().zip(scores) {
                visit(ordinal, score);
            }
            return;
        }
        let mut start = 0;
        for (&ordinal, &end) in self.ordinals.iter().zip(&self.ends) {
            if let Some(best) = scores[start..end].iter().copied().reduce(&better) {
                visit(ordinal, best);
            }
            start = end;
        }
    }

    /// Takes these ordinals in place of those before; says whether there are any.
    fn fill(&mut self, spans: &[Span], ordinals: impl Iterator<Item = u32>) -> bool {
        self.ordinals.clear();
        self.rows.clear();
        self.ends.clear();
        self.one_row_each = true;
        for ordinal in ordinals {
            let span = spans.get(ordinal as usize).copied().unwrap_or_default();
            self.ordinals.push(ordinal);
            self.rows.extend(span.first..span.first + span.count);
            self.ends.push(self.rows.len());
            self.one_row_each &= span.count == 1;
        }
        !self.ordinals.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(spans: &[Span], ordinals: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
        let mut seen = Vec::new();
        walk(spans, ordinals.into_iter(), |block| {
            block.for_each_owner(block.rows(), u32::max, |ordinal, row| {
                seen.push((ordinal, row));
            });
        });
        seen
    }

    /// Each ordinal is scored by the best of its own rows; one without rows is left out.
    #[test]
    fn rows_are_folded_to_their_owner() {
        let counts = [2, 0, 1, 3];
        let spans: Vec<Span> =
            [3, 0, 9, 5].into_iter().zip(counts).map(|(first, count)| Span { first, count }).collect();
        assert_eq!(owners(&spans, [0, 1, 2, 3, 99]), [(0, 4), (2, 9), (3, 7)]);
        assert_eq!(owners(&spans, [2]), [(2, 9)]);
        assert_eq!(owners(&spans, []), []);
    }

    /// A walk longer than one block visits every ordinal once, in order.
    #[test]
    fn walk_crosses_blocks() {
        let many = 2 * BLOCK_ORDINALS as u32 + 1;
        let spans: Vec<Span> = (0..many).map(|first| Span { first, count: 1 }).collect();
        assert!(owners(&spans, 0..many).into_iter().eq((0..many).map(|row| (row, row))));
    }
}
