//! Ridge regression of few numbers from sparse rows.

use super::cholesky::Cholesky;

/// A sparse row: indices of effects with their coefficients.
pub(crate) type SparseRow = Vec<(usize, f64)>;

/// Estimates the effects from noisy sums of them; each is shrunk towards 0 by its prior variance.
pub(crate) fn ridge(rows: &[(SparseRow, f64)], variances: &[f64], noise: f64) -> Vec<f64> {
    let size = variances.len();
    let mut products = vec![0.0; size * size];
    let mut right = vec![0.0; size];
    for (terms, value) in rows {
        for (row, one) in terms {
            right[*row] += one * value;
            terms.iter().for_each(|(column, other)| products[row * size + column] += one * other);
        }
    }
    let value = |row: usize, column: usize| {
        products[row * size + column] + if row == column { noise / variances[row] } else { 0.0 }
    };
    Cholesky::of(size, value).solve(&right)
}
