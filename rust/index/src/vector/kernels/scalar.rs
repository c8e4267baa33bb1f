//! The kernels in plain Rust: what the others must equal, and what a CPU without them runs.

use super::{Kernels, LANES, each_row};

pub(super) static SCALAR: Kernels = Kernels { name: "scalar", dot_exact, dot_codes_rows, sign_distance_rows };

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

pub(super) fn sign_distance(query: &[u64], row: &[u64]) -> u32 {
    query.iter().zip(row).map(|(q, x)| (q ^ x).count_ones()).sum()
}

fn dot_codes_rows(query: &[i16], codes: &[i8], rows: &[u32], out: &mut [i32]) {
    each_row(codes, query.len(), rows, out, |row| dot_codes(query, row));
}

pub(super) fn sign_distance_rows(query: &[u64], signs: &[u64], rows: &[u32], out: &mut [u32]) {
    each_row(signs, query.len(), rows, out, |row| sign_distance(query, row));
}
