//! Remembering: checked, stamped, durable, and visible to every later read.

use std::sync::Arc;

use memkura_index::vector::normalise;
use memkura_model::limits::{BATCH_MAX, CHUNKS_MAX};
use memkura_model::{
    Action, Context, Door, Draft, Invalid, InvalidKind, Memory, MemoryId, Status, Tier, Timestamp, fingerprint, fold,
    is_same_text, plain_words,
};
use memkura_store::{Embedder, EmbedderState, Writer};

use crate::contexts::DEFAULT_SCOPE;
use crate::error::invalid_vector;
use crate::{Engine, EngineError, trust};

/// The vectors of a text, or why there are none.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Embedding {
    /// There is no embedder, or it was not asked.
    #[default]
    None,
    /// One vector for each part of the text, one after the other, each of `dimensions` components.
    Vectors {
        /// Components of each vector.
        dimensions: usize,
        /// The components.
        values: Vec<f32>,
        /// The embedder that made them; `None` when the caller did.
        made_by: Option<String>,
    },
    /// The embedder failed; the text is kept and its vector made later.
    Failed(String),
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The memory.
    pub memory_id: MemoryId,
    /// Whether it is new: not an overwritten key, a repeated write or a folded duplicate.
    pub created: bool,
    /// Its version.
    pub version: i64,
    /// Other memories in use that say the same in the same words, oldest first.
    pub duplicates: Vec<MemoryId>,
    /// Whether it has a vector.
    pub embedded: bool,
}

/// Most memories with the words of a new one that are looked at and reported.
const DUPLICATES_MAX: usize = 20;

impl Engine {
    /// Remembers one draft.
    ///
    /// # Errors
    /// When a field cannot be taken, a source is unknown, or the record cannot be written. Nothing was written then.
    pub fn remember(
        &self,
        draft: Draft,
        embedding: Embedding,
        door: Door,
        now: Timestamp,
    ) -> Result<Receipt, EngineError> {
        let mut receipts = self.remember_all(vec![(draft, embedding)], |_, error| error, door, now)?;
        // One draft gives one receipt.
        Ok(receipts.swap_remove(0))
    }

    /// Remembers many drafts, all or none, for the price of one sync. `first` is the place of the first among more that the
    /// caller has.
    ///
    /// # Errors
    /// As [`Engine::remember`]; the field is named with the draft's place (`[17].summary`).
    pub fn remember_many(
        &self,
        drafts: Vec<(Draft, Embedding)>,
        first: usize,
        door: Door,
        now: Timestamp,
    ) -> Result<Vec<Receipt>, EngineError> {
        self.remember_all(drafts, |at, error| error.in_item(first + at), door, now)
    }

    fn remember_all(
        &self,
        drafts: Vec<(Draft, Embedding)>,
        placed: impl Fn(usize, EngineError) -> EngineError,
        door: Door,
        now: Timestamp,
    ) -> Result<Vec<Receipt>, EngineError> {
        let _inside = self.enter()?;
        check_batch(drafts.len(), "drafts")?;
        let now = self.steady(now);
        let mut checked = Vec::with_capacity(drafts.len());
        for (at, (draft, embedding)) in drafts.into_iter().enumerate() {
            let embedding = draft.check().and_then(|()| self.checked(embedding));
            checked.push((draft, embedding.map_err(|invalid| placed(at, invalid.into()))?));
        }
        let receipts = self.record.write(|writer| {
            let written = checked.into_iter().enumerate().map(|(at, (draft, embedding))| {
                self.write_draft(writer, &draft, &embedding, door, now).map_err(|error| placed(at, error))
            });
            written.collect::<Result<Vec<_>, _>>()
        })?;
        self.follow_own_write();
        Ok(receipts)
    }

    /// Lets the indexes follow what was just committed. If that fails the write still stands, and the next read tries
    /// again and reports.
    pub(crate) fn follow_own_write(&self) {
        let _ = self.catch_up();
        self.seal_soon();
    }

