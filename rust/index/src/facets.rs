//! Filters as bitmaps: which ordinals have which values, and a filter compiled over them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use memkura_model::filter::{Field, Range, Scalar, Test, TextField};
use memkura_model::{Filter, Memory};
use roaring::RoaringBitmap;

use crate::column::Column;
use crate::lists::Lists;
use crate::snapshot::{FacetsState, FieldState, ScalarState};

/// The values of one field, each with its number. The order of values makes ranges slices.
type Values = BTreeMap<Arc<Scalar>, u32>;

/// The filterable fields of one partition, numbers and instants left out: those stand in the columns, since nearly all
/// differ, and a bitmap for each value would be a waste.
#[derive(Debug, Default)]
pub struct Facets {
    fields: BTreeMap<Arc<Field>, Values>,
    /// Every value of every field, by number.
    values: Vec<Value>,
    /// Numbers that are free again.
    free: Vec<u32>,
    /// The values that each ordinal was entered with, to take it out again.
    entered: Lists,
}

#[derive(Debug, Default)]
struct Value {
    /// What it is; `None` while its number is free.
    held: Option<(Arc<Field>, Arc<Scalar>)>,
    ordinals: RoaringBitmap,
}

/// What a filter is compiled over besides the values: the columns, and where an id stands.
pub struct Columns<'a> {
    /// The columns, by ordinal.
    pub columns: &'a [Column],
    /// The ordinal of an id.
    pub ordinal_of: &'a dyn Fn(&str) -> Option<u32>,
}

impl Facets {
    /// Enters `memory` at `ordinal`, in place of what stood there.
    pub fn put(&mut self, ordinal: u32, memory: &Memory) {
        self.leave_all(ordinal);
        let mut numbers: Vec<u32> =
            values_of(memory).into_iter().map(|(field, scalar)| self.enter(field, scalar, ordinal)).collect();
        // A list in the metadata may say one thing twice.
        numbers.sort_unstable();
        numbers.dedup();
        self.entered.set(ordinal, &numbers);
    }

    /// Takes `ordinal` out.
    pub fn remove(&mut self, ordinal: u32) {
        self.leave_all(ordinal);
        self.entered.set(ordinal, &[]);
    }

    /// Takes `ordinal` out of every value, and leaves its list, to be set to another.
    fn leave_all(&mut self, ordinal: u32) {
        let numbers = self.entered.get(ordinal).to_vec();
        numbers.into_iter().for_each(|number| self.leave(number, ordinal));
    }

    /// What `ordinal` was entered with, in the order of fields and values.
    pub fn entered(&self, ordinal: u32) -> Vec<(&Field, &Scalar)> {
        let held = self.entered.get(ordinal).iter().filter_map(|number| self.values[*number as usize].held.as_ref());
        let mut entered: Vec<_> = held.map(|(field, scalar)| (&**field, &**scalar)).collect();
        entered.sort_unstable();
        entered
    }

    /// The texts of one field, each with the ordinals that have it.
    pub fn texts(&self, field: TextField) -> impl Iterator<Item = (&str, &RoaringBitmap)> {
        let values = self.fields.get(&Field::Text(field)).into_iter().flatten();
        values.filter_map(|(scalar, number)| match &**scalar {
            Scalar::Text(text) => Some((text.as_str(), &self.values[*number as usize].ordinals)),
            _ => None,
        })
    }

