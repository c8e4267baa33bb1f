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
/// that live, whether they match or not. Among so few every hit is found, and an index that grew, one that was sealed and
/// one that was made anew answer alike (I3, I14). Measured: see decision 0013.
pub(super) const CODES_MATCHES_MAX: u64 = 10_000;
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

/// A snapshot of fewer rows has one cell: all of them are looked at soon enough.
pub(super) const CELLED_ROWS_MIN: usize = 4_096;

/// There are no more cells than leave each so many rows on average: the last block of each is half empty.
pub(super) const CELL_ROWS_MIN: usize = 256;

/// How many rows for each cell the cells are learnt from, and how often they are moved. faiss warns below 39 points a centre;
/// more rounds than these changed hardly any row's cell.
pub(super) const SAMPLE_PER_CELL: usize = 64;
pub(super) const ROUNDS: usize = 6;

/// How many rows are asked for to measure how far their nearest lie from the centres of their cells, how many of those are
/// looked at, what share of them may lie further, and how much further the others are given. Measured: see decision 0013.
pub(super) const CHECKS: usize = 128;
pub(super) const CHECK_HITS: usize = 10;
pub(super) const CHECK_MISSES: f64 = 0.002;
pub(super) const CHECK_MARGIN: f32 = 1.1;

/// The nearest cells of one row in so many are left out when the same is measured again as under a filter.
pub(super) const CHECK_FILTERED_ONE_IN: usize = 10;

/// When more than one sure hit in so many needed more than this share of what cells are given, this query is unlike the rows
/// that were asked for, and every cell is looked at.
pub(super) const STRAINED_SHARE: f32 = 0.75;
pub(super) const STRAINED_ONE_IN: usize = 16;

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
