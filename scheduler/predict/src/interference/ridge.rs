//! Ridge regression of few numbers from sparse rows.

use super::cholesky::Cholesky;

/// A noisy sum of effects.
#[derive(Debug)]
pub(crate) struct RidgeRow {
    /// Indices of effects with their coefficients.
    pub(crate) terms: Vec<(usize, f64)>,
    pub(crate) value: f64,
    /// 1 for a row with the usual noise; less for one with more.
    pub(crate) weight: f64,
}

/// Estimates the effects from noisy sums of them; each is shrunk towards 0 by its prior variance.
pub(crate) fn ridge(rows: &[RidgeRow], variances: &[f64], noise: f64) -> Vec<f64> {
    let size = variances.len();
    let mut products = vec![0.0; size * size];
    let mut right = vec![0.0; size];
    for RidgeRow { terms, value, weight } in rows {
        for (row, one) in terms {
            let one = weight * one;
            right[*row] += one * value;
            terms.iter().for_each(|(column, other)| products[row * size + column] += one * other);
        }
    }
    let value = |row: usize, column: usize| {
        products[row * size + column] + if row == column { noise / variances[row] } else { 0.0 }
    };
    Cholesky::of(size, value).solve(&right)
}
