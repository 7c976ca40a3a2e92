//! Means and percentiles.

/// The mean; 0 without values.
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0_u64), |(sum, count), it| (sum + it, count + 1));
    if count > 0 { sum / count as f64 } else { 0.0 }
}

/// The smallest of the sorted values that at least this fraction of them does not exceed; 0 without values.
pub(super) fn percentile<T: Copy + Default>(sorted: &[T], part: f64) -> T {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<u64> = (1..=100).collect();
        assert_eq!([0.5, 0.95, 0.99, 1.0].map(|part| percentile(&values, part)), [50, 95, 99, 100]);
        assert_eq!((percentile(&[7], 0.5), percentile::<u64>(&[], 0.5)), (7, 0));
    }

    #[test]
    fn the_mean_without_values_is_zero() {
        assert_eq!((mean([1.0, 2.0, 6.0]), mean([])), (3.0, 0.0));
    }
}
