//! A memory: what is asked to be remembered, what is kept, and what may be changed.

use std::sync::Arc;

use crate::drawer::check_name;
use crate::limits::{
    CONTENT_BYTES_MAX, NAME_BYTES_MAX, PROOF_BYTES_MAX, SOURCES_MAX, SUMMARY_BYTES_MAX, TAG_BYTES_MAX, TAGS_MAX,
    TYPE_BYTES_MAX,
};
use crate::text::check_normalised;
use crate::{DeliveryMode, Invalid, MemoryId, Metadata, SourceType, Tier, Timestamp};

/// Where a memory stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// In use.
    #[default]
    Active,
    /// In use, but not seen for long.
    Stale,
    /// Out of every read: forgotten, or replaced by a newer memory.
    Retired,
    /// Kept for the record, out of recall.
    Archived,
}

impl Status {
    /// Every one of them.
    pub const ALL: &[Self] = &[Self::Active, Self::Stale, Self::Retired, Self::Archived];

    /// The name that the record and Python use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Stale => "stale",
            Self::Retired => "retired",
            Self::Archived => "archived",
        }
    }

    /// Reads [`Status::as_str`]; `None` on any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.as_str() == text)
    }

    /// Whether a recall may return it.
    #[must_use]
    pub const fn is_recallable(self) -> bool {
        matches!(self, Self::Active | Self::Stale)
    }
}

/// Freshness lost in a day by a memory that says nothing of its own: a hundred days from new to stale.
pub const DECAY_RATE_DEFAULT: f64 = 0.01;
/// Importance of a memory that says nothing of its own: neither raised nor lowered by ageing.
pub const IMPORTANCE_DEFAULT: f64 = 0.5;
/// Confidence of a memory that nobody has verified.
pub const CONFIDENCE_DEFAULT: f64 = 0.5;

/// Whether memories of this type keep their freshness for ever: what an agent can do, must do and how.
#[must_use]
pub fn is_exempt_from_ageing(kind: &str) -> bool {
    matches!(kind, "capability" | "rule" | "procedure")
}

/// One row of the record, as it stood when it was read.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are the record's columns; docs/glossary.md defines each")]
pub struct Memory {
    pub row: i64,
    pub memory_id: MemoryId,
    pub context: i64,
    pub context_id: Arc<str>,
    pub kind: String,
    pub scope: Option<String>,
    pub key: Option<String>,
    pub summary: String,
    pub content: Option<String>,
    pub tags: Vec<String>,
    pub metadata: Metadata,
    pub delivery_mode: DeliveryMode,
    pub trigger: Option<Metadata>,
    pub importance: f64,
    pub confidence: f64,
    pub proof: Option<String>,
    pub status: Status,
    pub source_type: SourceType,
    pub trust_tier: Tier,
    pub derived_from: Vec<MemoryId>,
    pub superseded_by: Option<MemoryId>,
    pub session: Option<String>,
    pub event_time: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub last_seen: Option<Timestamp>,
    pub access_count: i64,
    pub decay_rate: f64,
    /// Counts changes of any field, from 1.
    pub version: i64,
    /// The version at which the text last changed: a vector belongs to one text version (I11).
    pub text_version: i64,
    pub embedded: bool,
}

impl Memory {
    /// Whether a read at `now` may show it: in use, not replaced, not expired (I10).
    #[must_use]
    pub fn is_visible(&self, now: Timestamp) -> bool {
        self.status.is_recallable() && !self.has_expired(now)
    }

    /// Whether its time was over before `now`, or is now (I10).
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// The instant from which freshness is counted: when it happened or was last written, or was last seen since.
    #[must_use]
    pub fn fresh_from(&self) -> Timestamp {
        self.event_time.unwrap_or(self.updated_at).max(self.last_seen.unwrap_or(Timestamp(i64::MIN)))
    }

    /// The words by which the text leg finds it.
    #[must_use]
    pub fn indexed_text(&self) -> String {
        let parts = [Some(self.summary.as_str()), self.content.as_deref(), self.key.as_deref()];
        let parts = parts.into_iter().flatten().chain(self.tags.iter().map(String::as_str));
        parts.collect::<Vec<_>>().join("\n")
    }
}

/// What a caller asks to be remembered.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of Memory")]
pub struct Draft {
    pub context_id: String,
    pub kind: String,
    pub scope: Option<String>,
    pub key: Option<String>,
    pub summary: String,
    pub content: Option<String>,
    pub tags: Vec<String>,
    pub metadata: Metadata,
    pub delivery_mode: DeliveryMode,
    pub trigger: Option<Metadata>,
    pub importance: f64,
    pub confidence: f64,
    pub proof: Option<String>,
    pub derived_from: Vec<MemoryId>,
    pub supersedes: Option<MemoryId>,
    pub session: Option<String>,
    pub event_time: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub decay_rate: Option<f64>,
    /// The same word again returns the first write's answer and writes nothing.
    pub idempotency_key: Option<String>,
    /// Fold into an existing memory of the context that says the same in the same words.
    pub fold_duplicates: bool,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            context_id: "default".into(),
            kind: "note".into(),
            scope: None,
            key: None,
            summary: String::new(),
            content: None,
            tags: Vec::new(),
            metadata: Metadata::default(),
            delivery_mode: DeliveryMode::default(),
            trigger: None,
            importance: IMPORTANCE_DEFAULT,
            confidence: CONFIDENCE_DEFAULT,
            proof: None,
            derived_from: Vec::new(),
            supersedes: None,
            session: None,
            event_time: None,
            expires_at: None,
            decay_rate: None,
            idempotency_key: None,
            fold_duplicates: false,
        }
    }
}

