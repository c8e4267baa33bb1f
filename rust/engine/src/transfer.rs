//! Memories on their way out into a file and in from one. Nothing here reads or writes files.
//!
//! What comes from a file is a draft like any other, through the door of imports: external, with ids and times of this
//! store. Only what an owner calls their own is kept as it stood, and even that is trusted no more than its source, its
//! context and what it was derived from (I6).

use std::collections::HashMap;
use std::ops::ControlFlow;

use memkura_model::{
    Action, Context, Door, Draft, Filter, Invalid, Memory, MemoryId, Origin, SourceType, Status, Tier, Timestamp, fold,
};
use memkura_store::{Reader, Revision, Writer};

use crate::remember::{Embedding, Receipt, check_batch};
use crate::{Engine, EngineError, trust};

/// One state of a memory that leaves the store, and the origin of its context.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaving {
    /// The state; it is the present one when nothing replaced it.
    pub state: Revision,
    /// The context's origin.
    pub origin: Origin,
}

/// What a row of a file may be known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The context that it goes into.
    pub context_id: String,
    /// Its id in the store that it came from, if it says one of our form.
    pub memory_id: Option<MemoryId>,
    /// The idempotency words that an earlier import gave it: that of its present state, then those of its earlier ones.
    pub words: Vec<String>,
    /// When it stops being returned.
    pub expires_at: Option<Timestamp>,
}

/// What this store knows of a row of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    New,
    /// Nothing, and no read would ever bring it up.
    Expired,
    /// It is there: in use, expired, or replaced by a later memory.
    Here(MemoryId),
    /// It was forgotten here.
    Forgotten(MemoryId),
    /// It was purged here.
    Purged(MemoryId),
}

/// A row of somebody's file, to be remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct Drafted {
    /// What to remember.
    pub draft: Draft,
    /// Its id in the store that it came from.
    pub memory_id: Option<MemoryId>,
    /// Its vectors.
    pub embedding: Embedding,
}

/// A state of a memory in an owner's file, to be kept as it stood.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of Memory and of Revision")]
pub struct Kept {
    pub draft: Draft,
    pub origin: Origin,
    pub memory_id: MemoryId,
    pub status: Status,
    pub source_type: SourceType,
    pub trust_tier: Tier,
    pub superseded_by: Option<MemoryId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub last_seen: Option<Timestamp>,
    pub access_count: i64,
    pub version: i64,
    pub action: Action,
    pub door: Door,
    pub replaced_at: Option<Timestamp>,
}

/// What became of a row: what was known of it before, and what was written.
pub type Taken = (Standing, Receipt);

/// What of an owner's file belongs together: the earlier states of a memory and its present one, which has a place.
struct Life {
    at: usize,
    context: Context,
    standing: Standing,
    tier: Tier,
    earlier: Vec<Kept>,
    present: Kept,
    embedding: Embedding,
    words: Vec<String>,
}

