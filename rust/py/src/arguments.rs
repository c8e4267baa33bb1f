//! Dictionaries of fields to drafts, patches, selections and recalls. A name that we do not know is refused.

use std::time::Duration;

use memkura_engine::{Durability, Embedding, Kept, Legs, ListOrder, Recall, RecordOptions, Selection};
use memkura_model::filter::parse;
use memkura_model::limits::{BATCH_MAX, BUSY_TIMEOUT_SECONDS_MAX};
use memkura_model::recall::{Curve, Fusion, Weights};
use memkura_model::{
    Action, DeliveryMode, Door, Draft, Filter, Invalid, InvalidKind, MemoryId, Metadata, Origin, Patch, SourceType,
    Status, Tier, repaired,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::embedding::Embedded;
use crate::ending::{call, listed};
use crate::error::{Fault, guarded};
use crate::values::{Use, instant, mended, name, object};
use crate::{clock, embedding};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// A draft, and the fields whose text had to be mended.
pub fn draft(fields: &Bound<'_, PyAny>) -> Result<(Draft, Vec<String>), Fault> {
    let mut draft = Draft { context_id: String::new(), ..Draft::default() };
    let mut warnings = Vec::new();
    for (field, value) in items(fields, "item")? {
        let value = &value;
        match field.as_str() {
            "context_id" => draft.context_id = name(value, &field)?,
            "summary" => draft.summary = text(value, &field, &mut warnings)?,
            "content" => draft.content = optional(value, |value| text(value, &field, &mut warnings))?,
            "type" => draft.kind = name(value, &field)?,
            "scope" => draft.scope = optional(value, |value| name(value, &field))?,
            "key" => draft.key = optional(value, |value| name(value, &field))?,
            "tags" => draft.tags = names(value, &field)?,
            "metadata" => draft.metadata = metadata(value, &field)?,
            "delivery_mode" => draft.delivery_mode = DeliveryMode::parse(&name(value, &field)?)?,
            "trigger" => draft.trigger = optional(value, |value| metadata(value, &field))?,
            "importance" => draft.importance = number(value, &field)?,
            "confidence" => {
                draft.confidence = optional(value, |value| number(value, &field))?.unwrap_or(draft.confidence);
            }
            "proof" => draft.proof = optional(value, |value| text(value, &field, &mut warnings))?,
            "derived_from" => draft.derived_from = ids(value, &field)?,
            "supersedes" => draft.supersedes = optional(value, |value| id(value, &field))?,
            "session" => draft.session = optional(value, |value| name(value, &field))?,
            "event_time" => draft.event_time = instant(value, &field)?,
            "expires_at" => draft.expires_at = instant(value, &field)?,
            "decay_rate" => draft.decay_rate = optional(value, |value| number(value, &field))?,
            "idempotency_key" => draft.idempotency_key = optional(value, |value| name(value, &field))?,
            "dedup" => {
                draft.fold_duplicates =
                    optional(value, |value| choice(value, &field, &[("exact", true)]))?.unwrap_or(false);
            }
            _ => return Err(unknown(&field)),
        }
    }
    for field in ["context_id", "summary"] {
        if !fields.contains(field)? {
            return Err(Invalid::value(
                field,
                "is missing",
                "nothing",
                "Every memory has a context and says something",
            )
            .into());
        }
    }
    Ok((draft, warnings))
}

/// The changes of an update, and the fields whose text had to be mended.
pub fn patch(fields: &Bound<'_, PyAny>) -> Result<(Patch, Vec<String>), Fault> {
    let mut patch = Patch::default();
    let mut warnings = Vec::new();
    for (field, value) in items(fields, "changes")? {
        let value = &value;
        match field.as_str() {
            "summary" => patch.summary = Some(text(value, &field, &mut warnings)?),
            "content" => patch.content = Some(optional(value, |value| text(value, &field, &mut warnings))?),
            "type" => patch.kind = Some(name(value, &field)?),
            "tags" => patch.tags = Some(names(value, &field)?),
            "metadata" => patch.metadata = Some(metadata(value, &field)?),
            "delivery_mode" => patch.delivery_mode = Some(DeliveryMode::parse(&name(value, &field)?)?),
            "trigger" => patch.trigger = Some(optional(value, |value| metadata(value, &field))?),
            "importance" => patch.importance = Some(number(value, &field)?),
            "confidence" => patch.confidence = Some(number(value, &field)?),
            "proof" => patch.proof = Some(optional(value, |value| text(value, &field, &mut warnings))?),
            "session" => patch.session = Some(optional(value, |value| name(value, &field))?),
            "event_time" => patch.event_time = Some(instant(value, &field)?),
            "expires_at" => patch.expires_at = Some(instant(value, &field)?),
            "decay_rate" => patch.decay_rate = Some(optional(value, |value| number(value, &field))?),
            _ => return Err(unknown(&field)),
        }
    }
    Ok((patch, warnings))
}

/// Each of `items` as `read` reads it, with its vectors and the fields whose text had to be mended. The first one stands at
/// place `first` among more.
pub fn with_vectors<T>(
    items: Any<'_, '_>,
    embedded: Vec<Embedded<'_>>,
    first: usize,
    read: impl Fn(Any<'_, '_>) -> Result<(T, Vec<String>), Fault>,
) -> Result<Vec<(T, Embedding, Vec<String>)>, Fault> {
    let mut embedded = embedded.into_iter();
    let items = items.try_iter()?.enumerate().map(|(at, item)| {
        let vectors = embedded.next().unwrap_or_default();
        let both = || {
            let (item, warnings) = read(&item?)?;
            Ok((item, embedding::document(vectors)?, warnings))
        };
        both().map_err(|fault: Fault| fault.in_item(first + at))
    });
    items.collect()
}

/// Warns of texts that had to be mended, at the line of Python that gave them. Before anything is written: a warning that is
/// turned into an error stops the verb.
pub fn warn(py: Python<'_>, warnings: &[String]) -> Result<(), Fault> {
    if !warnings.is_empty() {
        let warn = py.import("memkura.engine")?.getattr("warn_of_repairs")?;
        call(&warn, &PyTuple::new(py, [warnings])?)?;
    }
    Ok(())
}

/// Refuses drafts that could not be remembered, before their vectors are made.
#[pyfunction]
pub fn check_drafts(py: Python<'_>, drafts: &Bound<'_, PyAny>) -> PyResult<()> {
    guarded(py, || {
        for (at, fields) in drafts.try_iter()?.enumerate() {
            draft(&fields?).and_then(|(draft, _)| Ok(draft.check()?)).map_err(|fault| fault.in_item(at))?;
        }
        Ok(())
    })
}

/// A state of a memory as an owner's file has it, and the fields whose text had to be mended.
pub fn kept(fields: Any<'_, '_>) -> Result<(Kept, Vec<String>), Fault> {
    let wrong = || Invalid::value("item", "is not a dict", fields.get_type(), "Give a dict of fields");
    // The fields of a draft are what is left when the others are taken out.
    let rest = fields.cast::<PyDict>().map_err(|_| wrong())?.copy()?;
    let take = |field: &str| {
        let value = rest.get_item(field)?.filter(|value| !value.is_none());
        if rest.contains(field)? {
            rest.del_item(field)?;
        }
        Ok::<_, Fault>(value)
    };
    let needed = |field: &str| {
        let missing =
            || Invalid::value(field, "is missing", "nothing", "Only what export wrote can be taken as one's own");
        Ok::<_, Fault>(take(field)?.ok_or_else(missing)?)
    };
    let worded = |field: &str| name(&needed(field)?, field);
    let unknown_word = |field: &str, word: &str| Invalid::value(field, "is not known", word, "Use what export wrote");
    let whole = |field: &str, value: Any<'_, '_>| {
        let whole = i64::try_from(count(value, field)?);
        Ok::<_, Fault>(whole.map_err(|_| Invalid::value(field, "is larger than a count can be", value, "Give less"))?)
    };
    let (status, source, tier) = (worded("status")?, worded("source_type")?, worded("trust_tier")?);
    let source_type = SourceType::parse(&source).ok_or_else(|| unknown_word("source_type", &source))?;
    let action = take("action")?.map_or(Ok("remember".to_owned()), |value| name(&value, "action"))?;
    let door = take("door")?.map_or(Ok(source.clone()), |value| name(&value, "door"))?;
    let kept = Kept {
        draft: Draft::default(),
        origin: take("origin")?
            .map(|value| Ok::<_, Fault>(Origin::parse(&name(&value, "origin")?)?))
            .transpose()?
            .unwrap_or_default(),
        memory_id: id(&needed("memory_id")?, "memory_id")?,
        status: Status::parse(&status).ok_or_else(|| unknown_word("status", &status))?,
        source_type,
        trust_tier: Tier::parse(&tier).ok_or_else(|| unknown_word("trust_tier", &tier))?,
        superseded_by: take("superseded_by")?.map(|value| id(&value, "superseded_by")).transpose()?,
        created_at: clock::from_python(&needed("created_at")?, "created_at")?,
        updated_at: clock::from_python(&needed("updated_at")?, "updated_at")?,
        last_seen: take("last_seen")?.map(|value| clock::from_python(&value, "last_seen")).transpose()?,
        access_count: take("access_count")?.map_or(Ok(0), |value| whole("access_count", &value))?,
        version: whole("version", &needed("version")?)?,
        action: Action::parse(&action).ok_or_else(|| unknown_word("action", &action))?,
        door: Door::of(SourceType::parse(&door).ok_or_else(|| unknown_word("door", &door))?),
        replaced_at: take("replaced_at")?.map(|value| clock::from_python(&value, "replaced_at")).transpose()?,
    };
    take("embedded")?;
    let (draft, warnings) = draft(&rest)?;
    Ok((Kept { draft, ..kept }, warnings))
}

/// Refuses states that could not be kept, before their vectors are made.
#[pyfunction]
pub fn check_states(py: Python<'_>, states: &Bound<'_, PyAny>) -> PyResult<()> {
    guarded(py, || {
        for (at, fields) in states.try_iter()?.enumerate() {
            kept(&fields?).and_then(|(kept, _)| Ok(kept.draft.check()?)).map_err(|fault| fault.in_item(at))?;
        }
        Ok(())
    })
}

/// What a recall asks besides its words and vector.
#[derive(Default)]
pub struct RecallArguments(Recall);

impl RecallArguments {
    /// Reads keyword arguments; a name that we do not know is refused.
    pub fn read(options: Option<&Bound<'_, PyDict>>) -> Result<Self, Fault> {
        let mut recall = Recall::default();
        let mut given_weights = None;
        for (option, value) in options.map(|options| items(options, "recall")).transpose()?.unwrap_or_default() {
            let value = &value;
            match option.as_str() {
                "made_by" => recall.made_by = optional(value, |value| name(value, "made_by"))?,
                "k" => recall.k = count(value, "k")?,
                "offset" => recall.offset = count(value, "offset")?,
                "filters" => recall.filter = filter(Some(value))?,
                "legs" => recall.legs = optional(value, legs)?.unwrap_or_default(),
                "as_of" => recall.as_of = instant(value, "as_of")?,
                "min_similarity" => recall.min_similarity = optional(value, |value| number(value, "min_similarity"))?,
                "fusion" => {
                    recall.fusion =
                        optional(value, |value| Ok(Fusion::parse(&name(value, "fusion")?)?))?.unwrap_or_default();
                }
                "weights" => given_weights = Some(value.clone()).filter(|value| !value.is_none()),
                "freshness" => {
                    recall.curve = optional(value, |value| choice(value, "freshness", CURVES))?.unwrap_or_default();
                }
                "neighbours" => recall.neighbours = truth(value, "neighbours")?,
                "include_superseded" => recall.include_superseded = truth(value, "include_superseded")?,
                "explain" => recall.explain = truth(value, "explain")?,
                _ => {
                    return Err(Invalid::new(
                        InvalidKind::UnknownField,
                        option.clone(),
                        "is not an argument of recall",
                        &option,
                        "See help(Engine.recall)",
                    )
                    .into());
                }
            }
        }
        // The fusion decides what a leg weighs when it is not given, so it must be known first.
        recall.weights = given_weights.map(|value| weights(&value, recall.fusion)).transpose()?;
        Ok(Self(recall))
    }

    /// The recall for `query` and `embedding`.
    pub fn recall(self, query: Option<Any<'_, '_>>, embedding: Option<Any<'_, '_>>) -> Result<Recall, Fault> {
        Ok(Recall {
            query: query
                .filter(|query| !query.is_none())
                .map(|query| mended(query, "query"))
                .transpose()?
                .map(|(query, _)| query),
            embedding: embedding.filter(|embedding| !embedding.is_none()).map(embedding::query).transpose()?,
            ..self.0
        })
    }
}

const CURVES: &[(&str, Curve)] = &[("linear", Curve::Linear), ("exponential", Curve::Exponential)];

/// A filter; everything when there is none.
pub fn filter(value: Option<Any<'_, '_>>) -> Result<Filter, Fault> {
    match value.filter(|value| !value.is_none()) {
        Some(value) => Ok(parse(&object(value, "filters", Use::Filter)?)?),
        None => Ok(Filter::everything()),
    }
}

/// What to forget: ids, a filter or everything, and only one of them.
pub fn selection(
    memory_ids: Option<Any<'_, '_>>,
    filters: Option<Any<'_, '_>>,
    everything: bool,
) -> Result<Selection, Fault> {
    let memory_ids = memory_ids.filter(|value| !value.is_none());
    let filters = filters.filter(|value| !value.is_none());
    match (memory_ids, filters, everything) {
        (Some(given), None, false) => Ok(Selection::Ids(ids(given, "memory_id")?)),
        (None, Some(given), false) => Ok(Selection::Filter(filter(Some(given))?)),
        (None, None, true) => Ok(Selection::Everything),
        _ => {
            let problem = "needs memory ids, filters or everything=True, and only one of them";
            Err(Invalid::new(
                InvalidKind::NothingSelected,
                "memory_id",
                problem,
                "neither or several",
                "Say once what to forget",
            )
            .into())
        }
    }
}

/// The door that our own Python code names.
pub fn door(text: &str) -> Result<Door, Fault> {
    match text {
        "python" => Ok(Door::Python),
        "import" => Ok(Door::Import),
        "connector" => Ok(Door::Connector),
        _ => Err(Invalid::value("door", "is not known", text, "This is a fault of memkura; please report it").into()),
    }
}

/// What a list is ordered by.
pub fn order(value: Option<Any<'_, '_>>) -> Result<ListOrder, Fault> {
    let Some(value) = value else { return Ok(ListOrder::default()) };
    let text = name(value, "order")?;
    match text.as_str() {
        "created_at" => Ok(ListOrder::CreatedAt),
        "updated_at" => Ok(ListOrder::UpdatedAt),
        _ => Err(Invalid::value("order", "is not known", text, "Use created_at or updated_at").into()),
    }
}

/// The origin of a context.
pub fn origin(value: Option<Any<'_, '_>>) -> Result<Origin, Fault> {
    let origin = value.map(|value| Ok::<_, Fault>(Origin::parse(&name(value, "origin")?)?)).transpose()?;
    Ok(origin.unwrap_or_default())
}

/// How a record is opened.
pub fn record_options(
    durability: Any<'_, '_>,
    busy_timeout: Any<'_, '_>,
    create: Any<'_, '_>,
    allow_network: Any<'_, '_>,
) -> Result<RecordOptions, Fault> {
    const DURABILITIES: &[(&str, Durability)] =
        &[("power_loss", Durability::PowerLoss), ("process_crash", Durability::ProcessCrash)];
    let seconds = number(busy_timeout, "busy_timeout")?;
    if !(0.0..=BUSY_TIMEOUT_SECONDS_MAX).contains(&seconds) {
        let problem = format!("lies outside 0 to {BUSY_TIMEOUT_SECONDS_MAX} seconds");
        return Err(Invalid::value("busy_timeout", problem, seconds, "Give seconds").into());
    }
    Ok(RecordOptions {
        durability: choice(durability, "durability", DURABILITIES)?,
        busy_timeout: Duration::from_secs_f64(seconds),
        create: truth(create, "create")?,
        allow_network: truth(allow_network, "allow_network")?,
    })
}

/// A count of at least 0.
pub fn count(value: Any<'_, '_>, field: &str) -> Result<usize, Fault> {
    let wrong = || Invalid::value(field, "is not a whole number of at least 0", value, "Give 0 or more");
    if value.is_instance_of::<pyo3::types::PyBool>() {
        return Err(wrong().into());
    }
    Ok(value.extract::<usize>().map_err(|_| wrong())?)
}

/// A memory's id.
pub fn id(value: Any<'_, '_>, field: &str) -> Result<MemoryId, Fault> {
    Ok(name(value, field)?.parse().map_err(|fault| Invalid { field: field.to_owned(), ..fault })?)
}

fn legs(value: &Bound<'_, PyAny>) -> Result<Legs, Fault> {
    let mut legs = Legs { text: false, vector: false, key: false };
    for leg in names(value, "legs")? {
        match leg.as_str() {
            "text" => legs.text = true,
            "vector" => legs.vector = true,
            "key" => legs.key = true,
            _ => {
                return Err(Invalid::new(
                    InvalidKind::UnknownField,
                    "legs",
                    "is not a leg",
                    leg,
                    "Use text, vector or key",
                )
                .into());
            }
        }
    }
    if legs == (Legs { text: false, vector: false, key: false }) {
        return Err(Invalid::value("legs", "names no leg", "[]", "Name at least one of text, vector and key").into());
    }
    Ok(legs)
}

fn weights(value: Any<'_, '_>, fusion: Fusion) -> Result<Weights, Fault> {
    let mut weights = Weights::of(fusion);
    for (leg, weight) in items(value, "weights")? {
        let weight = number(&weight, &format!("weights.{leg}"))?;
        match leg.as_str() {
            "text" => weights.text = weight,
            "vector" => weights.vector = weight,
            _ => {
                return Err(Invalid::new(
                    InvalidKind::UnknownField,
                    "weights",
                    "is not a leg",
                    leg,
                    "Use text or vector",
                )
                .into());
            }
        }
    }
    Ok(weights)
}

fn items<'py>(fields: Any<'_, 'py>, what: &str) -> Result<Vec<(String, Bound<'py, PyAny>)>, Fault> {
    let wrong = || Invalid::value(what, "is not a dict", fields.get_type(), "Give a dict of fields");
    let fields = fields.cast::<PyDict>().map_err(|_| wrong())?;
    fields.iter().map(|(field, value)| Ok((name(&field, what)?, value))).collect()
}

