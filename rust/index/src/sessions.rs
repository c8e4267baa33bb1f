//! Turns of a session, each with those before and after it.

use std::collections::{BTreeMap, HashMap};

/// How far a turn lends its words: to the two turns on each side.
pub const REACH: usize = 2;

/// The sessions of one partition.
#[derive(Debug, Default)]
pub struct Sessions {
    /// Each session's turns: by row number, since rows are numbered in the order of writing.
    turns: HashMap<Box<str>, BTreeMap<i64, u32>>,
    /// The session of each turn.
    of: HashMap<u32, (Box<str>, i64)>,
}

impl Sessions {
    /// Enters `ordinal`, which stands at `row` of `session`.
    pub fn add(&mut self, session: &str, row: i64, ordinal: u32) {
        self.turns.entry(session.into()).or_default().insert(row, ordinal);
        self.of.insert(ordinal, (session.into(), row));
    }

    /// Takes `ordinal` out of its session.
    pub fn remove(&mut self, ordinal: u32) {
        let Some((session, row)) = self.of.remove(&ordinal) else { return };
        if let Some(turns) = self.turns.get_mut(&session) {
            // The same row may stand there already under its next ordinal.
            if turns.get(&row) == Some(&ordinal) {
                turns.remove(&row);
            }
            if turns.is_empty() {
                self.turns.remove(&session);
            }
        }
    }

    /// Whether no memory of the partition belongs to a session.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether `ordinal` belongs to a session.
    pub fn contains(&self, ordinal: u32) -> bool {
        self.of.contains_key(&ordinal)
    }

    /// The neighbours of `ordinal` that `lends` lets count, nearest first, each with its distance (1 or 2).
    ///
    /// Turns that may not lend are passed over as if they were not there: what a filter hides has no influence.
    pub fn neighbours(&self, ordinal: u32, lends: &dyn Fn(u32) -> bool) -> Vec<(u32, usize)> {
        let Some((session, row)) = self.of.get(&ordinal) else { return Vec::new() };
        let turns = &self.turns[session];
        let before = turns.range(..row).rev().map(|(_, turn)| *turn).filter(|turn| lends(*turn)).take(REACH);
        let after = turns.range(row + 1..).map(|(_, turn)| *turn).filter(|turn| lends(*turn)).take(REACH);
        let mut found: Vec<_> = before.enumerate().chain(after.enumerate()).map(|(at, turn)| (turn, at + 1)).collect();
        found.sort_by_key(|(_, distance)| *distance);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(rows: &[i64]) -> Sessions {
        let mut sessions = Sessions::default();
        rows.iter().for_each(|row| sessions.add("s", *row, *row as u32));
        sessions
    }

    /// Neighbours stand in the order of writing, two on each side, and never in another session.
    #[test]
    fn neighbours_are_the_two_on_each_side() {
        let mut sessions = session(&[1, 2, 3, 4, 5, 6]);
        sessions.add("other", 7, 7);
        assert_eq!(sessions.neighbours(4, &|_| true), [(3, 1), (5, 1), (2, 2), (6, 2)]);
        assert_eq!(sessions.neighbours(1, &|_| true), [(2, 1), (3, 2)]);
        assert_eq!(sessions.neighbours(7, &|_| true), []);
    }

    /// A turn that was removed, or may not lend, is passed over.
    #[test]
    fn hidden_turns_are_passed_over() {
        let mut sessions = session(&[1, 2, 3, 4]);
        sessions.remove(2);
        assert_eq!(sessions.neighbours(1, &|turn| turn != 3), [(4, 1)]);
    }
}