    pub(crate) fn write_draft(
        &self,
        writer: &Writer<'_>,
        draft: &Draft,
        embedding: &Embedding,
        door: Door,
        now: Timestamp,
    ) -> Result<Receipt, EngineError> {
        let context = writer.context_or_new(&draft.context_id, door.origin_of_new_context(), now)?;
        if let Some(receipt) = repeated(writer, &context, draft)? {
            return Ok(receipt);
        }
        check_end(draft, door, now)?;
        let tier = trust::tier(writer, &context, door, &draft.derived_from)?;
        let same = duplicates(writer, &context, draft, now)?;
        if let Some(first) = same.iter().find(|same| draft.fold_duplicates && stands_for(same, draft, tier)) {
            finish(writer, &context, draft, (first, tier), door, now)?;
            return Ok(Receipt { duplicates: vec![first.memory_id], ..Receipt::of(first, false) });
        }
        trust::may_deliver(draft.delivery_mode, tier)?;
        let old = match &draft.key {
            Some(key) => writer.by_key(&context, draft.scope.as_deref().unwrap_or(DEFAULT_SCOPE), &fold(key))?,
            None => None,
        };
        if let Some(old) = old.as_ref().filter(|old| old.trust_tier > tier) {
            return Err(key_taken("key", old));
        }
        let old = match old {
            // What has expired is gone: its key is free, and its text does not live on as the history of another memory.
            Some(old) if old.has_expired(now) => {
                writer.replace(&retired(&old, now), Action::Forget, door)?;
                None
            }
            old => old,
        };
        let mut memory = self.drafted(draft, &context, door, now);
        memory.trust_tier = tier;
        match &old {
            None => memory.row = writer.insert(&memory, door)?,
            Some(old) => {
                memory = over(old, memory);
                writer.replace(&memory, Action::Update, door)?;
            }
        }
        memory.embedded = self.write_vectors(writer, &memory, embedding, door, now)?;
        finish(writer, &context, draft, (&memory, tier), door, now)?;
        let duplicates = same.iter().map(|same| same.memory_id).filter(|id| *id != memory.memory_id).collect();
        Ok(Receipt { duplicates, ..Receipt::of(&memory, old.is_none()) })
    }

    pub(crate) fn drafted(&self, draft: &Draft, context: &Context, door: Door, now: Timestamp) -> Memory {
        Memory {
            row: 0,
            memory_id: self.next_id(now),
            context: context.number,
            context_id: Arc::from(context.name.as_str()),
            kind: draft.kind.clone(),
            scope: draft.key.as_ref().map(|_| draft.scope.clone().unwrap_or_else(|| DEFAULT_SCOPE.to_owned())),
            key: draft.key.clone(),
            summary: draft.summary.clone(),
            content: draft.content.clone(),
            tags: draft.tags.clone(),
            metadata: draft.metadata.clone(),
            delivery_mode: draft.delivery_mode,
            trigger: draft.trigger.clone(),
            importance: draft.importance,
            confidence: draft.confidence,
            proof: draft.proof.clone(),
            status: Status::Active,
            source_type: door.source_type(),
            trust_tier: context.origin.tier(),
            derived_from: draft.derived_from.clone(),
            superseded_by: None,
            session: draft.session.clone(),
            event_time: draft.event_time,
            expires_at: draft.expires_at,
            created_at: now,
            updated_at: now,
            last_seen: None,
            access_count: 0,
            decay_rate: draft.effective_decay_rate(),
            version: 1,
            text_version: 1,
            embedded: false,
        }
    }

    /// Checks an embedding before anything is written.
    pub(crate) fn checked(&self, embedding: Embedding) -> Result<Embedding, Invalid> {
        let Embedding::Vectors { dimensions, made_by, .. } = &embedding else { return Ok(embedding) };
        let expected = match self.wanted() {
            // The engine has gone over to another embedder since: what is of no use now is left out when it is written.
            Some((name, _)) if made_by.as_ref().is_some_and(|by| *by != name) => *dimensions,
            Some((_, dimensions)) => dimensions,
            None => crate::open::locked(&self.following).bound.as_ref().map_or(*dimensions, |bound| bound.dimensions),
        };
        check_vectors(&embedding, expected)?;
        Ok(embedding)
    }

    /// Writes a memory's vectors beside its text. Says whether the bound embedder's vector is there.
    pub(crate) fn write_vectors(
        &self,
        writer: &Writer<'_>,
        memory: &Memory,
        embedding: &Embedding,
        door: Door,
        now: Timestamp,
    ) -> Result<bool, EngineError> {
        let (made, vectors) = match embedding {
            Embedding::None => return Ok(memory.embedded),
            Embedding::Vectors { dimensions, values, made_by } => {
                (Some((made_by.as_deref(), *dimensions)), Ok(values.as_slice()))
            }
            Embedding::Failed(reason) => (None, Err(reason.as_str())),
        };
        let Some(embedder) = self.embedder_for(writer, made, door, now)? else { return Ok(memory.embedded) };
        writer.put_vectors(&embedder, memory.row, memory.text_version, vectors)?;
        let is_embedded = embedder.state == EmbedderState::Bound && vectors.is_ok();
        if is_embedded {
            writer.mark_embedded(memory.row)?;
        }
        Ok(is_embedded || memory.embedded)
    }

