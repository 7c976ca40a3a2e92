//! The lower median, which is one of the values, so that counts stay whole.

/// The lower median of the values; `None` without values.
pub(crate) fn median<T: Copy + PartialOrd>(mut values: Vec<T>) -> Option<T> {
    values.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_an_even_number_is_the_lower_middle() {
        assert_eq!(median::<u64>(vec![]), None);
        assert_eq!(median(vec![3]), Some(3));
        assert_eq!(median(vec![4, 1, 3, 2]), Some(2));
    }
}
