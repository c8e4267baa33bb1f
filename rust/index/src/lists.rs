//! Short lists of numbers by ordinal, side by side in one array: one memory's list costs no allocation of its own.

/// A list for each ordinal; empty for one that was never given any.
#[derive(Debug, Default)]
pub struct Lists {
    spans: Vec<Span>,
    numbers: Vec<u32>,
}

/// Where a list lies, and how long one may be that takes its place there.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    first: u32,
    count: u32,
    room: u32,
}

impl Lists {
    /// The list of `ordinal`.
    pub fn get(&self, ordinal: u32) -> &[u32] {
        let span = self.spans.get(ordinal as usize).copied().unwrap_or_default();
        &self.numbers[span.first as usize..][..span.count as usize]
    }

    /// Gives `ordinal` this list in place of any it had. One that is longer than all before leaves a gap behind.
    pub fn set(&mut self, ordinal: u32, list: &[u32]) {
        let at = ordinal as usize;
        if self.spans.len() <= at {
            self.spans.resize(at + 1, Span::default());
        }
        let (span, count) = (&mut self.spans[at], list.len() as u32);
        if count <= span.room {
            self.numbers[span.first as usize..][..list.len()].copy_from_slice(list);
        } else {
            *span = Span { first: self.numbers.len() as u32, count, room: count };
            self.numbers.extend_from_slice(list);
        }
        span.count = count;
    }

    /// The lists of the ordinals from 0 on, given by their lengths and by all their numbers one after another; `None` when
    /// those do not add up.
    pub fn from_parts(counts: &[u32], numbers: Vec<u32>) -> Option<Self> {
        let mut first = 0_u32;
        let mut spans = Vec::with_capacity(counts.len());
        for count in counts {
            spans.push(Span { first, count: *count, room: *count });
            first = first.checked_add(*count)?;
        }
        (first as usize == numbers.len()).then_some(Self { spans, numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists grow, shrink and go, each by itself.
    #[test]
    fn lists_are_apart() {
        let mut lists = Lists::default();
        lists.set(2, &[7, 8]);
        lists.set(0, &[1]);
        lists.set(2, &[9]);
        lists.set(0, &[1, 2, 3]);
        assert_eq!(
            (lists.get(0), lists.get(1), lists.get(2), lists.get(9)),
            (&[1, 2, 3][..], &[][..], &[9][..], &[][..])
        );
        lists.set(2, &[]);
        assert!(lists.get(2).is_empty());
    }

    /// What is set again and again takes no more room.
    #[test]
    fn changes_leave_no_gaps() {
        let mut lists = Lists::default();
        for change in 0..1_000 {
            lists.set(0, &[1, 2, change]);
            lists.set(0, &[]);
            lists.set(0, &[change]);
        }
        assert_eq!((lists.numbers.len(), lists.get(0)), (3, &[999][..]));
    }

    /// Parts that do not add up are refused.
    #[test]
    fn parts_must_add_up() {
        let lists = Lists::from_parts(&[1, 0, 2], vec![5, 6, 7]).unwrap();
        assert_eq!((lists.get(0), lists.get(1), lists.get(2)), (&[5][..], &[][..], &[6, 7][..]));
        assert!(Lists::from_parts(&[2], vec![5]).is_none());
        assert!(Lists::from_parts(&[0], vec![5]).is_none());
        assert!(Lists::from_parts(&[u32::MAX, 2], vec![5]).is_none());
    }
}
