//! Filters as bitmaps: which ordinals have which values, and a filter compiled over them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use memkura_model::filter::{Field, Number, NumberField, Range, Scalar, Test, TextField, TimeField};
use memkura_model::{Filter, Memory};
use roaring::RoaringBitmap;

/// The values of one field, each with the ordinals that have it. The order of values makes ranges slices.
type Values = BTreeMap<Scalar, RoaringBitmap>;

/// The filterable fields of one partition.
#[derive(Debug, Default)]
pub struct Facets {
    text: HashMap<TextField, Values>,
    tags: Values,
    metadata: HashMap<Box<str>, Values>,
    /// Numbers and instants by ordinal: nearly all differ, so a bitmap for each value would be a waste.
    numbers: HashMap<NumberField, Vec<Option<Number>>>,
    times: HashMap<TimeField, Vec<Option<i64>>>,
    /// What each ordinal was entered with, to take it out again.
    entered: HashMap<u32, Entered>,
}

#[derive(Debug)]
struct Entered {
    text: Vec<(TextField, Scalar)>,
    tags: Vec<Scalar>,
    metadata: Vec<(Box<str>, Scalar)>,
}

impl Facets {
    /// Enters `memory` at `ordinal`, in place of what stood there.
    pub fn put(&mut self, ordinal: u32, memory: &Memory) {
        self.remove(ordinal);
        let text = TextField::ALL.iter().filter(|field| **field != TextField::MemoryId);
        let text: Vec<_> = text.filter_map(|field| Some((*field, Scalar::Text(field.value(memory)?)))).collect();
        let tags: Vec<_> = memory.tags.iter().map(|tag| Scalar::Text(tag.clone())).collect();
        let leaves = memory.metadata.leaves().into_iter();
        let metadata: Vec<_> =
            leaves.filter_map(|(path, value)| Some((path.into_boxed_str(), Scalar::held(&value)?))).collect();
        for (field, value) in &text {
            enter(self.text.entry(*field).or_default(), value, ordinal);
        }
        tags.iter().for_each(|tag| enter(&mut self.tags, tag, ordinal));
        for (path, value) in &metadata {
            enter(self.metadata.entry(path.clone()).or_default(), value, ordinal);
        }
        for field in NumberField::ALL {
            set(self.numbers.entry(*field).or_default(), ordinal, Some(field.number(memory)));
        }
        for field in TimeField::ALL {
            set(self.times.entry(*field).or_default(), ordinal, field.value(memory).map(|instant| instant.0));
        }
        self.entered.insert(ordinal, Entered { text, tags, metadata });
    }

    /// Takes `ordinal` out.
    pub fn remove(&mut self, ordinal: u32) {
        let Some(entered) = self.entered.remove(&ordinal) else { return };
        for (field, value) in &entered.text {
            self.text.entry(*field).and_modify(|values| leave(values, value, ordinal));
        }
        entered.tags.iter().for_each(|tag| leave(&mut self.tags, tag, ordinal));
        for (path, value) in &entered.metadata {
            if let Some(values) = self.metadata.get_mut(path) {
                leave(values, value, ordinal);
                if values.is_empty() {
                    self.metadata.remove(path);
                }
            }
        }
    }

    /// The ordinals of `within` that pass `filter`. `memory_id` is looked up with `ordinal_of`.
    pub fn compile(
        &self,
        filter: &Filter,
        within: &RoaringBitmap,
        ordinal_of: &dyn Fn(&str) -> Option<u32>,
    ) -> RoaringBitmap {
        match filter {
            Filter::All(parts) => parts.iter().fold(within.clone(), |left, part| self.compile(part, &left, ordinal_of)),
            Filter::Any(parts) => parts
                .iter()
                .map(|part| self.compile(part, within, ordinal_of))
                .fold(RoaringBitmap::new(), |one, other| one | other),
            Filter::Not(part) => within - self.compile(part, within, ordinal_of),
            Filter::Test(Field::Number(field), test) => {
                let column = self.numbers.get(field).map_or(&[][..], Vec::as_slice);
                scan(within, |ordinal| column.get(ordinal as usize).copied().flatten().map(Scalar::Number), test)
            }
            Filter::Test(Field::Time(field), test) => {
                let column = self.times.get(field).map_or(&[][..], Vec::as_slice);
                scan(within, |ordinal| column.get(ordinal as usize).copied().flatten().map(Scalar::from), test)
            }
            Filter::Test(Field::Text(TextField::MemoryId), test) => by_id(within, test, ordinal_of),
            Filter::Test(Field::Text(field), test) => within & select(self.text.get(field), test, within),
            Filter::Test(Field::Tags, test) => within & select(Some(&self.tags), test, within),
            Filter::Test(Field::Metadata(path), test) => {
                within & select(self.metadata.get(path.as_str()), test, within)
            }
        }
    }
}

