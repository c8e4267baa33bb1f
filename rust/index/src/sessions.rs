//! Turns of a session, each with those before and after it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use roaring::RoaringBitmap;

/// How far a turn lends its words: to the two turns on each side.
pub const REACH: usize = 2;

/// Stands for "no turn".
const NONE: u32 = u32::MAX;

/// The sessions of one partition: each a chain of ordinals in the order in which the turns were written.
#[derive(Debug, Default)]
pub struct Sessions {
    /// The turns of each session. Ordinals stand in the order of writing, so the set's order is the session's.
    turns: HashMap<Arc<str>, BTreeSet<u32>>,
    of: HashMap<u32, Arc<str>>,
    /// The chain by ordinal, so that a search steps along it without looking anything up.
    links: Vec<Link>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

impl Sessions {
    /// Enters `ordinal` into `session`, out of any other.
    pub fn add(&mut self, session: &str, ordinal: u32) {
        self.remove(ordinal);
        let name = self.turns.get_key_value(session).map_or_else(|| session.into(), |(name, _)| Arc::clone(name));
        let turns = self.turns.entry(Arc::clone(&name)).or_default();
        let before = turns.range(..ordinal).next_back().map_or(NONE, |turn| *turn);
        let after = turns.range(ordinal..).next().map_or(NONE, |turn| *turn);
        turns.insert(ordinal);
        self.of.insert(ordinal, name);
        self.make_room(ordinal);
        self.links[ordinal as usize] = Link { before, after };
        self.join(before, ordinal);
        self.join(ordinal, after);
    }

    /// Enters a whole session of turns that are in none yet, in the order of writing.
    pub fn add_all(&mut self, session: &str, turns: &RoaringBitmap) {
        let Some(last) = turns.max() else { return };
        self.make_room(last);
        let name: Arc<str> = session.into();
        let mut before = NONE;
        for turn in turns {
            self.of.insert(turn, Arc::clone(&name));
            self.links[turn as usize] = Link { before, after: NONE };
            self.join(before, turn);
            before = turn;
        }
        self.turns.insert(name, turns.iter().collect());
    }

    /// The session of `ordinal`.
    pub fn of(&self, ordinal: u32) -> Option<&str> {
        self.of.get(&ordinal).map(|session| &**session)
    }

    fn make_room(&mut self, ordinal: u32) {
        if self.links.len() <= ordinal as usize {
            self.links.resize(ordinal as usize + 1, Link { before: NONE, after: NONE });
        }
    }

    /// Takes `ordinal` out of its session, if it is in one.
    pub fn remove(&mut self, ordinal: u32) {
        let Some(session) = self.of.remove(&ordinal) else { return };
        let Link { before, after } = self.links[ordinal as usize];
        self.links[ordinal as usize] = Link { before: NONE, after: NONE };
        self.join(before, after);
        if let Some(turns) = self.turns.get_mut(&session) {
            turns.remove(&ordinal);
            if turns.is_empty() {
                self.turns.remove(&session);
            }
        }
    }

    /// Whether no memory of the partition belongs to a session.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Calls `each` with every neighbour of `ordinal` that `counts`, and its distance (1 or 2).
    ///
    /// Turns that do not count are passed over as if they were not there: what a filter hides has no influence.
    pub fn neighbours(&self, ordinal: u32, counts: impl Fn(u32) -> bool, mut each: impl FnMut(u32, usize)) {
        let steps: [fn(&Link) -> u32; 2] = [|link| link.before, |link| link.after];
        for step in steps {
            let mut distance = 0;
            let mut turn = self.links.get(ordinal as usize).map_or(NONE, step);
            while turn != NONE && distance < REACH {
                if counts(turn) {
                    distance += 1;
                    each(turn, distance);
                }
                turn = step(&self.links[turn as usize]);
            }
        }
    }

    fn join(&mut self, before: u32, after: u32) {
        if before != NONE {
            self.links[before as usize].after = after;
        }
        if after != NONE {
            self.links[after as usize].before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(turns: &[u32]) -> Sessions {
        let mut sessions = Sessions::default();
        turns.iter().for_each(|turn| sessions.add("s", *turn));
        sessions
    }

    fn neighbours(sessions: &Sessions, ordinal: u32, counts: impl Fn(u32) -> bool) -> Vec<(u32, usize)> {
        let mut found = Vec::new();
        sessions.neighbours(ordinal, counts, |turn, distance| found.push((turn, distance)));
        found
    }

    /// Neighbours stand in the order of writing, two on each side, and never in another session.
    #[test]
    fn neighbours_are_the_two_on_each_side() {
        let mut sessions = session(&[1, 6, 3, 2, 5, 4]);
        sessions.add("other", 7);
        assert_eq!(neighbours(&sessions, 4, |_| true), [(3, 1), (2, 2), (5, 1), (6, 2)]);
        assert_eq!(neighbours(&sessions, 1, |_| true), [(2, 1), (3, 2)]);
        assert_eq!(neighbours(&sessions, 7, |_| true), []);
        assert_eq!(neighbours(&sessions, 99, |_| true), []);
    }

    /// A session entered at once is the one that was entered turn by turn.
    #[test]
    fn whole_session_equals_its_turns() {
        let mut whole = Sessions::default();
        whole.add_all("s", &[1, 2, 4, 9].into());
        whole.add_all("other", &[3].into());
        let mut grown = session(&[1, 2, 4, 9]);
        grown.add("other", 3);
        for sessions in [&mut whole, &mut grown] {
            sessions.add("s", 5);
            sessions.remove(2);
        }
        for turn in 0..10 {
            assert_eq!(neighbours(&whole, turn, |_| true), neighbours(&grown, turn, |_| true));
            assert_eq!(whole.of(turn), grown.of(turn));
        }
    }

    /// A turn that was removed, or does not count, is passed over.
    #[test]
    fn hidden_turns_are_passed_over() {
        let mut sessions = session(&[1, 2, 3, 4]);
        sessions.remove(2);
        assert_eq!(neighbours(&sessions, 1, |turn| turn != 3), [(4, 1)]);
    }

    /// A turn that moves to another session leaves its old neighbours joined.
    #[test]
    fn moving_a_turn_joins_its_old_neighbours() {
        let mut sessions = session(&[1, 2, 3]);
        sessions.add("other", 2);
        assert_eq!(neighbours(&sessions, 1, |_| true), [(3, 1)]);
        assert_eq!(neighbours(&sessions, 2, |_| true), []);
    }
}
