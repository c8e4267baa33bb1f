//! The kernels in plain Rust: what the others must equal, and what a CPU without them runs.

use super::{BLOCK, Kernels, LANES, Line, SignBlock, TABLE, each_row};

pub(super) static SCALAR: Kernels = Kernels { name: "scalar", dot_exact, dot_codes_rows, estimate_block };

/// Dot product in the lane order that every kernel keeps: see [`Kernels::dot_exact`].
pub(super) fn dot_exact(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

pub(super) fn dot_codes(query: &[i16], row: &[i8]) -> i32 {
    query.iter().zip(row).map(|(&q, &x)| i32::from(q) * i32::from(x)).sum()
}

fn dot_codes_rows(query: &[i16], codes: &[i8], rows: &[u32], out: &mut [i32]) {
    each_row(codes, query.len(), rows, out, |row| dot_codes(query, row));
}

/// See [`super::EstimateBlock`]. The sums are whole numbers that an f32 holds exactly.
fn estimate_block(line: &Line<'_>, block: SignBlock<'_>, floor: f32, reach: &mut [f32; BLOCK]) -> u32 {
    let mut sums = [0_u32; BLOCK];
    for (table, nibbles) in line.tables.as_chunks::<TABLE>().0.iter().zip(block.nibbles.as_chunks::<TABLE>().0) {
        for (row, byte) in nibbles.iter().enumerate() {
            sums[row] += u32::from(table[usize::from(byte & 0x0f)]);
            sums[TABLE + row] += u32::from(table[usize::from(byte >> 4)]);
        }
    }
    estimate(line, block.factors, &sums.map(|sum| sum as f32), floor, reach)
}

/// The estimates of rows whose sums are known.
pub(super) fn estimate(
    line: &Line<'_>,
    [worth, error, along]: &[[f32; BLOCK]; 3],
    sums: &[f32; BLOCK],
    floor: f32,
    reach: &mut [f32; BLOCK],
) -> u32 {
    let mut bits = 0;
    for (row, reach) in reach.iter_mut().enumerate() {
        let estimate = worth[row] * (line.step * sums[row] + line.base) + along[row];
        *reach = estimate + line.deviations * error[row] + line.offset;
        bits |= u32::from(*reach >= floor) << row;
    }
    bits
}
