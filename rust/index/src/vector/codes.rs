//! Short codes of a unit vector: small integers, with a bound on what they lose.
//!
//! A row `x` is kept as `scale × codes + rest`. The length of `rest` is kept beside it, so a dot
//! product of codes comes with a proven bound: the exact cosine is never further away than
//! [`QueryCodes::margin`] says. That is what lets a scan of codes return exact results.

use super::limits::CODE_MAX;

/// How a row's i8 codes map back to numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowScale {
    /// What one step of a code is worth.
    pub scale: f32,
    /// Length of the part of the row that its codes do not carry.
    pub rest: f32,
}

/// The query in 16-bit steps.
///
/// The kernels widen a row's codes to 16 bits in any case, so the finer query costs nothing, and
/// leaves only the row's own rounding in the bound.
#[derive(Debug, Clone)]
pub(super) struct QueryCodes {
    pub codes: Vec<i16>,
    scale: f32,
    /// Upper bound on the length of `scale × codes`.
    reach: f32,
    /// The part of the bound that is the same for every row.
    floor: f32,
}

impl QueryCodes {
    pub fn new(unit: &[f32]) -> Self {
        // As fine as an `i32` can add up; the lengths that enter are bounded, so never below 258.
        let room = i32::MAX as usize / (CODE_MAX as usize * unit.len());
        let code_max = room.min(i16::MAX as usize) as f32;
        let scale = largest(unit) / code_max;
        let codes: Vec<i16> = unit.iter().map(|&x| step(x, scale, code_max) as i16).collect();
        let rest = rest_length(unit, scale, &codes);
        let rounding = rounding_of_dot(unit.len());
        Self { codes, scale, reach: 1.0 + rest + rounding, floor: rest + rounding }
    }

    /// The cosine that the codes alone give.
    pub fn cosine(&self, dot: i32, row: RowScale) -> f32 {
        dot as f32 * self.scale * row.scale
    }

    /// How far the exact cosine can lie from [`Self::cosine`] (Cauchy–Schwarz on both rests).
    pub fn margin(&self, row: RowScale) -> f32 {
        row.rest * self.reach + self.floor
    }
}

/// Bound on what f32 arithmetic adds to the difference between a dot of codes and the exact kernel.
///
/// The kernel sums each of 32 lanes in turn and then folds them, so an error of half an epsilon
/// enters about `dim / 32 + 6` times; twice that, plus a little for the scales, is safe.
fn rounding_of_dot(dim: usize) -> f32 {
    (dim / 32 + 16) as f32 * f32::EPSILON
}

/// Appends the i8 codes of a unit vector and returns how they map back.
pub(super) fn push_codes(unit: &[f32], codes: &mut Vec<i8>) -> RowScale {
    let code_max = f32::from(CODE_MAX);
    let scale = largest(unit) / code_max;
    let start = codes.len();
    codes.extend(unit.iter().map(|&x| step(x, scale, code_max) as i8));
    let rest = rest_length(unit, scale, &codes[start..]);
    RowScale { scale, rest }
}

fn largest(unit: &[f32]) -> f32 {
    // Not `max`: there is no NaN here, whose rules would keep a processor from comparing several at once.
    let larger = |most: f32, x: &f32| if x.abs() > most { x.abs() } else { most };
    let (blocks, tail) = unit.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    blocks.iter().for_each(|block| lanes.iter_mut().zip(block).for_each(|(lane, x)| *lane = larger(*lane, x)));
    lanes.iter().chain(tail).fold(0.0, larger)
}

/// Numbers that are added side by side.
const LANES: usize = 8;

/// The sum of what `each` makes of the numbers of both. Its order is fixed (I14), in lanes that a processor can add at once.
pub(super) fn sum_of<T: Copy + Into<f64>>(unit: &[f32], other: &[T], each: impl Fn(f64, f64) -> f64) -> f64 {
    let (blocks, tail) = unit.as_chunks::<LANES>();
    let (other_blocks, other_tail) = other.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    let mut add = |block: &[f32], other: &[T]| {
        for (lane, (x, y)) in lanes.iter_mut().zip(block.iter().zip(other)) {
            *lane += each(f64::from(*x), (*y).into());
        }
    };
    blocks.iter().zip(other_blocks).for_each(|(block, other)| add(block, other));
    add(tail, other_tail);
    lanes.iter().sum()
}

/// The length of a vector.
pub(super) fn length(vector: &[f32]) -> f64 {
    sum_of(vector, vector, |x, y| x * y).sqrt()
}

/// The nearest whole number of steps. Without the library's rounding, for which most processors that we build for have no
/// instruction, a whole row is done at once.
fn step(x: f32, scale: f32, code_max: f32) -> i32 {
    let steps = (x / scale).clamp(-code_max, code_max);
    (steps + 0.5_f32.copysign(steps)) as i32
}

/// Length of `unit - scale × codes`, rounded up.
fn rest_length<T: Copy + Into<f64>>(unit: &[f32], scale: f32, codes: &[T]) -> f32 {
    let scale = f64::from(scale);
    let square = sum_of(unit, codes, |x, code| {
        let rest = x - code * scale;
        rest * rest
    });
    (square.sqrt() as f32).next_up()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::unit::normalise;
    use super::*;

    /// One large number among zeros is carried by its code without loss.
    #[test]
    fn axis_is_coded_exactly() {
        let mut codes = Vec::new();
        let row = push_codes(&[0.0, -1.0], &mut codes);
        assert_eq!(codes, [0, -127]);
        assert!(row.rest < 1e-6);
    }

    proptest! {
        /// The exact cosine lies within the margin of the one that the codes give.
        #[test]
        fn margin_holds_the_exact_cosine(
            pairs in prop::collection::vec((-1f32..1.0, -1f32..1.0), 1..300),
            spike in 1f32..1e4,
        ) {
            let (mut query, mut row): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            query[0] += 2.0;
            row[0] += spike;
            let (query, row) = (normalise(&query).unwrap(), normalise(&row).unwrap());
            let mut codes = Vec::new();
            let scale = push_codes(&row, &mut codes);
            let asked = QueryCodes::new(&query);
            let dot = asked.codes.iter().zip(&codes).map(|(&q, &c)| i32::from(q) * i32::from(c));
            let exact = query.iter().zip(&row).map(|(q, x)| f64::from(*q) * f64::from(*x));
            let coded = f64::from(asked.cosine(dot.sum(), scale));
            prop_assert!((exact.sum::<f64>() - coded).abs() <= f64::from(asked.margin(scale)));
        }
    }
}
