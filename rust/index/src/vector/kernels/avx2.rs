//! The kernels for x86-64 with AVX2 and POPCNT, which every desktop and server since 2015 has.

use std::arch::x86_64::{
    __m256, __m256i, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadu_si128, _mm_movehl_ps, _mm_shuffle_ps,
    _mm256_add_epi32, _mm256_add_ps, _mm256_castps256_ps128, _mm256_castsi256_si128, _mm256_cvtepi8_epi16,
    _mm256_extractf128_ps, _mm256_extracti128_si256, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_mul_ps, _mm256_setzero_ps, _mm256_setzero_si256,
};
use std::arch::x86_64::{_mm_add_epi32, _mm_cvtsi128_si32, _mm_shuffle_epi32, _mm_unpackhi_epi64};

use super::{Kernels, LANES, each_row, scalar};

/// Numbers in one register of f32.
const FLOATS: usize = 8;
/// Codes in one register, once widened to 16 bits.
const CODES: usize = 16;

/// The kernels, if this CPU can run them.
pub(super) fn detect() -> Option<&'static Kernels> {
    static AVX2: Kernels = Kernels {
        name: "avx2",
        // SAFETY: this table is handed out only after both features were detected.
        dot_exact: |a, b| unsafe { dot_exact(a, b) },
        // SAFETY: as above.
        dot_codes_rows: |query, codes, rows, out| unsafe {
            dot_codes_rows(query, codes, rows, out);
        },
        // SAFETY: as above.
        sign_distance_rows: |query, signs, rows, out| unsafe {
            sign_distance_rows(query, signs, rows, out);
        },
    };
    let able = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
    able.then_some(&AVX2)
}

#[target_feature(enable = "avx2")]
fn dot_exact(a: &[f32], b: &[f32]) -> f32 {
    let (a_blocks, a_tail) = a.as_chunks::<LANES>();
    let (b_blocks, b_tail) = b.as_chunks::<LANES>();
    let mut sums = [_mm256_setzero_ps(); LANES / FLOATS];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        add_products(&mut sums, a, b);
    }
    if !a_tail.is_empty() {
        // A padded lane adds +0.0, which leaves any sum as it was: no sum is ever -0.0.
        add_products(&mut sums, &padded(a_tail), &padded(b_tail));
    }
    fold(sums)
}

#[target_feature(enable = "avx2")]
fn add_products(sums: &mut [__m256; LANES / FLOATS], a: &[f32; LANES], b: &[f32; LANES]) {
    let (a, _) = a.as_chunks::<FLOATS>();
    let (b, _) = b.as_chunks::<FLOATS>();
    for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
        // SAFETY: both arrays hold the 8 numbers that an unaligned load reads.
        let (a, b) = unsafe { (_mm256_loadu_ps(a.as_ptr()), _mm256_loadu_ps(b.as_ptr())) };
        // Two roundings, not a fused one: CPUs without FMA must get the same sum (I14).
        *sum = _mm256_add_ps(*sum, _mm256_mul_ps(a, b));
    }
}

fn padded(tail: &[f32]) -> [f32; LANES] {
    let mut block = [0.0; LANES];
    block[..tail.len()].copy_from_slice(tail);
    block
}

/// Adds the upper half of the lanes to the lower until one is left.
#[target_feature(enable = "avx2")]
fn fold(sums: [__m256; LANES / FLOATS]) -> f32 {
    let low = _mm256_add_ps(sums[0], sums[2]);
    let high = _mm256_add_ps(sums[1], sums[3]);
    let eight = _mm256_add_ps(low, high);
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

#[target_feature(enable = "avx2")]
fn dot_codes_rows(query: &[i16], codes: &[i8], rows: &[u32], out: &mut [i32]) {
    each_row(codes, query.len(), rows, out, |row| dot_codes(query, row));
}

#[target_feature(enable = "avx2")]
fn dot_codes(query: &[i16], row: &[i8]) -> i32 {
    let (query, query_tail) = query.as_chunks::<CODES>();
    let (row, row_tail) = row.as_chunks::<CODES>();
    let mut sums = [_mm256_setzero_si256(); 2];
    let (query_pairs, query_last) = query.as_chunks::<2>();
    let (row_pairs, row_last) = row.as_chunks::<2>();
    for (query, row) in query_pairs.iter().zip(row_pairs) {
        // Two sums at once, for the second need not wait for the first.
        sums[0] = _mm256_add_epi32(sums[0], products(&query[0], &row[0]));
        sums[1] = _mm256_add_epi32(sums[1], products(&query[1], &row[1]));
    }
    for (query, row) in query_last.iter().zip(row_last) {
        sums[0] = _mm256_add_epi32(sums[0], products(query, row));
    }
    sum_of(_mm256_add_epi32(sums[0], sums[1])) + scalar::dot_codes(query_tail, row_tail)
}

/// Eight sums of two products each.
#[target_feature(enable = "avx2")]
fn products(query: &[i16; CODES], row: &[i8; CODES]) -> __m256i {
    // SAFETY: the arrays hold the 32 and the 16 bytes that the unaligned loads read.
    let (query, row) = unsafe { (_mm256_loadu_si256(query.as_ptr().cast()), _mm_loadu_si128(row.as_ptr().cast())) };
    _mm256_madd_epi16(query, _mm256_cvtepi8_epi16(row))
}

#[target_feature(enable = "avx2")]
fn sum_of(eight: __m256i) -> i32 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
    let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)))
}

/// The scalar code: the compiler turns its bit count into one instruction here.
#[target_feature(enable = "popcnt")]
fn sign_distance_rows(query: &[u64], signs: &[u64], rows: &[u32], out: &mut [u32]) {
    each_row(signs, query.len(), rows, out, |row| query.iter().zip(row).map(|(q, x)| (q ^ x).count_ones()).sum());
}