impl Draft {
    /// Checks every field against its limits.
    ///
    /// # Errors
    /// Names the first field at fault.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::check_context_name(&self.context_id)?;
        Stated {
            kind: &self.kind,
            summary: &self.summary,
            content: self.content.as_deref(),
            tags: &self.tags,
            importance: self.importance,
            confidence: self.confidence,
            proof: self.proof.as_deref(),
            session: self.session.as_deref(),
            decay_rate: self.effective_decay_rate(),
        }
        .check()?;
        for (field, name) in [("scope", &self.scope), ("key", &self.key), ("idempotency_key", &self.idempotency_key)] {
            check_optional_name(field, name.as_deref())?;
        }
        if self.scope.is_some() && self.key.is_none() {
            return Err(Invalid::value(
                "scope",
                "is given without a key",
                self.scope.as_deref().unwrap_or_default(),
                "A scope says where a key is unique; give a key too",
            ));
        }
        if self.derived_from.len() > SOURCES_MAX {
            return Err(Invalid::over_limit("derived_from", self.derived_from.len(), SOURCES_MAX, "sources"));
        }
        Ok(())
    }

    /// The freshness lost in a day: as asked, or as the type's default says.
    #[must_use]
    pub fn effective_decay_rate(&self) -> f64 {
        self.decay_rate.unwrap_or_else(|| decay_rate_of(&self.kind))
    }
}

/// What a memory of type `kind` loses in a day, unless it is told otherwise.
fn decay_rate_of(kind: &str) -> f64 {
    if is_exempt_from_ageing(kind) { 0.0 } else { DECAY_RATE_DEFAULT }
}

/// What an update changes; `None` leaves a field as it is, `Some(None)` clears it.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "the fields are those of Memory")]
pub struct Patch {
    /// The version that the change is meant for; any when not given.
    pub expected: Option<i64>,
    pub kind: Option<String>,
    pub summary: Option<String>,
    pub content: Option<Option<String>>,
    pub tags: Option<Vec<String>>,
    pub metadata: Option<Metadata>,
    pub delivery_mode: Option<DeliveryMode>,
    pub trigger: Option<Option<Metadata>>,
    pub importance: Option<f64>,
    pub confidence: Option<f64>,
    pub proof: Option<Option<String>>,
    pub session: Option<Option<String>>,
    pub event_time: Option<Option<Timestamp>>,
    pub expires_at: Option<Option<Timestamp>>,
    pub decay_rate: Option<Option<f64>>,
}

impl Patch {
    /// `memory` with these changes, checked.
    ///
    /// # Errors
    /// Names the first field at fault.
    pub fn applied_to(&self, memory: &Memory) -> Result<Memory, Invalid> {
        let mut changed = memory.clone();
        set(&mut changed.kind, self.kind.as_ref());
        set(&mut changed.summary, self.summary.as_ref());
        set(&mut changed.content, self.content.as_ref());
        set(&mut changed.tags, self.tags.as_ref());
        set(&mut changed.metadata, self.metadata.as_ref());
        set(&mut changed.delivery_mode, self.delivery_mode.as_ref());
        set(&mut changed.trigger, self.trigger.as_ref());
        set(&mut changed.importance, self.importance.as_ref());
        set(&mut changed.confidence, self.confidence.as_ref());
        set(&mut changed.proof, self.proof.as_ref());
        set(&mut changed.session, self.session.as_ref());
        set(&mut changed.event_time, self.event_time.as_ref());
        set(&mut changed.expires_at, self.expires_at.as_ref());
        // A rate that is its type's own goes with the type.
        let had_own = (memory.decay_rate - decay_rate_of(&memory.kind)).abs() < f64::EPSILON;
        match self.decay_rate {
            Some(Some(rate)) => changed.decay_rate = rate,
            None if !had_own => {}
            Some(None) | None => changed.decay_rate = decay_rate_of(&changed.kind),
        }
        Stated {
            kind: &changed.kind,
            summary: &changed.summary,
            content: changed.content.as_deref(),
            tags: &changed.tags,
            importance: changed.importance,
            confidence: changed.confidence,
            proof: changed.proof.as_deref(),
            session: changed.session.as_deref(),
            decay_rate: changed.decay_rate,
        }
        .check()?;
        Ok(changed)
    }
}

