//! The three inner loops, for each kind of CPU, chosen once when first asked for.
//!
//! All variants return the same bits: the integer kernels by nature, the f32 one because it fixes
//! the order of its sums. So which CPU runs a query never changes a hit or its score (I14).
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

/// The inner loops of one kind of CPU.
pub(super) struct Kernels {
    /// Which variant this is, for `explain`.
    pub name: &'static str,
    /// Dot product of two vectors of equal length. Number `i` is added to sum `i mod 32`; then the
    /// upper half of the sums is added to the lower until one is left; no step is fused.
    pub dot_exact: fn(&[f32], &[f32]) -> f32,
    /// Dot products of 16-bit query codes with rows of i8 codes.
    pub dot_codes_rows: ScoreRows<i16, i8, i32>,
    /// How many sign bits of each row differ from the query's.
    pub sign_distance_rows: ScoreRows<u64, u64, u32>,
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

        /// Sign distances are equal.
        #[test]
        fn sign_distance_equals_scalar(
            query in prop::collection::vec(any::<u64>(), 1..20),
            seed in prop::collection::vec(any::<u64>(), 33),
            rows in prop::collection::vec(0u32..20, 0..40),
        ) {
            let signs: Vec<u64> = seed.iter().copied().cycle().take(20 * query.len()).collect();
            let (mut fast, mut plain) = (vec![0; rows.len()], vec![0; rows.len()]);
            (kernels().sign_distance_rows)(&query, &signs, &rows, &mut fast);
            (SCALAR.sign_distance_rows)(&query, &signs, &rows, &mut plain);
            prop_assert_eq!(fast, plain);
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
}