    /// The embedder of the store that vectors belong to (made by that one, if it is known, of that dimension), bound now if
    /// the store has none yet.
    ///
    /// `None` when the store is bound to another one: vectors of two models are never compared (I11).
    fn embedder_for(
        &self,
        writer: &Writer<'_>,
        made: Option<(Option<&str>, usize)>,
        door: Door,
        now: Timestamp,
    ) -> Result<Option<Embedder>, EngineError> {
        /// The fingerprint of vectors that callers bring themselves.
        const GIVEN: &str = "given";
        let bound = writer.embedder(EmbedderState::Bound)?;
        let wanted = self.wanted();
        let (name, dimensions) = match (&wanted, made) {
            (_, Some((Some(made_by), dimensions))) => (made_by, dimensions),
            (Some((name, dimensions)), _) => (name.as_str(), *dimensions),
            (None, Some((None, dimensions))) => (bound.as_ref().map_or(GIVEN, |bound| &bound.name), dimensions),
            (None, None) => return Ok(bound),
        };
        if let (None, Some(bound)) = (&wanted, bound.as_ref().filter(|bound| bound.dimensions != dimensions)) {
            // Another write, perhaps of this very batch, has bound the store since the vector was checked.
            return Err(wrong_length(dimensions, bound.dimensions).into());
        }
        match bound {
            // Vectors that a file brings along do not decide what this store's vectors are.
            None if wanted.is_none() && door != Door::Python => Ok(None),
            None => Ok(Some(writer.add_embedder(name, dimensions, EmbedderState::Bound, now)?)),
            Some(bound) if bound.is_by(name, dimensions) => Ok(Some(bound)),
            Some(_) => {
                Ok(writer.embedder(EmbedderState::Building)?.filter(|building| building.is_by(name, dimensions)))
            }
        }
    }
}

/// Refuses more than one transaction takes in.
pub(crate) fn check_batch(count: usize, of: &str) -> Result<(), Invalid> {
    if count > BATCH_MAX { Err(Invalid::over_limit("items", count, BATCH_MAX, of)) } else { Ok(()) }
}

impl Receipt {
    /// Nothing was written: what was asked for is known by this id, or was.
    pub(crate) const fn untouched(memory_id: MemoryId) -> Self {
        Self { memory_id, created: false, version: 0, duplicates: Vec::new(), embedded: false }
    }

    pub(crate) fn of(memory: &Memory, created: bool) -> Self {
        let Memory { memory_id, version, embedded, .. } = *memory;
        Self { memory_id, created, version, duplicates: Vec::new(), embedded }
    }
}

/// The refusal to let an outside writer change a trusted memory.
pub(crate) fn key_taken(field: &str, memory: &Memory) -> EngineError {
    let key = memory.key.clone().unwrap_or_else(|| memory.memory_id.to_string());
    EngineError::KeyTaken { field: field.to_owned(), key }
}

/// Refuses what no read would ever show. Whether a file's row is over is seen before it is taken; one that ends while it is
/// written has ended like any other.
fn check_end(draft: &Draft, door: Door, now: Timestamp) -> Result<(), Invalid> {
    match draft.expires_at.filter(|end| *end <= now && door != Door::Import) {
        Some(end) => {
            let problem = format!("is not after the present, {now}, so that no read would ever show the memory");
            Err(Invalid::value("expires_at", problem, end, "Give a later instant, or leave it out"))
        }
        None => Ok(()),
    }
}

/// Refuses vectors that no index could hold.
///
/// # Errors
/// When there are none, too many, or one is of another length than `expected`, not finite, or zero.
pub fn check_vectors(embedding: &Embedding, expected: usize) -> Result<(), Invalid> {
    let Embedding::Vectors { dimensions, values, .. } = embedding else { return Ok(()) };
    if *dimensions != expected || values.is_empty() {
        return Err(wrong_length(*dimensions, expected));
    }
    let rows = values.chunks_exact(*dimensions);
    if rows.len() > CHUNKS_MAX {
        return Err(Invalid::over_limit("embedding", rows.len(), CHUNKS_MAX, "vectors"));
    }
    rows.map(normalise).collect::<Result<Vec<_>, _>>().map_err(|error| invalid_vector("embedding", &error))?;
    Ok(())
}

pub(crate) fn wrong_length(dimensions: usize, expected: usize) -> Invalid {
    let problem = format!("has {dimensions} components, the store's embedder has {expected}");
    let advice = "Use the store's embedder, or reindex with the new one";
    Invalid::new(InvalidKind::Vector, "embedding", problem, dimensions, advice)
}

/// The answer to a write whose idempotency word was seen before.
fn repeated(writer: &Writer<'_>, context: &Context, draft: &Draft) -> Result<Option<Receipt>, EngineError> {
    let Some(word) = &draft.idempotency_key else { return Ok(None) };
    let Some(id) = writer.by_idempotency(context, word)? else { return Ok(None) };
    let known = writer.by_id(context, id)?;
    Ok(Some(known.map_or(Receipt::untouched(id), |memory| Receipt::of(&memory, false))))
}

