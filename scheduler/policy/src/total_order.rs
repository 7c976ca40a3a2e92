//! A total order for optional numbers and for columns of numbers, so that records which hold floating-point
//! values can be keys that are compared by value.
//!
//! Numbers are compared bit by bit in the order of IEEE 754's `totalOrder`: a NaN equals itself, -0 is below
//! 0.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Compares two numbers; one that is missing comes first.
pub(crate) fn compare_numbers(one: Option<f64>, other: Option<f64>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// Compares two sets of named numbers.
pub(crate) fn compare_columns(one: &BTreeMap<String, f64>, other: &BTreeMap<String, f64>) -> Ordering {
    let mut columns = one.iter().zip(other).map(|((name, value), (other_name, other_value))| {
        name.cmp(other_name).then(value.total_cmp(other_value))
    });
    one.len().cmp(&other.len()).then_with(|| columns.find(|it| it.is_ne()).unwrap_or(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn numbers_are_ordered_with_missing_ones_first_and_every_bit_counts() {
        assert_eq!(compare_numbers(None, Some(f64::NEG_INFINITY)), Ordering::Less);
        assert_eq!(compare_numbers(Some(-0.0), Some(0.0)), Ordering::Less);
        assert_eq!(compare_numbers(Some(f64::NAN), Some(f64::NAN)), Ordering::Equal);
        assert_eq!(compare_numbers(None, None), Ordering::Equal);
    }

    #[test]
    fn columns_are_equal_only_if_names_and_values_are() {
        let one = columns(&[("a", 1.0), ("b", 2.0)]);
        assert_eq!(compare_columns(&one, &one.clone()), Ordering::Equal);
        assert_eq!(compare_columns(&one, &columns(&[("a", 1.0)])), Ordering::Greater);
        assert_eq!(compare_columns(&one, &columns(&[("a", 1.0), ("c", 2.0)])), Ordering::Less);
        assert_eq!(compare_columns(&one, &columns(&[("a", 1.5), ("b", 1.0)])), Ordering::Less);
    }
}