fn unknown(field: &str) -> Fault {
    Invalid::new(
        InvalidKind::UnknownField,
        field,
        "is not a field",
        field,
        "See the reference for the fields of a memory",
    )
    .into()
}

fn text(value: Any<'_, '_>, field: &str, warnings: &mut Vec<String>) -> Result<String, Fault> {
    let (text, was_mended) = mended(value, field)?;
    if was_mended {
        warnings.push(format!("{field}: half a surrogate pair became U+FFFD"));
    }
    Ok(match repaired(&text) {
        None => text,
        Some(mended) => {
            warnings.push(format!("{field}: U+0000 was removed"));
            mended
        }
    })
}

/// What `read` makes of a value that may be ``None``.
pub fn optional<T>(value: Any<'_, '_>, read: impl FnOnce(Any<'_, '_>) -> Result<T, Fault>) -> Result<Option<T>, Fault> {
    if value.is_none() { Ok(None) } else { read(value).map(Some) }
}

/// A switch.
pub fn truth(value: Any<'_, '_>, field: &str) -> Result<bool, Fault> {
    Ok(value
        .extract::<bool>()
        .map_err(|_| Invalid::value(field, "is not True or False", value, "Give True or False"))?)
}

fn number(value: Any<'_, '_>, field: &str) -> Result<f64, Fault> {
    let wrong = || Invalid::value(field, "is not a number", value, "Give a number");
    if value.is_instance_of::<pyo3::types::PyBool>() {
        return Err(wrong().into());
    }
    Ok(value.extract::<f64>().map_err(|_| wrong())?)
}