impl Engine {
    /// Hands over what of one context, or of all, can still be asked for and passes `filter`: memories in use and those
    /// that others replaced, in the order of writing, each with its earlier states before it when `with_history`. All of
    /// it is of one moment. Pieces come until `each` has had enough.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn export(
        &self,
        context_id: Option<&str>,
        filter: &Filter,
        with_history: bool,
        now: Timestamp,
        mut each: impl FnMut(Vec<Leaving>) -> ControlFlow<()>,
    ) -> Result<(), EngineError> {
        let inside = self.enter()?;
        let now = self.steady(now);
        let each = |piece| {
            let _out = self.gate.call_out();
            each(piece)
        };
        let outcome = self.hand_over(context_id, filter, with_history, now, each);
        drop(inside);
        if self.gate.is_shut() {
            // Perhaps from within `each`, where it could not wait for this export.
            self.close();
        }
        outcome
    }

    fn hand_over(
        &self,
        context_id: Option<&str>,
        filter: &Filter,
        with_history: bool,
        now: Timestamp,
        mut each: impl FnMut(Vec<Leaving>) -> ControlFlow<()>,
    ) -> Result<(), EngineError> {
        // Nothing of a context that there is not would be written over what is kept of one.
        let known = |name: &str| self.context(name)?.ok_or_else(|| EngineError::UnknownContext(name.to_owned()));
        let named = context_id.map(known).transpose()?;
        self.record.read(|reader| {
            let contexts = match named {
                Some(context) => vec![context],
                None => reader.contexts()?,
            };
            let mut piece = Piece::default();
            for context in contexts {
                let mut outcome = Ok(ControlFlow::Continue(()));
                reader.present(&context, |state| {
                    if state.memory.has_expired(now) || !filter.matches(&state.memory) {
                        return ControlFlow::Continue(());
                    }
                    let states =
                        if with_history { reader.history(&context, state.memory.row) } else { Ok(vec![state]) };
                    outcome = states.map(|states| {
                        states.into_iter().try_for_each(|state| {
                            let full = piece.add(Leaving { state, origin: context.origin });
                            full.map_or(ControlFlow::Continue(()), &mut each)
                        })
                    });
                    if let Ok(ControlFlow::Continue(())) = outcome {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })?;
                if outcome?.is_break() {
                    return Ok(());
                }
            }
            let _ = each(piece.states);
            Ok(())
        })
    }

    /// What the store knows of the rows of a file, all at one moment.
    ///
    /// # Errors
    /// When a context's name cannot be one, or the record cannot be read.
    pub fn standings(&self, rows: &[Named], now: Timestamp) -> Result<Vec<Standing>, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        let contexts: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(at, row)| self.context(&row.context_id).map_err(|error| error.in_item(at)))
            .collect::<Result<_, _>>()?;
        self.record.read(|reader| {
            let standings = rows.iter().zip(&contexts).map(|(row, context)| {
                let known = match context {
                    Some(context) => standing(reader, context, row.memory_id, &row.words)?,
                    None => Standing::New,
                };
                let is_over = row.expires_at.is_some_and(|end| end <= now);
                Ok(if is_over && known == Standing::New { Standing::Expired } else { known })
            });
            standings.collect()
        })
    }

    /// Remembers the rows of somebody's file, all or none. What is here already, or was forgotten or purged here, is left as
    /// it is; `again` brings back what is gone.
    ///
    /// # Errors
    /// As [`Engine::remember_many`].
    pub fn import(&self, rows: Vec<Drafted>, again: bool, now: Timestamp) -> Result<Vec<Taken>, EngineError> {
        const DOOR: Door = Door::Import;
        let _inside = self.enter()?;
        check_batch(rows.len(), "rows")?;
        let now = self.steady(now);
        let mut checked = Vec::with_capacity(rows.len());
        for (at, Drafted { draft, memory_id, embedding }) in rows.into_iter().enumerate() {
            let embedding = draft.check().and_then(|()| self.checked(embedding));
            checked.push((draft, memory_id, embedding.map_err(|invalid| invalid.in_item(at))?));
        }
        let taken = self.record.write(|writer| {
            let rows = checked.into_iter().enumerate().map(|(at, (draft, memory_id, embedding))| {
                let context = writer.context_or_new(&draft.context_id, DOOR.origin_of_new_context(), now)?;
                let word = draft.idempotency_key.as_deref();
                let standing = standing(writer, &context, memory_id, draft.idempotency_key.as_slice())?;
                match standing {
                    Standing::New | Standing::Expired => {}
                    Standing::Forgotten(_) | Standing::Purged(_) if again => {
                        // The word named the memory that is gone; from now on it names this one.
                        word.map_or(Ok(()), |word| writer.forget_idempotency(&context, word))?;
                    }
                    Standing::Here(id) | Standing::Forgotten(id) | Standing::Purged(id) => {
                        return Ok((standing, Receipt::untouched(id)));
                    }
                }
                let receipt = self.write_draft(writer, &draft, &embedding, DOOR, now);
                let receipt = receipt.map_err(|error| error.in_item(at))?;
                Ok::<_, EngineError>((standing, receipt))
            });
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        self.follow_own_write();
        Ok(taken)
    }

    /// Keeps the states of an owner's file as they stood, all or none: the earlier states of a memory come before its
    /// present one. As with [`Engine::import`], nothing is changed that is here, and what is gone comes back `again` alone.
    /// Answers for each memory, in the order of the file.
    ///
    /// # Errors
    /// When a state cannot be one; the field is named with the state's place.
    pub fn adopt(
        &self,
        states: Vec<(Kept, Embedding)>,
        again: bool,
        now: Timestamp,
    ) -> Result<Vec<Taken>, EngineError> {
        let _inside = self.enter()?;
        check_batch(states.len(), "rows")?;
        let now = self.steady(now);
        let mut checked = Vec::with_capacity(states.len());
        for (at, (kept, embedding)) in states.into_iter().enumerate() {
            let embedding = check(&kept).and_then(|()| self.checked(embedding));
            checked.push((kept, embedding.map_err(|invalid| invalid.in_item(at))?));
        }
        let taken = self.record.write(|writer| {
            let mut lives = Vec::new();
            let mut earlier: Vec<Kept> = Vec::new();
            for (at, (kept, embedding)) in checked.into_iter().enumerate() {
                check_order(earlier.last(), &kept).map_err(|invalid| invalid.in_item(at))?;
                if kept.replaced_at.is_some() {
                    earlier.push(kept);
                    continue;
                }
                let earlier = std::mem::take(&mut earlier);
                lives.push(life(writer, at, earlier, kept, embedding, now)?);
            }
            if !earlier.is_empty() {
                return Err(alone().into());
            }
            sink_tiers(writer, &mut lives)?;
            let taken = lives.iter().map(|life| {
                let receipt = self.write_life(writer, life, again, now).map_err(|error| error.in_item(life.at))?;
                Ok::<_, EngineError>((life.standing, receipt))
            });
            taken.collect::<Result<Vec<_>, _>>()
        })?;
        self.follow_own_write();
        Ok(taken)
    }

    fn write_life(
        &self,
        writer: &Writer<'_>,
        life: &Life,
        again: bool,
        now: Timestamp,
    ) -> Result<Receipt, EngineError> {
        let mut memory = Memory { trust_tier: life.tier, ..self.kept_memory(life, &life.present, now) };
        match life.standing {
            Standing::Here(id) => return Ok(Receipt::untouched(id)),
            Standing::Forgotten(id) | Standing::Purged(id) if !again => return Ok(Receipt::untouched(id)),
            _ => {}
        }
        trust::may_deliver(memory.delivery_mode, memory.trust_tier)?;
        see_key_free(writer, &life.context, &memory)?;
        for word in &life.words {
            // It named a memory that is gone; the one that comes back is known by its id.
            let known = present_standing(writer, &life.context, None, Some(word))?;
            if matches!(known, Standing::Forgotten(_) | Standing::Purged(_)) {
                writer.forget_idempotency(&life.context, word)?;
            }
        }
        if let Standing::Forgotten(id) = life.standing
            && id == memory.memory_id
        {
            // It has a history here, which goes on.
            let old = writer.by_id(&life.context, id)?.ok_or_else(|| EngineError::not_found(id))?;
            memory = Memory {
                row: old.row,
                created_at: old.created_at,
                updated_at: now.max(old.updated_at),
                version: old.version + 1,
                text_version: old.version + 1,
                ..memory
            };
            writer.replace(&memory, Action::Update, Door::Python)?;
        } else {
            let texts = text_versions(life);
            memory.text_version = texts[life.earlier.len()];
            memory.row = writer.insert_as(&memory, life.present.action, life.present.door)?;
            for (kept, text_version) in life.earlier.iter().zip(texts) {
                let Some(replaced_at) = kept.replaced_at else { continue };
                let claimed = trust::claimed(kept.trust_tier, kept.source_type, &life.context);
                // No earlier state is trusted more than the present one, whose sources are all known.
                let trust_tier =
                    claimed.min(life.tier).min(sources_tier(writer, &life.context, &kept.draft.derived_from)?);
                let state = self.kept_memory(life, kept, now);
                let state = Memory { row: memory.row, trust_tier, text_version, ..state };
                writer.insert_revision(&state, kept.action, kept.door, replaced_at)?;
            }
        }
        memory.embedded = self.write_vectors(writer, &memory, &life.embedding, Door::Python, now)?;
        Ok(Receipt::of(&memory, true))
    }

    fn kept_memory(&self, life: &Life, kept: &Kept, now: Timestamp) -> Memory {
        Memory {
            memory_id: kept.memory_id,
            status: kept.status,
            source_type: kept.source_type,
            superseded_by: kept.superseded_by,
            created_at: kept.created_at,
            updated_at: kept.updated_at,
            last_seen: kept.last_seen,
            access_count: kept.access_count,
            version: kept.version,
            ..self.drafted(&kept.draft, &life.context, kept.door, now)
        }
    }
}

/// States that are handed over together.
#[derive(Default)]
struct Piece {
    states: Vec<Leaving>,
    bytes: usize,
}

impl Piece {
    /// Adds a state. What there is by then, when that is enough.
    fn add(&mut self, leaving: Leaving) -> Option<Vec<Leaving>> {
        /// States handed over at once: each call into Python costs as much as some of them.
        const STATES: usize = 256;
        /// Texts held in memory for it.
        const BYTES: usize = 4 << 20;
        let memory = &leaving.state.memory;
        self.bytes += memory.summary.len() + memory.content.as_ref().map_or(0, String::len);
        self.bytes += memory.metadata.as_str().len();
        self.states.push(leaving);
        if self.states.len() < STATES && self.bytes < BYTES {
            return None;
        }
        self.bytes = 0;
        Some(std::mem::take(&mut self.states))
    }
}

/// What `context` knows of a row by the id that it had elsewhere, or by the words that an earlier import gave its states.
///
/// A row is here when its present state is. A text that it had before may be here too, as another memory; but one that is
/// gone from here does not come back as the history of another.
fn standing(
    reader: &Reader<'_>,
    context: &Context,
    memory_id: Option<MemoryId>,
    words: &[String],
) -> Result<Standing, EngineError> {
    let (word, earlier) = words.split_first().map_or((None, words), |(word, earlier)| (Some(word), earlier));
    let found = present_standing(reader, context, memory_id, word)?;
    for word in earlier.iter().filter(|_| found == Standing::New) {
        let gone = present_standing(reader, context, None, Some(word))?;
        if matches!(gone, Standing::Forgotten(_) | Standing::Purged(_)) {
            return Ok(gone);
        }
    }
    Ok(found)
}

fn present_standing(
    reader: &Reader<'_>,
    context: &Context,
    memory_id: Option<MemoryId>,
    word: Option<&String>,
) -> Result<Standing, EngineError> {
    let mut found = Standing::New;
    let by_word = word.map(|word| reader.by_idempotency(context, word)).transpose()?.flatten();
    for (id, was_here) in [(by_word, true), (memory_id, false)] {
        let Some(id) = id else { continue };
        match reader.by_id(context, id)? {
            Some(memory) if memory.status != Status::Retired || memory.superseded_by.is_some() => {
                return Ok(Standing::Here(id));
            }
            Some(_) => found = Standing::Forgotten(id),
            None if was_here || reader.purged(context, id)?.is_some() => found = Standing::Purged(id),
            None => {}
        }
    }
    Ok(found)
}

/// The version at which the text of each state was first seen, earlier ones first.
fn text_versions(life: &Life) -> Vec<i64> {
    let mut versions: Vec<i64> = Vec::new();
    let mut before: Option<&Draft> = None;
    for kept in life.earlier.iter().chain([&life.present]) {
        let is_same = before.is_some_and(|before| same_text(before, &kept.draft));
        versions.push(versions.last().filter(|_| is_same).map_or(kept.version, |version| *version));
        before = Some(&kept.draft);
    }
    versions
}

fn same_text(one: &Draft, other: &Draft) -> bool {
    one.summary == other.summary && one.content == other.content
}

/// Refuses a state that no store of ours could have written.
fn check(kept: &Kept) -> Result<(), Invalid> {
    /// More changes than a memory sees in a lifetime of the store.
    const COUNT_MAX: i64 = 1 << 40;
    kept.draft.check()?;
    let never = |field: &str, problem: &str, value: String| {
        Err(Invalid::value(field, problem, value, "Only what export wrote can be taken as one's own"))
    };
    if kept.updated_at < kept.created_at {
        return never("updated_at", "lies before created_at", kept.updated_at.to_string());
    }
    if let Some(end) = kept.replaced_at.filter(|end| *end < kept.updated_at) {
        return never("replaced_at", "lies before updated_at", end.to_string());
    }
    if !(1..=COUNT_MAX).contains(&kept.version) {
        return never("version", "counts changes, from 1", kept.version.to_string());
    }
    if !(0..=COUNT_MAX).contains(&kept.access_count) {
        return never("access_count", "counts uses, from 0", kept.access_count.to_string());
    }
    if matches!(kept.action, Action::Forget | Action::Purge) && kept.status != Status::Retired {
        return never("action", "is not that of a memory in use", kept.action.as_str().to_owned());
    }
    if kept.superseded_by == Some(kept.memory_id) {
        return never("superseded_by", "is the memory itself", kept.memory_id.to_string());
    }
    if kept.superseded_by.is_some() && kept.status != Status::Retired {
        return never("status", "is that of a memory in use, which was replaced", kept.status.as_str().to_owned());
    }
    if kept.replaced_at.is_none() && kept.status == Status::Retired && kept.superseded_by.is_none() {
        return never("status", "is that of a forgotten memory", kept.status.as_str().to_owned());
    }
    Ok(())
}

/// Refuses a state that does not continue the one before it.
fn check_order(before: Option<&Kept>, kept: &Kept) -> Result<(), Invalid> {
    let Some(before) = before else { return Ok(()) };
    if before.memory_id != kept.memory_id || before.draft.context_id != kept.draft.context_id {
        return Err(alone());
    }
    if kept.version <= before.version || before.replaced_at.is_some_and(|end| kept.updated_at < end) {
        let problem = "does not follow the state before it";
        return Err(Invalid::value("version", problem, kept.version, "States of a memory stand oldest first"));
    }
    Ok(())
}

fn alone() -> Invalid {
    let problem = "follows an earlier state of a memory that is not there itself";
    Invalid::value("replaced_at", problem, "a state alone", "Earlier states of a memory stand right before it")
}

fn life(
    writer: &Writer<'_>,
    at: usize,
    earlier: Vec<Kept>,
    present: Kept,
    embedding: Embedding,
    now: Timestamp,
) -> Result<Life, EngineError> {
    let context = writer.context_or_new(&present.draft.context_id, present.origin, now)?;
    let id = present.memory_id;
    if writer.context_of(id)?.is_some_and(|number| number != context.number) {
        let problem = "is the id of a memory in another context of this store";
        return Err(Invalid::value("memory_id", problem, id, "Import it without claiming it as your own")
            .in_item(at)
            .into());
    }
    let words = words(&earlier, &present);
    let standing = standing(writer, &context, Some(id), &words)?;
    let mut tier = trust::claimed(present.trust_tier, present.source_type, &context);
    if let Standing::Here(id) = standing {
        // What the file says of a memory that is here changes nothing, for what was derived from it neither.
        tier = tier.min(sources_tier(writer, &context, &[id])?);
    }
    Ok(Life { at, context, standing, tier, earlier, present, embedding, words })
}

/// The words by which the states of a memory would be known if they had been imported as somebody's, the present one's first.
fn words(earlier: &[Kept], present: &Kept) -> Vec<String> {
    let states = std::iter::once(present).chain(earlier.iter().rev());
    states.filter_map(|state| state.draft.idempotency_key.clone()).collect()
}

/// Lets each memory be trusted no more than what it was derived from (I6), of the file or of the store.
fn sink_tiers(writer: &Writer<'_>, lives: &mut [Life]) -> Result<(), EngineError> {
    let mut places = HashMap::new();
    for (at, life) in lives.iter().enumerate() {
        if places.insert(life.present.memory_id, at).is_some() {
            let problem = "stands in the file twice";
            return Err(Invalid::value("memory_id", problem, life.present.memory_id, "A memory has one present state")
                .in_item(life.at)
                .into());
        }
    }
    let mut derived: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut low = Vec::new();
    for (at, life) in lives.iter_mut().enumerate() {
        let mut elsewhere = Vec::new();
        for id in &life.present.draft.derived_from {
            match places.get(id) {
                Some(source) => derived.entry(*source).or_default().push(at),
                None => elsewhere.push(*id),
            }
        }
        life.tier = life.tier.min(sources_tier(writer, &life.context, &elsewhere)?);
        if life.tier == Tier::External {
            low.push(at);
        }
    }
    while let Some(source) = low.pop() {
        for at in derived.remove(&source).unwrap_or_default() {
            if lives[at].tier == Tier::Trusted {
                lives[at].tier = Tier::External;
                low.push(at);
            }
        }
    }
    Ok(())
}

/// The lowest tier among those sources that this context has.
fn sources_tier(reader: &Reader<'_>, context: &Context, sources: &[MemoryId]) -> Result<Tier, EngineError> {
    let mut tier = Tier::Trusted;
    for id in sources {
        tier = tier.min(reader.by_id(context, *id)?.map_or(Tier::Trusted, |source| source.trust_tier));
    }
    Ok(tier)
}

/// Refuses a memory in use whose key another one has.
fn see_key_free(writer: &Writer<'_>, context: &Context, memory: &Memory) -> Result<(), EngineError> {
    let (Some(key), Some(scope)) = (&memory.key, &memory.scope) else { return Ok(()) };
    if memory.status == Status::Retired {
        return Ok(());
    }
    match writer.by_key(context, scope, &fold(key))? {
        Some(other) if other.memory_id != memory.memory_id => {
            let advice = "Forget that one first, or import the file without claiming it as your own";
            Err(Invalid::value("key", "names another memory of this store", key, advice).into())
        }
        _ => Ok(()),
    }
}