    /// What a snapshot keeps of `ordinals`: the values that they have, numbered anew.
    pub fn state(&self, ordinals: &RoaringBitmap) -> FacetsState<'_> {
        let mut state = FacetsState::default();
        let mut numbers = vec![u32::MAX; self.values.len()];
        // In the order of fields and values: whoever reads them again finds them sorted.
        for (field, values) in &self.fields {
            let used =
                values.iter().filter(|(_, number)| !self.values[**number as usize].ordinals.is_disjoint(ordinals));
            let before = state.values.len();
            for (scalar, number) in used {
                numbers[*number as usize] = state.values.len() as u32;
                state.values.push(ScalarState::of(scalar));
            }
            state.fields.push((FieldState::of(field), (state.values.len() - before) as u32));
        }
        state.fields.retain(|(_, count)| *count > 0);
        for ordinal in ordinals {
            let entered = self.entered.get(ordinal);
            state.counts.push(entered.len() as u32);
            state.entered.extend(entered.iter().map(|number| numbers[*number as usize]));
        }
        state
    }

    /// The facets that a snapshot kept, of the ordinals from 0 on; `None` when it is not one of ours.
    pub fn from_state(state: FacetsState<'_>) -> Option<Self> {
        let mut facets = Self::default();
        let mut scalars = state.values.into_iter();
        for (field, count) in state.fields {
            let field = Arc::new(field.into_field()?);
            let first = facets.values.len() as u32;
            for scalar in scalars.by_ref().take(count as usize) {
                let held = Some((Arc::clone(&field), Arc::new(scalar.into_scalar())));
                facets.values.push(Value { held, ordinals: RoaringBitmap::new() });
            }
            let values = facets.values[first as usize..].iter().zip(first..);
            let values = values.filter_map(|(value, number)| Some((Arc::clone(&value.held.as_ref()?.1), number)));
            facets.fields.insert(field, values.collect());
        }
        let all_are_known = state.entered.iter().all(|number| (*number as usize) < facets.values.len());
        if !all_are_known || scalars.next().is_some() {
            return None;
        }
        facets.entered = Lists::from_parts(&state.counts, state.entered)?;
        for ordinal in 0..state.counts.len() as u32 {
            for number in facets.entered.get(ordinal) {
                facets.values[*number as usize].ordinals.insert(ordinal);
            }
        }
        Some(facets)
    }

    fn enter(&mut self, field: Field, scalar: Scalar, ordinal: u32) -> u32 {
        if let Some(number) = self.fields.get(&field).and_then(|values| values.get(&scalar)) {
            self.values[*number as usize].ordinals.insert(ordinal);
            return *number;
        }
        let known = self.fields.get_key_value(&field).map(|(known, _)| Arc::clone(known));
        let (field, scalar) = (known.unwrap_or_else(|| Arc::new(field)), Arc::new(scalar));
        let number = self.free.pop().unwrap_or_else(|| {
            self.values.push(Value::default());
            self.values.len() as u32 - 1
        });
        self.fields.entry(Arc::clone(&field)).or_default().insert(Arc::clone(&scalar), number);
        let ordinals = RoaringBitmap::from_iter([ordinal]);
        self.values[number as usize] = Value { held: Some((field, scalar)), ordinals };
        number
    }

    fn leave(&mut self, number: u32, ordinal: u32) {
        let value = &mut self.values[number as usize];
        value.ordinals.remove(ordinal);
        if value.ordinals.is_empty()
            && let Some((field, scalar)) = std::mem::take(value).held
        {
            self.free.push(number);
            if let Some(values) = self.fields.get_mut(&*field) {
                values.remove(&*scalar);
                if values.is_empty() {
                    self.fields.remove(&*field);
                }
            }
        }
    }

    /// The ordinals of `within` that pass `filter`.
    pub fn compile(&self, filter: &Filter, within: &RoaringBitmap, columns: &Columns<'_>) -> RoaringBitmap {
        match filter {
            Filter::All(parts) => parts.iter().fold(within.clone(), |left, part| self.compile(part, &left, columns)),
            Filter::Any(parts) => parts
                .iter()
                .map(|part| self.compile(part, within, columns))
                .fold(RoaringBitmap::new(), |one, other| one | other),
            Filter::Not(part) => within - self.compile(part, within, columns),
            Filter::Test(Field::Number(field), test) => {
                scan(within, |ordinal| Some(Scalar::Number(columns.columns[ordinal as usize].number(*field))), test)
            }
            Filter::Test(Field::Time(field), test) => {
                let time = |ordinal: u32| columns.columns[ordinal as usize].time(*field);
                scan(within, |ordinal| time(ordinal).map(|instant| Scalar::from(instant.0)), test)
            }
            Filter::Test(Field::Text(TextField::MemoryId), test) => by_id(within, test, columns.ordinal_of),
            Filter::Test(field, test) => within & self.select(field, test, within),
        }
    }

    /// The ordinals with a value of `field` that passes; `within` bounds what "has none" can mean.
    fn select(&self, field: &Field, test: &Test, within: &RoaringBitmap) -> RoaringBitmap {
        let union = |numbers: &mut dyn Iterator<Item = &u32>| {
            numbers.fold(RoaringBitmap::new(), |all, number| all | &self.values[*number as usize].ordinals)
        };
        let none = Values::new();
        let values = self.fields.get(field).unwrap_or(&none);
        match test {
            Test::In(wanted) => union(&mut wanted.iter().filter_map(|scalar| values.get(scalar))),
            Test::Range(range) => {
                let inside = slice(values, range).filter(|(scalar, _)| range.contains(scalar));
                union(&mut inside.map(|(_, number)| number))
            }
            Test::Exists(true) => union(&mut values.values()),
            Test::Exists(false) => within - union(&mut values.values()),
        }
    }
}

/// Every value of `memory` that stands in a field of values.
fn values_of(memory: &Memory) -> Vec<(Field, Scalar)> {
    let text = TextField::ALL.iter().filter(|field| **field != TextField::MemoryId);
    let text = text.filter_map(|field| Some((Field::Text(*field), Scalar::Text(field.value(memory)?))));
    let tags = memory.tags.iter().map(|tag| (Field::Tags, Scalar::Text(tag.clone())));
    let leaves = memory.metadata.leaves().into_iter();
    let metadata = leaves.filter_map(|(path, value)| Some((Field::Metadata(path), Scalar::held(&value)?)));
    text.chain(tags).chain(metadata).collect()
}

/// Tests a column value by value.
fn scan(within: &RoaringBitmap, value: impl Fn(u32) -> Option<Scalar>, test: &Test) -> RoaringBitmap {
    within.iter().filter(|ordinal| test.passes(value(*ordinal).as_slice())).collect()
}

/// The values between a range's bounds; values of another type than the bounds may be among them.
fn slice<'a>(values: &'a Values, range: &Range) -> impl Iterator<Item = (&'a Arc<Scalar>, &'a u32)> + use<'a> {
    let low = range.low.as_ref().map_or(Bound::Unbounded, |(low, _)| Bound::Included(low));
    let high = range.high.as_ref().map_or(Bound::Unbounded, |(high, _)| Bound::Included(high));
    // A BTreeMap refuses bounds that cross; such a range holds nothing.
    let crossed = matches!((low, high), (Bound::Included(low), Bound::Included(high)) if low > high);
    (!crossed).then(|| values.range::<Scalar, _>((low, high))).into_iter().flatten()
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
