//! Where a memory came from, and how far that can be trusted (I6).

use crate::Invalid;

/// How far a memory can be trusted. Ordered: what is derived takes the lowest of its sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Somebody else wrote it, or something that somebody else wrote went into it.
    External,
    /// The user or the agent's own process wrote it.
    Trusted,
}

impl Tier {
    /// Every one of them.
    pub const ALL: &[Self] = &[Self::External, Self::Trusted];

    /// The name that the record and Python use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Trusted => "trusted",
        }
    }

    /// Reads [`Tier::as_str`]; `None` on any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tier| tier.as_str() == text)
    }
}

/// Whether a context holds what we wrote or what came from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// Our own writes.
    #[default]
    Trusted,
    /// A connector's or another outsider's writes: nothing in it is ever trusted.
    External,
}

impl Origin {
    /// The name that the record and Python use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::External => "external",
        }
    }

    /// Reads [`Origin::as_str`].
    ///
    /// # Errors
    /// On any other text.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        [Self::Trusted, Self::External]
            .into_iter()
            .find(|origin| origin.as_str() == text)
            .ok_or_else(|| Invalid::value("origin", "is not known", text, "Use trusted or external"))
    }

    /// The highest tier that a memory in such a context can have.
    #[must_use]
    pub const fn tier(self) -> Tier {
        match self {
            Self::Trusted => Tier::Trusted,
            Self::External => Tier::External,
        }
    }
}

/// What the record says of a memory's source; the engine stamps it, no caller claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceType {
    /// The process that holds the engine wrote it.
    Manual,
    /// It was read from a file that somebody handed over.
    Import,
    /// A connector, a tool or a web page delivered it.
    Connector,
}

impl SourceType {
    /// Every one of them.
    pub const ALL: &[Self] = &[Self::Manual, Self::Import, Self::Connector];

    /// The name that the record and Python use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Import => "import",
            Self::Connector => "connector",
        }
    }

    /// Reads [`SourceType::as_str`]; `None` on any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|source| source.as_str() == text)
    }

    /// The highest tier that this source can give.
    #[must_use]
    pub const fn tier(self) -> Tier {
        match self {
            Self::Manual => Tier::Trusted,
            Self::Import | Self::Connector => Tier::External,
        }
    }
}

/// The way in that a write took. Our own code names the door; text and arguments never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// A verb called by the process that holds the engine.
    Python,
    /// A file read by the import command.
    Import,
    /// A connector's handle.
    Connector,
}

impl Door {
    /// The door that stamps this source type.
    #[must_use]
    pub const fn of(source: SourceType) -> Self {
        match source {
            SourceType::Manual => Self::Python,
            SourceType::Import => Self::Import,
            SourceType::Connector => Self::Connector,
        }
    }

    /// The origin of a context that a write through this door makes: a connector's own is never trusted.
    #[must_use]
    pub const fn origin_of_new_context(self) -> Origin {
        match self {
            Self::Python | Self::Import => Origin::Trusted,
            Self::Connector => Origin::External,
        }
    }

    /// The stamp that a write through this door gets: the one place that sets a source type.
    #[must_use]
    pub const fn source_type(self) -> SourceType {
        match self {
            Self::Python => SourceType::Manual,
            Self::Import => SourceType::Import,
            Self::Connector => SourceType::Connector,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lowest of several tiers is external as soon as one is.
    #[test]
    fn external_is_the_lowest_tier() {
        assert_eq!(Tier::Trusted.min(Tier::External), Tier::External);
        assert_eq!(Door::Import.source_type().tier(), Tier::External);
        assert_eq!(Door::Python.source_type().tier().min(Origin::External.tier()), Tier::External);
    }
}
