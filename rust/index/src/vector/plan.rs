//! Which scan answers a search: decided from counts alone, so that equal records plan alike (I14).

use super::limits::{
    CODES_LIVE_PER_MATCH, CODES_MATCHES_MAX, EXACT_MATCHES_MAX, EXACT_SHARE, SHORTLIST_MIN, SHORTLIST_PER_HIT,
    SHORTLIST_SHARE,
};

/// How the matches were narrowed before f32 decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tier {
    /// Not at all: f32 scored every match.
    Exact,
    /// By i8 codes; their error bound proves the hits to be the exact ones.
    Codes,
    /// By estimates from signs to those that are likely enough to be hits, then by codes. A few hits in a thousand can be
    /// missing.
    Signs,
    /// By signs, which left too many for this query; then as [`Tier::Codes`].
    SignsThenCodes,
}

impl Tier {
    /// The name that `explain` gives it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Codes => "codes",
            Self::Signs => "signs",
            Self::SignsThenCodes => "signs_then_codes",
        }
    }
}

/// How a search was answered, for `explain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The scan that was used.
    pub tier: Tier,
    /// Memories that passed the mask and have a vector.
    pub matches: u64,
    /// Memories that have a vector.
    pub live: u64,
    /// Memories that were scored by f32.
    pub scored_exactly: usize,
    /// The SIMD variant in use. It changes the speed, never the hits.
    pub kernels: &'static str,
}

/// The tier to start with for `k` of `matches`, where `live` have a vector.
pub(super) fn choose(matches: u64, live: u64, k: usize) -> Tier {
    let few = CODES_MATCHES_MAX + live / CODES_LIVE_PER_MATCH;
    if matches <= EXACT_MATCHES_MAX || (k as u64).saturating_mul(EXACT_SHARE) >= matches {
        Tier::Exact
    } else if matches <= few || is_too_long(shortlist_len(k), matches) {
        Tier::Codes
    } else {
        Tier::Signs
    }
}

/// Whether so many are too large a part of the matches for a shortlist.
pub(super) fn is_too_long(shortlist: usize, matches: u64) -> bool {
    shortlist.saturating_mul(SHORTLIST_SHARE) as u64 >= matches
}

/// How many rows the signs pass on, at least, for `k` hits.
pub(super) fn shortlist_len(k: usize) -> usize {
    k.saturating_mul(SHORTLIST_PER_HIT).max(SHORTLIST_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each tier ends where its bound says, tried on both sides.
    #[test]
    fn tiers_change_at_their_bounds() {
        assert_eq!(choose(EXACT_MATCHES_MAX, 1 << 20, 1), Tier::Exact);
        assert_eq!(choose(EXACT_MATCHES_MAX + 1, 1 << 20, 1), Tier::Codes);
        let few = CODES_MATCHES_MAX + (1 << 20) / CODES_LIVE_PER_MATCH;
        assert_eq!(choose(few, 1 << 20, 10), Tier::Codes);
        assert_eq!(choose(few + 1, 1 << 20, 10), Tier::Signs);
    }

    /// Asking for much of what matches is answered exactly, whatever the sizes.
    #[test]
    fn large_share_is_exact() {
        assert_eq!(choose(12_000, 12_000, 3_000), Tier::Exact);
        assert_eq!(choose(12_000, 12_000, 2_999), Tier::Codes);
        assert_eq!(choose(u64::MAX, u64::MAX, usize::MAX), Tier::Exact);
    }

    /// A shortlist that would hold much of what matches is not worth making.
    #[test]
    fn long_shortlist_gives_way_to_codes() {
        assert_eq!(choose(100_000, 100_000, 8_333), Tier::Signs);
        assert_eq!(choose(100_000, 100_000, 8_334), Tier::Codes);
        assert_eq!(shortlist_len(usize::MAX), usize::MAX);
    }
}
