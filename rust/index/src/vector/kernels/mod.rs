//! The three inner loops, for each kind of CPU, chosen once when first asked for.
//!
//! All variants return the same bits: the integer kernels by nature, those of f32 because they fix
//! the order of their sums. So which CPU runs a query never changes a hit or its score (I14).
//!
//! AVX-512 has no variant of its own: scans wait for memory more than for arithmetic.

mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;

use std::sync::OnceLock;

use super::limits::PREFETCH_ROWS;

/// Running sums that an exact dot product keeps side by side.
const LANES: usize = 32;

/// Scores `rows` of a table (by row number) against a query, one into each place of the last slice.
pub(super) type ScoreRows<Q, T, S> = fn(&[Q], &[T], &[u32], &mut [S]);

/// Rows whose signs lie together.
pub(super) const BLOCK: usize = 32;

/// Estimates a block of rows by a [`Line`]; the bits of the outcome are the rows that reach `floor`.
///
/// The sum of a row is that of the entries that its nibbles choose, each from a table of 16 of its own.
pub(super) type EstimateBlock = fn(&Line<'_>, SignBlock<'_>, floor: f32, reach: &mut [f32; BLOCK]) -> u32;

/// What is kept of a block of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignBlock<'a> {
    /// Table by table 16 bytes: the low nibble of byte `n` is row `n`'s, the high one row `16 + n`'s. There is an even number
    /// of tables.
    pub nibbles: &'a [u8],
    /// Each row's worth, error and part along the centre: see [`Line`].
    pub factors: &'a [[f32; BLOCK]; 3],
}

/// How a query's estimates follow from sums: with the factors `[worth, error, along]` of a row,
/// `worth × (step × sum + base) + along + deviations × error + offset`.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub tables: &'a [u8],
    pub step: f32,
    pub base: f32,
    pub deviations: f32,
    pub offset: f32,
}

/// The largest entry of a table: four of them fit a byte, and the estimate's own error is far larger than their rounding.
pub(super) const ENTRY_MAX: u8 = 63;
/// Tables whose largest entries add up to no more than an unsigned 16-bit number holds.
const TABLES_AT_ONCE: usize = 1_024;
/// Bytes of one table, and of all rows' nibbles for it.
const TABLE: usize = 16;

/// The inner loops of one kind of CPU.
pub(super) struct Kernels {
    /// Which variant this is, for `explain`.
    pub name: &'static str,
    /// Dot product of two vectors of equal length. Number `i` is added to sum `i mod 32`; then the
    /// upper half of the sums is added to the lower until one is left; no step is fused.
    pub dot_exact: fn(&[f32], &[f32]) -> f32,
    /// Dot products of 16-bit query codes with rows of i8 codes.
    pub dot_codes_rows: ScoreRows<i16, i8, i32>,
    /// What 32 rows' cosines are estimated to reach: see [`EstimateBlock`].
    pub estimate_block: EstimateBlock,
}

/// The kernels for the CPU that runs this.
pub(super) fn kernels() -> &'static Kernels {
    static CHOSEN: OnceLock<&'static Kernels> = OnceLock::new();
    CHOSEN.get_or_init(detect)
}

fn detect() -> &'static Kernels {
    #[cfg(target_arch = "x86_64")]
    let able = avx2::detect();
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    let able = Some(&neon::NEON);
    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_feature = "neon"))))]
    let able = None;
    able.unwrap_or(&scalar::SCALAR)
}

/// Runs `score` over the rows, asking memory for those a little ahead.
#[inline(always)]
#[expect(clippy::inline_always, reason = "only inlined does it use its caller's instructions")]
fn each_row<T, S>(table: &[T], width: usize, rows: &[u32], out: &mut [S], score: impl Fn(&[T]) -> S) {
    let row = |number: u32| &table[number as usize * width..][..width];
    for (at, (place, &number)) in out.iter_mut().zip(rows).enumerate() {
        if let Some(&ahead) = rows.get(at + PREFETCH_ROWS) {
            prefetch(row(ahead));
        }
        *place = score(row(number));
    }
}

