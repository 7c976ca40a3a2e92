//! The importance of each contention metric: how much of the slowdowns it explains.

/// Fits non-negative weights, the largest 1, with which the products of two jobs' metrics add up to the
/// logarithm of a slowdown, by least squares. All are 1 if nothing is explained.
///
/// A row has the products of a job's metrics and its partners', and the logarithm of its slowdown.
pub(super) fn fit_importance(rows: &[(Vec<f64>, f64)], metrics: usize) -> Vec<f64> {
    let product =
        |one: usize, other: usize| -> f64 { rows.iter().map(|(row, _)| row[one] * row[other]).sum() };
    let squares: Vec<Vec<f64>> =
        (0..metrics).map(|one| (0..metrics).map(|other| product(one, other)).collect()).collect();
    let right: Vec<f64> =
        (0..metrics).map(|metric| rows.iter().map(|(row, value)| row[metric] * value).sum()).collect();
    let mut importance = vec![0.0; metrics];
    for _ in 0..ROUNDS {
        for metric in 0..metrics {
            let predicted: f64 =
                squares[metric].iter().zip(&importance).map(|(square, importance)| square * importance).sum();
            let steepness = squares[metric][metric] + SHRINKAGE;
            importance[metric] = (importance[metric]
                + (right[metric] - predicted - SHRINKAGE * importance[metric]) / steepness)
                .max(0.0);
        }
    }
    let most = importance.iter().copied().fold(0.0, f64::max);
    if most > 0.0 { importance.iter().map(|it| it / most).collect() } else { vec![1.0; metrics] }
}

/// Rounds of coordinate descent.
const ROUNDS: usize = 200;
/// Ridge penalty: metrics that carry the same information share their importance.
const SHRINKAGE: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importance_follows_what_metrics_explain_and_is_never_negative() {
        let products = |at: u32| [7, 5, 3].map(|by| f64::from(at * by % 11) / 11.0);
        let rows: Vec<_> = (0..40)
            .map(|at| {
                let [one, two, three] = products(at);
                (vec![one, two, three], 0.8 * one + 0.2 * two - 0.1 * three)
            })
            .collect();
        let importance = fit_importance(&rows, 3);
        assert!((importance[0] - 1.0).abs() < 1e-9 && importance[2] == 0.0, "{importance:?}");
        assert!((0.1..0.4).contains(&importance[1]), "{importance:?}");
    }

    #[test]
    fn without_an_explanation_all_metrics_count_the_same() {
        assert_eq!(fit_importance(&[(vec![1.0, 0.5], -1.0)], 2), [1.0, 1.0]);
        assert_eq!(fit_importance(&[], 2), [1.0, 1.0]);
    }
}