/// The newest memories that a read shows now and that say the same in the same words, oldest first. The fingerprint finds
/// them, the texts decide. However often a text was written, a few tell that it was.
fn duplicates(
    writer: &Writer<'_>,
    context: &Context,
    draft: &Draft,
    now: Timestamp,
) -> Result<Vec<Memory>, EngineError> {
    let fingerprint = fingerprint(&draft.summary, draft.content.as_deref());
    let found = writer.by_fingerprint(context, fingerprint, DUPLICATES_MAX)?;
    let says_the_same = |memory: &Memory| same_words(&memory.summary, memory.content.as_deref(), draft);
    Ok(found.into_iter().rev().filter(|memory| memory.is_visible(now) && says_the_same(memory)).collect())
}

fn same_words(summary: &str, content: Option<&str>, draft: &Draft) -> bool {
    let one = [plain_words(summary), plain_words(content.unwrap_or_default())];
    one == [plain_words(&draft.summary), plain_words(draft.content.as_deref().unwrap_or_default())]
}

/// What else a draft asks for once its memory is there: to take another's place, to be known by a word. What the writer
/// may do goes by the `tier` of the draft, not by that of a memory that it was folded into.
fn finish(
    writer: &Writer<'_>,
    context: &Context,
    draft: &Draft,
    (memory, tier): (&Memory, Tier),
    door: Door,
    now: Timestamp,
) -> Result<(), EngineError> {
    // Whoever writes a key again replaces the memory of that key; it need not take its own place too.
    if let Some(id) = draft.supersedes.filter(|id| *id != memory.memory_id) {
        supersede(writer, context, id, (memory, tier), door, now)?;
    }
    if let Some(word) = &draft.idempotency_key {
        writer.note_idempotency(context, word, memory.memory_id)?;
    }
    Ok(())
}

/// Whether nothing is lost when a memory is kept for a draft: the same text, under the same key, for as long at least, and
/// trusted no less than the `tier` that the draft would have.
fn stands_for(memory: &Memory, draft: &Draft, tier: Tier) -> bool {
    let outlives = memory.expires_at.is_none_or(|end| draft.expires_at.is_some_and(|wanted| wanted <= end));
    let contents = [&memory.content, &draft.content].map(|content| content.as_deref().unwrap_or_default());
    let is_same = is_same_text(&memory.summary, &draft.summary) && is_same_text(contents[0], contents[1]);
    is_same && outlives && memory.trust_tier >= tier && has_key_of(memory, draft)
}

/// Whether a memory can be found under the key that a draft asks for: none, or the same one.
fn has_key_of(memory: &Memory, draft: &Draft) -> bool {
    let folded = |key: &Option<String>| key.as_deref().map(fold);
    let scope = draft.key.as_ref().map(|_| draft.scope.as_deref().unwrap_or(DEFAULT_SCOPE));
    folded(&memory.key) == folded(&draft.key) && memory.scope.as_deref() == scope
}

/// `new` written over the memory that held its key before.
fn over(old: &Memory, new: Memory) -> Memory {
    let version = old.version + 1;
    let same_text = old.summary == new.summary && old.content == new.content;
    Memory {
        row: old.row,
        memory_id: old.memory_id,
        created_at: old.created_at,
        // A clock that another process had ahead of ours must not turn the history around.
        updated_at: new.updated_at.max(old.updated_at),
        last_seen: old.last_seen,
        access_count: old.access_count,
        version,
        text_version: if same_text { old.text_version } else { version },
        embedded: same_text && old.embedded,
        ..new
    }
}

/// Retires the memory that `by` takes the place of.
fn supersede(
    writer: &Writer<'_>,
    context: &Context,
    id: MemoryId,
    (by, tier): (&Memory, Tier),
    door: Door,
    now: Timestamp,
) -> Result<(), EngineError> {
    let old = writer.by_id(context, id)?.filter(|old| old.status.is_recallable());
    let old = old.ok_or_else(|| EngineError::named_nothing("supersedes", id))?;
    if old.trust_tier > tier {
        return Err(key_taken("supersedes", &old));
    }
    let retired = Memory { superseded_by: Some(by.memory_id), ..retired(&old, now) };
    Ok(writer.replace(&retired, Action::Supersede, door)?)
}

/// A memory taken out of use.
pub(crate) fn retired(memory: &Memory, now: Timestamp) -> Memory {
    Memory {
        status: Status::Retired,
        // Whatever took its place before: nothing brings it up any more.
        superseded_by: None,
        version: memory.version + 1,
        updated_at: now.max(memory.updated_at),
        ..memory.clone()
    }
}
