//! The stamp: the one place that says how far a new memory can be trusted (I6).

use memkura_model::{Context, DeliveryMode, Door, Invalid, MemoryId, SourceType, Tier};
use memkura_store::Reader;

use crate::EngineError;

/// The tier of what `door` writes into `context` from `sources`: the lowest of all of them.
///
/// # Errors
/// [`EngineError::NotFound`] when a source is not in this context, whether or not another context has it.
pub fn tier(reader: &Reader<'_>, context: &Context, door: Door, sources: &[MemoryId]) -> Result<Tier, EngineError> {
    let mut tier = context.origin.tier().min(door.source_type().tier());
    for id in sources {
        let source = reader.by_id(context, *id)?.ok_or_else(|| EngineError::named_nothing("derived_from", *id))?;
        tier = tier.min(source.trust_tier);
    }
    Ok(tier)
}

/// The tier of a state that an owner's file claims for it, from `source` in `context`: never higher than either gives.
#[must_use]
pub fn claimed(claim: Tier, source: SourceType, context: &Context) -> Tier {
    claim.min(source.tier()).min(context.origin.tier())
}

/// Checks that a memory of this tier may reach the agent in this way: what came from outside cannot pin itself.
///
/// # Errors
/// When an external memory asks to be in every prompt.
pub fn may_deliver(mode: DeliveryMode, tier: Tier) -> Result<(), Invalid> {
    if mode != DeliveryMode::Always || tier == Tier::Trusted {
        return Ok(());
    }
    Err(Invalid::value("delivery_mode", "cannot pin text from outside", mode.as_str(), "Let a person endorse it first"))
}
