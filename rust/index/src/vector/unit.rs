//! Vectors of length one: the only kind that enters the index or is asked of it.

use super::codes;
use super::error::VectorError;
use super::limits::{DIMENSIONS_MAX, UNIT_TOLERANCE};

/// A query vector, checked and normalised once, with the codes that the scans compare.
#[derive(Debug, Clone)]
pub struct UnitQuery {
    pub(super) exact: Vec<f32>,
    pub(super) codes: codes::QueryCodes,
}

impl UnitQuery {
    /// Prepares `vector` to be asked of an index of `dim` numbers a vector.
    ///
    /// # Errors
    ///
    /// [`VectorError`] when the length is not `dim`, or when [`normalise`] refuses the vector.
    pub fn new(vector: &[f32], dim: usize) -> Result<Self, VectorError> {
        if vector.len() != dim {
            return Err(VectorError::WrongLength { expected: dim, found: vector.len() });
        }
        let exact = normalise(vector)?;
        Ok(Self { codes: codes::QueryCodes::new(&exact), exact })
    }

    /// Numbers in the query vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.exact.len()
    }
}

/// Scales `vector` to length one; the check shared by memories and queries.
///
/// A vector that already has length one, to within f32 rounding, is returned as it came, so that
/// normalising twice changes nothing.
///
/// # Errors
///
/// [`VectorError`] when the vector is empty, too long, all zeros, or holds NaN or an infinity.
///
/// ```
/// let unit = memkura_index::vector::normalise(&[3.0, 4.0])?;
/// assert_eq!(unit, [0.6, 0.8]);
/// # Ok::<(), memkura_index::vector::VectorError>(())
/// ```
pub fn normalise(vector: &[f32]) -> Result<Vec<f32>, VectorError> {
    normalise_row(0, vector)
}

/// [`normalise`], with errors that name the row.
pub(super) fn normalise_row(row: usize, vector: &[f32]) -> Result<Vec<f32>, VectorError> {
    check(row, vector)?;
    // In f64 no square of an f32 can overflow or vanish, and the order of summation is fixed (I14).
    let length = codes::length(vector);
    if (length - 1.0).abs() <= UNIT_TOLERANCE {
        return Ok(vector.to_vec());
    }
    Ok(vector.iter().map(|&x| (f64::from(x) / length) as f32).collect())
}

fn check(row: usize, vector: &[f32]) -> Result<(), VectorError> {
    check_finite(row, vector)?;
    if vector.iter().all(|&x| x == 0.0) {
        return Err(VectorError::Zero { row });
    }
    Ok(())
}

/// Refuses NaN, infinities, and vectors too long for any index.
fn check_finite(row: usize, vector: &[f32]) -> Result<(), VectorError> {
    if vector.len() > DIMENSIONS_MAX {
        return Err(VectorError::TooManyDimensions { found: vector.len() });
    }
    let Some(position) = vector.iter().position(|x| !x.is_finite()) else {
        return Ok(());
    };
    Err(if vector[position].is_nan() {
        VectorError::NotANumber { row, position }
    } else {
        VectorError::Infinite { row, position }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each kind of bad vector has its own error, and the error names the number at fault.
    #[test]
    fn bad_vectors_are_refused_by_name() {
        assert_eq!(normalise(&[0.0, -0.0]), Err(VectorError::Zero { row: 0 }));
        assert_eq!(normalise(&[]), Err(VectorError::Zero { row: 0 }));
        let nan = normalise(&[1.0, f32::NAN]);
        assert_eq!(nan, Err(VectorError::NotANumber { row: 0, position: 1 }));
        let infinite = normalise(&[f32::NEG_INFINITY, 1.0]);
        assert_eq!(infinite, Err(VectorError::Infinite { row: 0, position: 0 }));
        let long = vec![1.0; DIMENSIONS_MAX + 1];
        assert_eq!(normalise(&long), Err(VectorError::TooManyDimensions { found: long.len() }));
    }

    /// A query of another dimension is refused with both lengths in the message.
    #[test]
    fn wrong_length_names_both_lengths() {
        let error = UnitQuery::new(&[1.0; 12], 8).unwrap_err();
        assert_eq!(error.to_string(), "a vector of 8 numbers is needed, 12 were given");
    }

    /// The extremes of f32 have a direction like any other vector.
    #[test]
    fn huge_and_tiny_vectors_are_normalised() {
        for x in [f32::MAX, f32::MIN_POSITIVE, 1e-45] {
            assert_eq!(normalise(&[x, 0.0]).unwrap(), [1.0, 0.0]);
        }
    }

    proptest! {
        /// A vector read back from the record is the very same vector after another pass.
        #[test]
        fn normalising_twice_changes_nothing(
            vector in prop::collection::vec(-1e3f32..1e3, 1..200)
        ) {
            prop_assume!(vector.iter().any(|&x| x != 0.0));
            let once = normalise(&vector).unwrap();
            prop_assert_eq!(&normalise(&once).unwrap(), &once);
        }
    }
}
