//! The best few of many scores, in the one order that every list of them has: the highest first, equal ones by ordinal.

/// The best so far, with some that will prove not to be.
#[derive(Debug)]
pub(crate) struct Top {
    depth: usize,
    pub kept: Vec<(u32, f32)>,
    /// How many are kept until those that are not among the best are let go of. Many may be equal: then all of them stay,
    /// and are not looked through again before there are twice as many.
    room: usize,
    /// No score below this is among the best.
    pub floor: f32,
}

impl Top {
    /// None yet, and none to be kept below `floor`.
    pub fn new(depth: usize, floor: f32) -> Self {
        Self { depth: depth.max(1), kept: Vec::new(), room: depth.max(1).saturating_mul(2), floor }
    }

    /// How many are wanted.
    pub fn depth(&self) -> usize {
        self.depth
    }

    pub fn push(&mut self, ordinal: u32, score: f32) {
        self.kept.push((ordinal, score));
        if self.kept.len() >= self.room {
            self.settle();
            self.room = self.kept.len().max(self.depth).saturating_mul(2);
        }
    }

    /// Lets go of those that are not among the best, of which equal ones are all kept.
    pub fn settle(&mut self) {
        if self.kept.len() > self.depth {
            self.kept.select_nth_unstable_by(self.depth - 1, |one, other| order(*one, *other));
            self.floor = self.floor.max(self.kept[self.depth - 1].1);
            self.kept.retain(|(_, score)| *score >= self.floor);
        }
    }
}

/// Whether any of some scores reaches `floor`. Without a branch, so that a processor compares several at once.
#[inline]
pub(crate) fn any_reaches<const N: usize>(scores: &[f32; N], floor: f32) -> bool {
    scores.iter().fold(0, |any, score| any | u8::from(*score >= floor)) != 0
}

fn order(one: (u32, f32), other: (u32, f32)) -> std::cmp::Ordering {
    other.1.total_cmp(&one.1).then(one.0.cmp(&other.0))
}

/// The best `depth` of some, in order.
pub(crate) fn best(mut found: Vec<(u32, f32)>, depth: usize) -> Vec<(u32, f32)> {
    if depth < found.len() {
        found.select_nth_unstable_by(depth, |one, other| order(*one, *other));
        found.truncate(depth);
    }
    found.sort_unstable_by(|one, other| order(*one, *other));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is let go of on the way is not among the best, and equal ones stay together.
    #[test]
    fn none_of_the_best_is_let_go() {
        let mut top = Top::new(3, f32::NEG_INFINITY);
        let scores = (0..1_000).map(|at| ((at * 7_919) % 1_000 / 2) as f32 - 400.0);
        (0..).zip(scores.clone()).for_each(|(ordinal, score)| top.push(ordinal, score));
        top.settle();
        assert_eq!((top.kept.len(), top.floor), (4, 98.0));
        let all: Vec<(u32, f32)> = (0..).zip(scores).collect();
        assert_eq!(best(top.kept, 3), best(all, 3));
    }

    /// Memories of one kind say the same of themselves: all of them are equal, and none is looked through again and again.
    #[test]
    fn many_equal_scores_take_no_longer() {
        let mut top = Top::new(100, 0.0);
        (0..2_000_000).for_each(|ordinal| top.push(ordinal, 1.0));
        assert_eq!(top.kept.len(), 2_000_000);
        assert_eq!(best(top.kept, 3), [(0, 1.0), (1, 1.0), (2, 1.0)]);
    }
}
