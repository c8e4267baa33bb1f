//! A query against one index: what each of its terms is worth there, and where it occurs.

use super::documents::AllDocuments;
use super::index::{FRESH, SEALED, TextIndex};
use super::postings::TermPostings;
use super::score::{QUERY_TERMS_MAX, Steps, saturation, worth};
use crate::tokens::{QueryTerm, shown};

/// The terms of a query.
#[derive(Debug, Default)]
pub struct Asked<'a> {
    pub terms: Vec<AskedTerm<'a>>,
    marks: [Marks; 2],
    documents: [AllDocuments<'a>; 2],
    /// What all terms are worth together.
    pub mass: f32,
    /// What each term gives is rounded to these.
    pub steps: Steps,
}

/// One term of a query.
#[derive(Debug)]
pub struct AskedTerm<'a> {
    /// As it can be shown.
    pub text: String,
    /// The most that it can add to a score.
    pub worth: f32,
    /// Whether a memory that matches it alone belongs in the result.
    pub admits: bool,
    /// How many memories have it.
    pub frequency: usize,
    /// Where it occurs, in each part.
    pub lists: [TermPostings<'a>; 2],
}

impl<'a> Asked<'a> {
    /// The terms to score: all of a query's, or the rarest of a very long one, in query order.
    pub fn of(index: &'a TextIndex, query: Vec<QueryTerm>) -> Self {
        let numbers =
            |term: &QueryTerm| [index.sealed.vocabulary.find(&term.term), index.fresh.vocabulary.find(&term.term)];
        let mut found: Vec<_> = query.into_iter().map(|term| (numbers(&term), term)).collect();
        if found.len() > QUERY_TERMS_MAX {
            found = rarest(index, found);
        }
        let documents = [index.sealed.documents.all(), index.fresh.documents.all()];
        let mut asked = Self { documents, ..Self::default() };
        for (position, (numbers, term)) in found.into_iter().enumerate() {
            let frequency = index.frequency(numbers);
            let worth = worth(term.weight, index.live(), frequency);
            asked.mass += worth;
            let lists = [
                numbers[SEALED].map_or_else(TermPostings::default, |number| index.sealed.postings(number)),
                numbers[FRESH].map_or_else(TermPostings::default, |number| index.fresh.postings(number)),
            ];
            for (marks, number) in asked.marks.iter_mut().zip(numbers) {
                number.into_iter().for_each(|number| marks.add(number, position));
            }
            let text = shown(&term.term).to_owned();
            asked.terms.push(AskedTerm { text, worth, admits: term.admits, frequency, lists });
        }
        asked.marks.iter_mut().for_each(Marks::settle);
        asked.steps = Steps::of(asked.mass);
        asked
    }

    /// Postings of all terms that admit.
    pub fn admitting_postings(&self) -> usize {
        let lists = self.terms.iter().filter(|term| term.admits).flat_map(|term| &term.lists);
        lists.map(|list| list.postings.len()).sum()
    }

    /// The score of a document, and whether a term admits it.
    pub fn score(&self, index: &TextIndex, document: u32) -> (f32, bool) {
        let (part, at) = index.place(document);
        let said = self.documents[part].get(at);
        let (mut score, mut is_admitted) = (0.0, false);
        for (term, count) in said.terms.iter().zip(said.counts) {
            if let Some(position) = self.marks[part].position(*term) {
                let asked = &self.terms[position];
                score += self.steps.round(asked.worth * saturation(*count, said.length));
                is_admitted |= asked.admits;
            }
        }
        (score, is_admitted)
    }
}

type Numbered = ([Option<u32>; 2], QueryTerm);

fn rarest(index: &TextIndex, found: Vec<Numbered>) -> Vec<Numbered> {
    let occurs = |(at, (numbers, _)): (usize, &Numbered)| Some((index.frequency(*numbers), at)).filter(|(n, _)| *n > 0);
    let mut counted: Vec<_> = found.iter().enumerate().filter_map(occurs).collect();
    counted.sort_unstable();
    counted.truncate(QUERY_TERMS_MAX);
    let mut chosen: Vec<usize> = counted.into_iter().map(|(_, at)| at).collect();
    chosen.sort_unstable();
    let is_chosen = |at: &usize| chosen.binary_search(at).is_ok();
    found.into_iter().enumerate().filter(|(at, _)| is_chosen(at)).map(|(_, term)| term).collect()
}

/// The numbers of a query's terms in one part, so that the terms of a document can be passed over quickly.
#[derive(Debug)]
struct Marks {
    near: [bool; 256],
    /// Numbers with their positions in the query, in the order of numbers.
    positions: Vec<(u32, usize)>,
}

impl Default for Marks {
    fn default() -> Self {
        Self { near: [false; 256], positions: Vec::new() }
    }
}

impl Marks {
    fn add(&mut self, number: u32, position: usize) {
        self.near[number as usize % 256] = true;
        self.positions.push((number, position));
    }

    fn settle(&mut self) {
        self.positions.sort_unstable();
    }

    fn position(&self, number: u32) -> Option<usize> {
        if !self.near[number as usize % 256] {
            return None;
        }
        let at = self.positions.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(self.positions[at].1)
    }
}
