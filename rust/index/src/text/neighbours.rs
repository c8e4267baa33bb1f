//! The words of turns, lent to the turns around them.

use super::asked::Asked;
use super::index::TextIndex;
use super::score::{NEIGHBOUR_SHARES, TermShare, density_of, openness, share};
use crate::bits::Bits;
use crate::sessions::Sessions;

/// The score of every memory of `mask`, by ordinal, and those that a term admits with theirs.
pub fn scores(index: &TextIndex, asked: &Asked<'_>, mask: &Bits, sessions: &Sessions) -> (Vec<f32>, Vec<(u32, f32)>) {
    let mut scores = vec![0.0; index.ordinals()];
    let mut admitted = Bits::default();
    let mut found = Vec::new();
    let mut spread = Spread::new(index, mask, Some(sessions));
    for at in 0..asked.terms.len() {
        let term = &asked.terms[at];
        for &(ordinal, density) in spread.matches(asked, at) {
            scores[ordinal as usize] += share(term.worth, density);
            if term.admits && admitted.insert(ordinal) {
                found.push((ordinal, 0.0));
            }
        }
    }
    found.iter_mut().for_each(|(ordinal, score)| *score = scores[*ordinal as usize]);
    (scores, found)
}

/// What each term gives to the score of `ordinal`.
pub fn shares(
    index: &TextIndex,
    asked: &Asked<'_>,
    ordinal: u32,
    mask: &Bits,
    sessions: Option<&Sessions>,
) -> Vec<TermShare> {
    let mut spread = Spread::new(index, mask, sessions);
    let shares = (0..asked.terms.len()).filter_map(|at| {
        let term = &asked.terms[at];
        let (_, density) = spread.matches(asked, at).iter().find(|(found, _)| *found == ordinal)?;
        Some(TermShare {
            term: term.text.clone(),
            document_frequency: term.frequency,
            score: share(term.worth, *density),
        })
    });
    shares.collect()
}

/// Finds the memories that have a term themselves or through their neighbours.
struct Spread<'a> {
    index: &'a TextIndex,
    mask: &'a Bits,
    sessions: Option<&'a Sessions>,
    /// Density by ordinal for the term at hand; all zero between terms.
    densities: Vec<f32>,
    matches: Vec<(u32, f32)>,
}

impl<'a> Spread<'a> {
    fn new(index: &'a TextIndex, mask: &'a Bits, sessions: Option<&'a Sessions>) -> Self {
        let sessions = sessions.filter(|sessions| !sessions.is_empty());
        let densities = if sessions.is_some() { vec![0.0; index.ordinals()] } else { Vec::new() };
        Self { index, mask, sessions, densities, matches: Vec::new() }
    }

    /// The memories that have term number `at`, each with the term's density there.
    fn matches(&mut self, asked: &Asked<'_>, at: usize) -> &[(u32, f32)] {
        self.matches.clear();
        for (part, list) in asked.terms[at].lists.iter().enumerate() {
            for (document, saturation) in self.index.postings_of(part, list.postings) {
                let owner = self.index.owner(document);
                if let Some(ordinal) = owner.filter(|ordinal| self.mask.contains(*ordinal)) {
                    self.matches.push((ordinal, density_of(saturation)));
                }
            }
        }
        self.over_neighbours();
        &self.matches
    }

    /// Adds what the memories of the mask have of the term through their neighbours; in the order of ordinals.
    fn over_neighbours(&mut self) {
        let Some(sessions) = self.sessions else { return };
        let (index, mask) = (self.index, self.mask);
        let mut reached: Vec<u32> = Vec::with_capacity(self.matches.len());
        // In the order of ordinals, whichever part a document lies in: sums of floats depend on their order.
        self.matches.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        for &(ordinal, density) in &self.matches {
            reached.push(ordinal);
            self.densities[ordinal as usize] += density;
            sessions.neighbours(
                ordinal,
                |turn| mask.contains(turn),
                |turn, distance| {
                    reached.push(turn);
                    self.densities[turn as usize] +=
                        density * NEIGHBOUR_SHARES[distance - 1] * openness(index.length(turn));
                },
            );
        }
        reached.sort_unstable();
        reached.dedup();
        self.matches.clear();
        for ordinal in reached {
            self.matches.push((ordinal, std::mem::take(&mut self.densities[ordinal as usize])));
        }
    }
}