/// Asks memory for a row that will be read soon.
#[inline]
pub(super) fn prefetch<T>(row: &[T]) {
    /// Bytes that memory moves at a time.
    const LINE: usize = 64;
    let start = row.as_ptr().cast::<i8>();
    for offset in (0..size_of_val(row)).step_by(LINE) {
        let line = start.wrapping_add(offset);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch only hints; it never faults, whatever the address. SSE is always there.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line);
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a prefetch only hints; it never faults, whatever the address.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) line, options(nostack, readonly));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = line;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::scalar::SCALAR;
    use super::*;

    proptest! {
        /// The exact dot product has the same bits on every CPU, also for lengths with a tail.
        #[test]
        fn exact_dot_equals_scalar(
            pairs in prop::collection::vec((-1e3f32..1e3, -1e3f32..1e3), 0..200)
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let bits = (kernels().dot_exact)(&a, &b).to_bits();
            prop_assert_eq!(bits, (SCALAR.dot_exact)(&a, &b).to_bits());
        }

        /// Dots of codes are equal, with repeated rows and rows out of order.
        #[test]
        fn dot_of_codes_equals_scalar(
            query in prop::collection::vec(any::<i16>(), 1..150),
            seed in prop::collection::vec(any::<i8>(), 150),
            rows in prop::collection::vec(0u32..20, 0..40),
        ) {
            let codes: Vec<i8> = seed.iter().copied().cycle().take(20 * query.len()).collect();
            let (mut fast, mut plain) = (vec![0; rows.len()], vec![0; rows.len()]);
            (kernels().dot_codes_rows)(&query, &codes, &rows, &mut fast);
            (SCALAR.dot_codes_rows)(&query, &codes, &rows, &mut plain);
            prop_assert_eq!(fast, plain);
        }

        /// Estimates have the same bits, also for more tables than can be added up at once.
        #[test]
        fn estimates_equal_scalar(
            pairs in prop_oneof![1usize..40, 500usize..530],
            seed in prop::collection::vec(any::<u8>(), 997),
            factors in prop::collection::vec(-1f32..1.0, 3 * BLOCK),
            floor in -100f32..100.0,
        ) {
            let bytes = |from: usize| seed.iter().copied().cycle().skip(from).take(2 * TABLE * pairs).collect::<Vec<u8>>();
            let (mut tables, nibbles) = (bytes(0), bytes(500));
            tables.iter_mut().for_each(|entry| *entry %= ENTRY_MAX + 1);
            let line = Line { tables: &tables, step: 0.01, base: -12.0, deviations: 2.5, offset: 0.1 };
            let block = SignBlock { nibbles: &nibbles, factors: factors.as_chunks().0.try_into().unwrap() };
            let (mut fast, mut plain) = ([0.0; BLOCK], [0.0; BLOCK]);
            let bits = (kernels().estimate_block)(&line, block, floor, &mut fast);
            prop_assert_eq!(bits, (SCALAR.estimate_block)(&line, block, floor, &mut plain));
            prop_assert_eq!(fast.map(f32::to_bits), plain.map(f32::to_bits));
            prop_assert!(plain.iter().enumerate().all(|(row, reach)| (*reach >= floor) == (bits >> row & 1 == 1)));
        }
    }

    /// The widest vector of the largest codes sums without overflow on every variant.
    #[test]
    fn largest_codes_do_not_overflow() {
        let (query, row) = (vec![258_i16; 65_536], vec![i8::MIN + 1; 65_536]);
        let mut out = [0];
        (kernels().dot_codes_rows)(&query, &row, &[0], &mut out);
        assert_eq!(out, [-65_536 * 258 * 127]);
    }

    /// The largest entries of the most tables sum without overflow on every variant.
    #[test]
    fn largest_signs_do_not_overflow() {
        let tables = vec![ENTRY_MAX; TABLE * 16_384];
        let line = Line { tables: &tables, step: 1.0, base: 0.0, deviations: 0.0, offset: 0.0 };
        let mut sums = [0.0; BLOCK];
        let block = SignBlock { nibbles: &tables, factors: &[[1.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]] };
        let bits = (kernels().estimate_block)(&line, block, 1.0, &mut sums);
        assert_eq!((bits, sums), (u32::MAX, [63.0 * 16_384.0; BLOCK]));
    }
}
