//! Every bound of the vector leg, each with the reason for its size.

use memkura_model::limits::CONTEXT_MEMORIES_MAX;
pub use memkura_model::limits::DIMENSIONS_MAX;

/// Largest ordinal that can own vectors.
pub const ORDINAL_MAX: u32 = CONTEXT_MEMORIES_MAX as u32 - 1;

/// Largest magnitude of a row's code, the symmetric half of an `i8`.
pub(super) const CODE_MAX: i8 = i8::MAX;

/// A vector whose length differs from 1 by no more than this is kept as it came.
///
/// Rounding a unit vector to f32 moves its length by at most half of this, so a vector read back
/// from the record is not normalised a second time into a neighbouring one.
pub(super) const UNIT_TOLERANCE: f64 = f32::EPSILON as f64;

/// Up to this many matches the codes save nothing: their rows fit the first-level cache either way.
pub(super) const EXACT_MATCHES_MAX: u64 = 64;

/// When `k` times this reaches the matches, most rows would be rescored anyway: score all exactly.
pub(super) const EXACT_SHARE: u64 = 4;

/// Up to this many matches, and one more for so many that live, their i8 codes are read at once: signs are read for all
/// that live, whether they match or not. Measured: see decision 0012.
pub(super) const CODES_MATCHES_MAX: u64 = 1_500;
pub(super) const CODES_LIVE_PER_MATCH: u64 = 32;

/// How many rows the signs pass on for each hit asked for, and how many at least: among so many lie nearly all of the hits,
/// so that hardly any others have to be looked for. Measured: see decision 0012.
pub(super) const SHORTLIST_PER_HIT: usize = 3;
pub(super) const SHORTLIST_MIN: usize = 256;

/// A shortlist of more than one match in this many would cost more than it saves.
pub(super) const SHORTLIST_SHARE: usize = 4;

/// Whoever asks for fewer hits than this gets the best of so many: the last of a few near ones says little of how far the
/// others reach.
pub(super) const SURE_HITS_MIN: usize = 10;

/// A row whose estimate lies so many standard errors below the worst sure hit is passed over. Of rows that are just as good
/// as that hit 0.6 % are (a normal error's tail), of better ones fewer. Measured: see decision 0012.
pub(super) const DEVIATIONS: f32 = 2.5;

/// Ordinals resolved to rows and scored at a time: their lists stay in the first-level cache.
pub(super) const BLOCK_ORDINALS: usize = 512;

/// How many rows ahead a scan asks memory for; 8 to 16 measured alike.
pub(super) const PREFETCH_ROWS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest query code and the largest row code, on every position, still fit an `i32`. An i8 code reaches 127, and
    /// the query's 16-bit code must keep at least twice that range.
    #[test]
    fn widest_vector_cannot_overflow_a_dot_of_codes() {
        let query_code_max = i32::MAX as usize / (CODE_MAX as usize * DIMENSIONS_MAX);
        assert!(query_code_max >= 2 * CODE_MAX as usize);
    }
}
