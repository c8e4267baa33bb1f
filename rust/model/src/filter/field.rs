//! The fields that a filter can name, and where their values stand in a memory.

use super::{Number, Scalar};
use crate::{DeliveryMode, Memory, SourceType, Status, Tier, Timestamp};

/// A field that a filter can name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// A field with at most one text.
    Text(TextField),
    /// The tags: as many values as there are tags.
    Tags,
    /// A field with one number.
    Number(NumberField),
    /// A field with at most one instant.
    Time(TimeField),
    /// The scalars at a literal path inside the metadata.
    Metadata(String),
}

macro_rules! fields {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each variant is the field of the same name")]
        pub enum $name { $($variant),+ }

        impl $name {
            /// Every one of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name that filters use.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

fields! {
    /// Fields with a text.
    TextField {
        MemoryId = "memory_id", Type = "type", Scope = "scope", Key = "key", Session = "session", Status = "status",
        DeliveryMode = "delivery_mode", SourceType = "source_type", TrustTier = "trust_tier",
    }
}

fields! {
    /// Fields with a number.
    NumberField {
        Importance = "importance", Confidence = "confidence", AccessCount = "access_count", DecayRate = "decay_rate",
        Version = "version",
    }
}

fields! {
    /// Fields with an instant.
    TimeField {
        EventTime = "event_time", CreatedAt = "created_at", UpdatedAt = "updated_at", LastSeen = "last_seen",
        ExpiresAt = "expires_at",
    }
}

impl Field {
    /// The field called `name`; `None` when there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if let Some(path) = name.strip_prefix("metadata.") {
            return (!path.is_empty()).then(|| Self::Metadata(path.to_owned()));
        }
        let text = TextField::ALL.iter().find(|field| field.as_str() == name).map(|field| Self::Text(*field));
        let number = || NumberField::ALL.iter().find(|field| field.as_str() == name).map(|field| Self::Number(*field));
        let time = || TimeField::ALL.iter().find(|field| field.as_str() == name).map(|field| Self::Time(*field));
        text.or_else(number).or_else(time).or_else(|| (name == "tags").then_some(Self::Tags))
    }

    /// Every name, for the advice of an error.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        let text = TextField::ALL.iter().map(|field| field.as_str());
        let number = NumberField::ALL.iter().map(|field| field.as_str());
        let time = TimeField::ALL.iter().map(|field| field.as_str());
        text.chain(number).chain(time).chain(["tags", "metadata.<path>"]).collect()
    }

    /// The values that this field has in `memory`.
    #[must_use]
    pub fn values(&self, memory: &Memory) -> Vec<Scalar> {
        match self {
            Self::Text(field) => field.value(memory).map(Scalar::Text).into_iter().collect(),
            Self::Tags => memory.tags.iter().map(|tag| Scalar::Text(tag.clone())).collect(),
            Self::Number(field) => vec![Scalar::Number(field.number(memory))],
            Self::Time(field) => field.value(memory).map(|instant| Scalar::from(instant.0)).into_iter().collect(),
            Self::Metadata(path) => {
                let leaves = memory.metadata.leaves().into_iter().filter(|(leaf, _)| leaf == path);
                leaves.filter_map(|(_, value)| Scalar::held(&value)).collect()
            }
        }
    }
}

impl TextField {
    /// The texts that this field can have, where they are few; `None` where it can have any.
    #[must_use]
    pub fn vocabulary(self) -> Option<Vec<&'static str>> {
        Some(match self {
            Self::Status => Status::ALL.iter().map(|status| status.as_str()).collect(),
            Self::DeliveryMode => DeliveryMode::ALL.iter().map(|mode| mode.as_str()).collect(),
            Self::SourceType => SourceType::ALL.iter().map(|source| source.as_str()).collect(),
            Self::TrustTier => Tier::ALL.iter().map(|tier| tier.as_str()).collect(),
            Self::MemoryId | Self::Type | Self::Scope | Self::Key | Self::Session => return None,
        })
    }

    /// The text of this field in `memory`. A key is compared in its folded form: forms of one name are one key.
    #[must_use]
    pub fn value(self, memory: &Memory) -> Option<String> {
        match self {
            Self::MemoryId => Some(memory.memory_id.to_string()),
            Self::Type => Some(memory.kind.clone()),
            Self::Scope => memory.scope.clone(),
            Self::Key => memory.key.as_deref().map(crate::fold),
            Self::Session => memory.session.clone(),
            Self::Status => Some(memory.status.as_str().to_owned()),
            Self::DeliveryMode => Some(memory.delivery_mode.as_str().to_owned()),
            Self::SourceType => Some(memory.source_type.as_str().to_owned()),
            Self::TrustTier => Some(memory.trust_tier.as_str().to_owned()),
        }
    }
}

impl NumberField {
    /// The number of this field in `memory`.
    #[must_use]
    pub fn number(self, memory: &Memory) -> Number {
        match self {
            Self::Importance => Number::Float(memory.importance),
            Self::Confidence => Number::Float(memory.confidence),
            Self::DecayRate => Number::Float(memory.decay_rate),
            Self::AccessCount => Number::Int(memory.access_count),
            Self::Version => Number::Int(memory.version),
        }
    }
}

impl TimeField {
    /// The instant of this field in `memory`.
    #[must_use]
    pub fn value(self, memory: &Memory) -> Option<Timestamp> {
        match self {
            Self::EventTime => memory.event_time,
            Self::CreatedAt => Some(memory.created_at),
            Self::UpdatedAt => Some(memory.updated_at),
            Self::LastSeen => memory.last_seen,
            Self::ExpiresAt => memory.expires_at,
        }
    }
}