fn set<T: Clone>(field: &mut T, wish: Option<&T>) {
    if let Some(value) = wish {
        field.clone_from(value);
    }
}

/// What a caller says of a memory, at first or in a change: the same bounds hold for both.
struct Stated<'a> {
    kind: &'a str,
    summary: &'a str,
    content: Option<&'a str>,
    tags: &'a [String],
    importance: f64,
    confidence: f64,
    proof: Option<&'a str>,
    session: Option<&'a str>,
    decay_rate: f64,
}

impl Stated<'_> {
    fn check(&self) -> Result<(), Invalid> {
        check_kind(self.kind)?;
        check_text(self.summary, self.content)?;
        check_tags(self.tags)?;
        check_share("importance", self.importance)?;
        check_share("confidence", self.confidence)?;
        check_share("decay_rate", self.decay_rate)?;
        check_optional_name("session", self.session)?;
        let texts = [("summary", Some(self.summary)), ("content", self.content), ("proof", self.proof)];
        if let Some((field, _)) = texts.iter().find(|(_, text)| text.is_some_and(|text| text.contains('\0'))) {
            return Err(Invalid::value(*field, "holds U+0000", "a text that not every record can hold", "Take it out"));
        }
        match self.proof.map_or(0, str::len) {
            bytes if bytes > PROOF_BYTES_MAX => Err(Invalid::over_limit("proof", bytes, PROOF_BYTES_MAX, "bytes")),
            _ => Ok(()),
        }
    }
}

fn check_optional_name(field: &str, name: Option<&str>) -> Result<(), Invalid> {
    name.map_or(Ok(()), |name| check_name(field, name, NAME_BYTES_MAX))
}

fn check_kind(kind: &str) -> Result<(), Invalid> {
    check_name("type", kind, TYPE_BYTES_MAX)
}

fn check_text(summary: &str, content: Option<&str>) -> Result<(), Invalid> {
    if summary.trim().is_empty() {
        return Err(Invalid::value(
            "summary",
            "is blank",
            format!("{summary:?}"),
            "Say in a line what is to be remembered",
        ));
    }
    if summary.len() > SUMMARY_BYTES_MAX {
        return Err(Invalid::too_long("summary", summary.len(), SUMMARY_BYTES_MAX));
    }
    let content_bytes = content.map_or(0, str::len);
    if content_bytes > CONTENT_BYTES_MAX {
        return Err(Invalid::too_long("content", content_bytes, CONTENT_BYTES_MAX));
    }
    content.map_or(Ok(()), |content| check_normalised("content", content))
}

fn check_tags(tags: &[String]) -> Result<(), Invalid> {
    if tags.len() > TAGS_MAX {
        return Err(Invalid::over_limit("tags", tags.len(), TAGS_MAX, "tags"));
    }
    let mut tags = tags.iter().enumerate();
    tags.try_for_each(|(at, tag)| check_name(&format!("tags[{at}]"), tag, TAG_BYTES_MAX))
}

fn check_share(field: &str, value: f64) -> Result<(), Invalid> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Invalid::value(field, "lies outside 0 to 1", value, "Give a share between 0 and 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(change: impl FnOnce(&mut Draft)) -> Result<(), Invalid> {
        let mut draft = Draft { summary: "s".into(), ..Draft::default() };
        change(&mut draft);
        draft.check()
    }

    /// Each bound holds on both of its sides.
    #[test]
    fn limits_hold_on_both_sides() {
        assert!(draft(|d| d.content = Some("x".repeat(CONTENT_BYTES_MAX))).is_ok());
        assert!(draft(|d| d.content = Some("x".repeat(CONTENT_BYTES_MAX + 1))).is_err());
        assert!(draft(|d| d.summary = "x".repeat(SUMMARY_BYTES_MAX)).is_ok());
        assert!(draft(|d| d.summary = "x".repeat(SUMMARY_BYTES_MAX + 1)).is_err());
        assert!(draft(|d| d.tags = vec!["t".into(); TAGS_MAX]).is_ok());
        assert!(draft(|d| d.tags = vec!["t".into(); TAGS_MAX + 1]).is_err());
        assert!(draft(|d| d.tags = vec!["t".repeat(TAG_BYTES_MAX + 1)]).is_err());
    }

    /// Shares are refused outside 0 to 1, and when they are no number at all.
    #[test]
    fn share_outside_its_range_is_refused() {
        for value in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(draft(|d| d.importance = value).unwrap_err().field, "importance");
            assert_eq!(draft(|d| d.decay_rate = Some(value)).unwrap_err().field, "decay_rate");
        }
    }

    /// Rules do not age unless they are told to.
    #[test]
    fn exempt_types_do_not_age() {
        let rate = |kind: &str| Draft { kind: kind.into(), ..Draft::default() }.effective_decay_rate();
        assert!(rate("rule").abs() < f64::EPSILON && rate("note") > 0.0);
    }
}
