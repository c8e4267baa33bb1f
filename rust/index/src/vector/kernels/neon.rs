//! The kernels for aarch64, where NEON is part of the base instruction set.

use std::arch::aarch64::{
    float32x4_t, int32x4_t, vadd_f32, vaddq_f32, vaddq_s32, vaddvq_s32, vaddw_high_u8, vaddw_u8, vandq_u8, vdupq_n_f32,
    vdupq_n_s32, vdupq_n_u8, vdupq_n_u16, vget_high_f32, vget_high_s8, vget_high_s16, vget_lane_f32, vget_low_f32,
    vget_low_s8, vget_low_s16, vget_low_u8, vld1q_f32, vld1q_s8, vld1q_s16, vld1q_u8, vmlal_s16, vmovl_s8, vmulq_f32,
    vqtbl1q_u8, vshrq_n_u8, vst1q_u16,
};

use super::{BLOCK, Kernels, LANES, Line, SignBlock, TABLE, TABLES_AT_ONCE, each_row, scalar};

/// Numbers in one register of f32.
const FLOATS: usize = 4;
/// Registers that hold all lanes of a sum.
const REGISTERS: usize = LANES / FLOATS;
/// Codes in one register.
const CODES: usize = 16;

pub(super) static NEON: Kernels = Kernels {
    name: "neon",
    // SAFETY: this module is compiled only where NEON is enabled for the whole program.
    dot_exact: |a, b| unsafe { dot_exact(a, b) },
    // SAFETY: as above.
    dot_codes_rows: |query, codes, rows, out| unsafe { dot_codes_rows(query, codes, rows, out) },
    // SAFETY: as above.
    estimate_block: |line, block, floor, reach| unsafe { estimate_block(line, block, floor, reach) },
};

#[target_feature(enable = "neon")]
fn dot_exact(a: &[f32], b: &[f32]) -> f32 {
    let (a_blocks, a_tail) = a.as_chunks::<LANES>();
    let (b_blocks, b_tail) = b.as_chunks::<LANES>();
    let mut sums = [vdupq_n_f32(0.0); REGISTERS];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        add_products(&mut sums, a, b);
    }
    if !a_tail.is_empty() {
        // A padded lane adds +0.0, which leaves any sum as it was: no sum is ever -0.0.
        add_products(&mut sums, &padded(a_tail), &padded(b_tail));
    }
    fold(sums)
}

#[target_feature(enable = "neon")]
fn add_products(sums: &mut [float32x4_t; REGISTERS], a: &[f32; LANES], b: &[f32; LANES]) {
    let (a, _) = a.as_chunks::<FLOATS>();
    let (b, _) = b.as_chunks::<FLOATS>();
    for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
        // SAFETY: both arrays hold the 4 numbers that a load reads.
        let (a, b) = unsafe { (vld1q_f32(a.as_ptr()), vld1q_f32(b.as_ptr())) };
        // Two roundings, not a fused one: CPUs without FMA must get the same sum (I14).
        *sum = vaddq_f32(*sum, vmulq_f32(a, b));
    }
}

fn padded(tail: &[f32]) -> [f32; LANES] {
    let mut block = [0.0; LANES];
    block[..tail.len()].copy_from_slice(tail);
    block
}

/// Adds the upper half of the lanes to the lower until one is left.
#[target_feature(enable = "neon")]
fn fold(mut sums: [float32x4_t; REGISTERS]) -> f32 {
    let mut width = REGISTERS / 2;
    while width > 0 {
        for register in 0..width {
            sums[register] = vaddq_f32(sums[register], sums[register + width]);
        }
        width /= 2;
    }
    let two = vadd_f32(vget_low_f32(sums[0]), vget_high_f32(sums[0]));
    vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
}

#[target_feature(enable = "neon")]
fn dot_codes_rows(query: &[i16], codes: &[i8], rows: &[u32], out: &mut [i32]) {
    each_row(codes, query.len(), rows, out, |row| dot_codes(query, row));
}

#[target_feature(enable = "neon")]
fn dot_codes(query: &[i16], row: &[i8]) -> i32 {
    let (query, query_tail) = query.as_chunks::<CODES>();
    let (row, row_tail) = row.as_chunks::<CODES>();
    let mut sums = [vdupq_n_s32(0); 2];
    for (query, row) in query.iter().zip(row) {
        add_codes(&mut sums, query, row);
    }
    vaddvq_s32(vaddq_s32(sums[0], sums[1])) + scalar::dot_codes(query_tail, row_tail)
}

#[target_feature(enable = "neon")]
fn add_codes(sums: &mut [int32x4_t; 2], query: &[i16; CODES], row: &[i8; CODES]) {
    // SAFETY: the arrays hold the 16 codes that the three loads read: 8, 8 and 16.
    let (low, high, row) =
        unsafe { (vld1q_s16(query.as_ptr()), vld1q_s16(query[8..].as_ptr()), vld1q_s8(row.as_ptr())) };
    let (row_low, row_high) = (vmovl_s8(vget_low_s8(row)), vmovl_s8(vget_high_s8(row)));
    sums[0] = vmlal_s16(sums[0], vget_low_s16(low), vget_low_s16(row_low));
    sums[1] = vmlal_s16(sums[1], vget_high_s16(low), vget_high_s16(row_low));
    sums[0] = vmlal_s16(sums[0], vget_low_s16(high), vget_low_s16(row_high));
    sums[1] = vmlal_s16(sums[1], vget_high_s16(high), vget_high_s16(row_high));
}

#[target_feature(enable = "neon")]
fn estimate_block(line: &Line<'_>, block: SignBlock<'_>, floor: f32, reach: &mut [f32; BLOCK]) -> u32 {
    const AT_ONCE: usize = TABLE * TABLES_AT_ONCE;
    let mut sums = [0.0; BLOCK];
    for (tables, block) in line.tables.chunks(AT_ONCE).zip(block.nibbles.chunks(AT_ONCE)) {
        let mut whole = [vdupq_n_u16(0); 4];
        for (table, codes) in tables.as_chunks::<TABLE>().0.iter().zip(block.as_chunks::<TABLE>().0) {
            // SAFETY: both arrays hold the 16 bytes that a load reads.
            let (table, codes) = unsafe { (vld1q_u8(table.as_ptr()), vld1q_u8(codes.as_ptr())) };
            let lows = vqtbl1q_u8(table, vandq_u8(codes, vdupq_n_u8(0x0f)));
            let highs = vqtbl1q_u8(table, vshrq_n_u8::<4>(codes));
            whole[0] = vaddw_u8(whole[0], vget_low_u8(lows));
            whole[1] = vaddw_high_u8(whole[1], lows);
            whole[2] = vaddw_u8(whole[2], vget_low_u8(highs));
            whole[3] = vaddw_high_u8(whole[3], highs);
        }
        for (whole, sums) in whole.into_iter().zip(sums.as_chunks_mut::<8>().0) {
            let mut numbers = [0_u16; 8];
            // SAFETY: the array holds the 8 numbers that are written.
            unsafe { vst1q_u16(numbers.as_mut_ptr(), whole) };
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += f32::from(number));
        }
    }
    scalar::estimate(line, block.factors, &sums, floor, reach)
}