fn metadata(value: Any<'_, '_>, field: &str) -> Result<Metadata, Fault> {
    if value.is_none() {
        return Ok(Metadata::default());
    }
    Ok(Metadata::new(field, &object(value, field, Use::Metadata)?)?)
}

fn names(value: Any<'_, '_>, field: &str) -> Result<Vec<String>, Fault> {
    let wrong = || Invalid::value(field, "is not a list of texts", value.get_type(), "Give a list or tuple of texts");
    if value.is_none() {
        return Ok(Vec::new());
    }
    if value.is_instance_of::<PyString>() {
        return Err(wrong().into());
    }
    // Every list of names has a lower bound of its own; this one is for lists without end.
    let items = listed(value, BATCH_MAX + 1, || wrong().into())?;
    if items.len() > BATCH_MAX {
        return Err(Invalid::over_limit(field, items.len(), BATCH_MAX, "items").into());
    }
    items.iter().enumerate().map(|(at, item)| name(item, &format!("{field}[{at}]"))).collect()
}

fn ids(value: Any<'_, '_>, field: &str) -> Result<Vec<MemoryId>, Fault> {
    let parse = |text: String| text.parse().map_err(|fault| Invalid { field: field.to_owned(), ..fault });
    Ok(names(value, field)?.into_iter().map(parse).collect::<Result<_, _>>()?)
}

fn choice<T: Copy>(value: Any<'_, '_>, field: &str, choices: &[(&str, T)]) -> Result<T, Fault> {
    let given = value.extract::<String>().ok();
    let found = choices.iter().find(|(name, _)| given.as_deref() == Some(name));
    let advice = || format!("Use one of {}", choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "));
    Ok(found.map(|(_, choice)| *choice).ok_or_else(|| Invalid::value(field, "is not known", value, advice()))?)
}