fn enter(values: &mut Values, value: &Scalar, ordinal: u32) {
    match values.get_mut(value) {
        Some(ordinals) => {
            ordinals.insert(ordinal);
        }
        None => {
            values.insert(value.clone(), RoaringBitmap::from_iter([ordinal]));
        }
    }
}

fn leave(values: &mut Values, value: &Scalar, ordinal: u32) {
    if let Some(ordinals) = values.get_mut(value) {
        ordinals.remove(ordinal);
        if ordinals.is_empty() {
            values.remove(value);
        }
    }
}

fn set<T: Clone>(column: &mut Vec<Option<T>>, ordinal: u32, value: Option<T>) {
    if column.len() <= ordinal as usize {
        column.resize(ordinal as usize + 1, None);
    }
    column[ordinal as usize] = value;
}

/// Tests a column value by value.
fn scan(within: &RoaringBitmap, value: impl Fn(u32) -> Option<Scalar>, test: &Test) -> RoaringBitmap {
    within.iter().filter(|ordinal| test.passes(value(*ordinal).as_slice())).collect()
}

/// The ordinals with a value that passes; `within` bounds what "has none" can mean.
fn select(values: Option<&Values>, test: &Test, within: &RoaringBitmap) -> RoaringBitmap {
    let union = |ordinals: &mut dyn Iterator<Item = &RoaringBitmap>| {
        ordinals.fold(RoaringBitmap::new(), |all, some| all | some)
    };
    let none = Values::new();
    let values = values.unwrap_or(&none);
    match test {
        Test::In(wanted) => union(&mut wanted.iter().filter_map(|value| values.get(value))),
        Test::Range(range) => {
            union(&mut slice(values, range).filter(|(value, _)| range.contains(value)).map(|(_, ordinals)| ordinals))
        }
        Test::Exists(true) => union(&mut values.values()),
        Test::Exists(false) => within - union(&mut values.values()),
    }
}

/// The values between a range's bounds; values of another type than the bounds may be among them.
fn slice<'a>(values: &'a Values, range: &Range) -> impl Iterator<Item = (&'a Scalar, &'a RoaringBitmap)> + use<'a> {
    let low = range.low.as_ref().map_or(Bound::Unbounded, |(low, _)| Bound::Included(low.clone()));
    let high = range.high.as_ref().map_or(Bound::Unbounded, |(high, _)| Bound::Included(high.clone()));
    // A BTreeMap refuses bounds that cross; such a range holds nothing.
    let crossed = matches!((&low, &high), (Bound::Included(low), Bound::Included(high)) if low > high);
    (!crossed).then(|| values.range((low, high))).into_iter().flatten()
}

fn by_id(within: &RoaringBitmap, test: &Test, ordinal_of: &dyn Fn(&str) -> Option<u32>) -> RoaringBitmap {
    match test {
        Test::In(wanted) => {
            let ordinals = wanted.iter().filter_map(|id| match id {
                Scalar::Text(id) => ordinal_of(id),
                _ => None,
            });
            ordinals.collect::<RoaringBitmap>() & within
        }
        // `filter::parse` refuses ranges of ids.
        Test::Range(_) => RoaringBitmap::new(),
        Test::Exists(wanted) => {
            if *wanted {
                within.clone()
            } else {
                RoaringBitmap::new()
            }
        }
    }
}
