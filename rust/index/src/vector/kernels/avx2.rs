//! The kernels for x86-64 with AVX2, which every desktop and server since 2015 has.

use std::arch::x86_64::{
    __m128i, __m256, __m256i, _CMP_GE_OQ, _mm_add_epi16, _mm_add_epi32, _mm_add_ps, _mm_add_ss, _mm_cvtsi128_si32,
    _mm_cvtss_f32, _mm_loadu_si128, _mm_movehl_ps, _mm_shuffle_epi32, _mm_shuffle_ps, _mm_unpackhi_epi16,
    _mm_unpackhi_epi64, _mm_unpacklo_epi16, _mm256_add_epi8, _mm256_add_epi16, _mm256_add_epi32, _mm256_add_ps,
    _mm256_and_si256, _mm256_castps256_ps128, _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtepi8_epi16,
    _mm256_cvtepi32_ps, _mm256_cvtepu16_epi32, _mm256_extractf128_ps, _mm256_extracti128_si256, _mm256_loadu_ps,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_movemask_ps, _mm256_mul_ps, _mm256_set1_epi8, _mm256_set1_ps,
    _mm256_setzero_ps, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_srli_epi16,
    _mm256_storeu_ps, _mm256_sub_epi16,
};

use super::{BLOCK, ENTRY_MAX, Kernels, LANES, Line, SignBlock, TABLE, TABLES_AT_ONCE, each_row, scalar};

/// Numbers in one register of f32.
const FLOATS: usize = 8;
/// Pairs of tables whose entries add up to no more than a byte holds.
const PAIRS_IN_A_BYTE: usize = u8::MAX as usize / ENTRY_MAX as usize;
/// Codes in one register, once widened to 16 bits.
const CODES: usize = 16;

/// The kernels, if this CPU can run them.
pub(super) fn detect() -> Option<&'static Kernels> {
    static AVX2: Kernels = Kernels {
        name: "avx2",
        // SAFETY: this table is handed out only after the feature was detected.
        dot_exact: |a, b| unsafe { dot_exact(a, b) },
        // SAFETY: as above.
        dot_codes_rows: |query, codes, rows, out| unsafe {
            dot_codes_rows(query, codes, rows, out);
        },
        // SAFETY: as above.
        estimate_block: |line, block, floor, reach| unsafe { estimate_block(line, block, floor, reach) },
    };
    is_x86_feature_detected!("avx2").then_some(&AVX2)
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

#[target_feature(enable = "avx2")]
fn estimate_block(line: &Line<'_>, block: SignBlock<'_>, floor: f32, reach: &mut [f32; BLOCK]) -> u32 {
    const AT_ONCE: usize = TABLE * TABLES_AT_ONCE;
    let mut sums = [0.0; BLOCK];
    for (tables, block) in line.tables.chunks(AT_ONCE).zip(block.nibbles.chunks(AT_ONCE)) {
        add_sums(tables.as_chunks().0, block.as_chunks().0, &mut sums);
    }
    let all = |number: f32| _mm256_set1_ps(number);
    let [worth, error, along] = block.factors;
    let (worth, error, along) = (worth.as_chunks().0, error.as_chunks().0, along.as_chunks().0);
    let (sums, reach) = (sums.as_chunks::<FLOATS>().0, reach.as_chunks_mut::<FLOATS>().0);
    let mut bits = 0;
    for at in 0..BLOCK / FLOATS {
        let load = |numbers: &[f32; FLOATS]| {
            // SAFETY: the array holds the 8 numbers that an unaligned load reads.
            unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
        };
        // Two roundings, not a fused one, in the order of the scalar code.
        let sum = _mm256_add_ps(_mm256_mul_ps(all(line.step), load(&sums[at])), all(line.base));
        let estimate = _mm256_add_ps(_mm256_mul_ps(load(&worth[at]), sum), load(&along[at]));
        let most = _mm256_add_ps(estimate, _mm256_mul_ps(all(line.deviations), load(&error[at])));
        let most = _mm256_add_ps(most, all(line.offset));
        // SAFETY: the array holds the 8 numbers that are written.
        unsafe { _mm256_storeu_ps(reach[at].as_mut_ptr(), most) };
        bits |= (_mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(most, all(floor))) as u32) << (FLOATS * at);
    }
    bits
}

/// Adds up so many tables that no sum leaves 16 bits. Rows' sums are kept in four registers: those of the even rows with those
/// of the odd ones in their upper halves, and those of the odd ones alone, for the low and for the high nibbles.
#[target_feature(enable = "avx2")]
fn add_sums(tables: &[[u8; 32]], block: &[[u8; 32]], sums: &mut [f32; BLOCK]) {
    let nibble = _mm256_set1_epi8(0x0f);
    let (mut low, mut low_odd) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    let (mut high, mut high_odd) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    for (tables, block) in tables.chunks(PAIRS_IN_A_BYTE).zip(block.chunks(PAIRS_IN_A_BYTE)) {
        let (mut lows, mut highs) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for (tables, codes) in tables.iter().zip(block) {
            // SAFETY: both arrays hold the 32 bytes that an unaligned load reads.
            let (tables, codes) =
                unsafe { (_mm256_loadu_si256(tables.as_ptr().cast()), _mm256_loadu_si256(codes.as_ptr().cast())) };
            lows = _mm256_add_epi8(lows, _mm256_shuffle_epi8(tables, _mm256_and_si256(codes, nibble)));
            let codes = _mm256_and_si256(_mm256_srli_epi16::<4>(codes), nibble);
            highs = _mm256_add_epi8(highs, _mm256_shuffle_epi8(tables, codes));
        }
        low = _mm256_add_epi16(low, lows);
        low_odd = _mm256_add_epi16(low_odd, _mm256_srli_epi16::<8>(lows));
        high = _mm256_add_epi16(high, highs);
        high_odd = _mm256_add_epi16(high_odd, _mm256_srli_epi16::<8>(highs));
    }
    let (sums_low, sums_high) = sums.split_at_mut(TABLE);
    for (mixed, odd, sums) in [(low, low_odd, sums_low), (high, high_odd, sums_high)] {
        let even = _mm256_sub_epi16(mixed, _mm256_slli_epi16::<8>(odd));
        let (even, odd) = (both_lanes(even), both_lanes(odd));
        let halves = [_mm_unpacklo_epi16(even, odd), _mm_unpackhi_epi16(even, odd)];
        for (half, sums) in halves.into_iter().zip(sums.as_chunks_mut::<8>().0) {
            let added = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(half));
            // SAFETY: the array holds the 8 numbers that are read and written.
            unsafe { _mm256_storeu_ps(sums.as_mut_ptr(), _mm256_add_ps(_mm256_loadu_ps(sums.as_ptr()), added)) };
        }
    }
}

/// The sums of two tables' halves: rows have one place in each.
#[target_feature(enable = "avx2")]
fn both_lanes(sums: __m256i) -> __m128i {
    _mm_add_epi16(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums))
}
