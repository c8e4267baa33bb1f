//! When a memory reaches the agent.

use crate::Invalid;

/// When a memory reaches the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliveryMode {
    /// When a recall finds it.
    #[default]
    OnRecall,
    /// In every prompt: it is pinned.
    Always,
    /// In its time window.
    OnTrigger,
}

impl DeliveryMode {
    /// Every one of them.
    pub const ALL: &[Self] = &[Self::OnRecall, Self::Always, Self::OnTrigger];

    /// The name that the record and Python use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OnRecall => "on_recall",
            Self::Always => "always",
            Self::OnTrigger => "on_trigger",
        }
    }

    /// Reads [`DeliveryMode::as_str`].
    ///
    /// # Errors
    /// On any other text.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::ALL
            .iter()
            .copied()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| Invalid::value("delivery_mode", "is not known", text, "Use on_recall, always or on_trigger"))
    }
}
