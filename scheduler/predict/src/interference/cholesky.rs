//! Cholesky factorisation: linear equations with a symmetric positive definite matrix.

/// The lower triangle L of `A = L Lᵀ`, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

/// The smallest pivot. The matrix has noise on its diagonal, so only rounding can bring a pivot below it.
const MIN_PIVOT: f64 = 1e-10;
/// The number of partial sums, for the sake of vector units.
const LANES: usize = 8;

impl Cholesky {
    /// Factorises the matrix with these values in its lower triangle.
    pub(crate) fn of(size: usize, value: impl Fn(usize, usize) -> f64) -> Cholesky {
        let mut lower = vec![0.0; size * size];
        for row in 0..size {
            let (above, below) = lower.split_at_mut(row * size);
            let this = &mut below[..size];
            for column in 0..row {
                let other = &above[column * size..column * size + column + 1];
                let rest = value(row, column) - product(&this[..column], &other[..column]);
                this[column] = rest / other[column];
            }
            let rest = value(row, row) - product(&this[..row], &this[..row]);
            this[row] = rest.max(MIN_PIVOT).sqrt();
        }
        Cholesky { size, lower }
    }

    /// Solves `A x = b` for `x`.
    pub(crate) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut x = right.to_vec();
        for row in 0..self.size {
            let (this, diagonal) = self.row(row);
            x[row] = (x[row] - product(this, &x[..row])) / diagonal;
        }
        for row in (0..self.size).rev() {
            let (this, diagonal) = self.row(row);
            x[row] /= diagonal;
            let value = x[row];
            x[..row].iter_mut().zip(this).for_each(|(x, factor)| *x -= factor * value);
        }
        x
    }

    /// The row left of the diagonal, and the diagonal.
    fn row(&self, row: usize) -> (&[f64], f64) {
        let start = row * self.size;
        (&self.lower[start..start + row], self.lower[start + row])
    }
}

/// The scalar product. The fixed order of summation gives the same sum to the last bit.
fn product(one: &[f64], other: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (ones, others) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest: f64 = ones.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    for (one, other) in ones.zip(others) {
        for lane in 0..LANES {
            lanes[lane] += one[lane] * other[lane];
        }
    }
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        let size = 21;
        let value =
            |row: usize, column: usize| 1.0 / (1.0 + row.abs_diff(column) as f64) + f64::from(row == column);
        let x: Vec<f64> = (0..size).map(|at| (at as f64 - 7.0) / 3.0).collect();
        let right: Vec<f64> =
            (0..size).map(|row| (0..size).map(|column| value(row, column) * x[column]).sum()).collect();
        let solved = Cholesky::of(size, value).solve(&right);
        assert!(solved.iter().zip(&x).all(|(is, should)| (is - should).abs() < 1e-12), "{solved:?}");
    }
}
