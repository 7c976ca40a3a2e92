//! Arrays: many jobs that differ only in their index.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// The members of an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Array {
    /// Their indices, as written: `1-100`, `0-9:3`, `4`.
    pub ranges: Vec<IndexRange>,
    /// How many may run at once; no limit without it.
    pub at_once: Option<u32>,
}

/// Indices from `first` to `last`, both included, `step` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IndexRange {
    /// The first index.
    pub first: u32,
    /// The last index, if `step` meets it.
    pub last: u32,
    /// At least 1.
    pub step: u32,
}

/// One member for each index, all at once if there is room.
impl From<RangeInclusive<u32>> for Array {
    fn from(indices: RangeInclusive<u32>) -> Array {
        let (first, last) = indices.into_inner();
        Array { ranges: vec![IndexRange { first, last, step: 1 }], at_once: None }
    }
}

impl Array {
    /// The largest number of members that one array may have.
    pub const MAX_MEMBERS: u64 = 1_000_000;

    /// All indices in the order written.
    pub fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|range| (range.first..=range.last).step_by(range.step.max(1) as usize))
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        let members = |range: &IndexRange| match range.last.checked_sub(range.first) {
            Some(width) => u64::from(width / range.step.max(1)) + 1,
            None => 0,
        };
        self.ranges.iter().map(members).sum()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Array {
    /// Refuses what can never be run, in words for the person who wrote it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.at_once == Some(0) {
            return Err("an array with a limit of %0 would never run: give at least %1".into());
        }
        match self.len() {
            0 => Err("the array has no members: give at least one index, like 0-9".into()),
            n if n > Array::MAX_MEMBERS => Err(format!(
                "the array has {n} members, and at most {} are allowed: split it into several arrays",
                Array::MAX_MEMBERS
            )),
            _ => self.check_distinct(),
        }
    }

    fn check_distinct(&self) -> Result<(), String> {
        let mut indices: Vec<u32> = self.indices().collect();
        indices.sort_unstable();
        match indices.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("the array contains index {} twice", pair[0])),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(ranges: &[(u32, u32, u32)]) -> Array {
        let range = |&(first, last, step): &(u32, u32, u32)| IndexRange { first, last, step };
        Array { ranges: ranges.iter().map(range).collect(), at_once: None }
    }

    #[test]
    fn an_array_counts_what_it_lists() {
        for ranges in [&[(0, 9, 3)][..], &[(1, 1, 1), (5, 7, 1)], &[(0, 10, 5)], &[(3, 2, 1)]] {
            let array = array(ranges);
            assert_eq!(array.len(), array.indices().count() as u64, "{ranges:?}");
        }
    }

    #[test]
    fn an_invalid_array_is_refused() {
        let refused = |ranges: &[(u32, u32, u32)]| array(ranges).check().unwrap_err();
        assert!(refused(&[(3, 2, 1)]).contains("no members"));
        assert!(refused(&[(0, 4, 2), (4, 4, 1)]).contains("twice"));
        assert!(refused(&[(0, u32::MAX, 1)]).contains("split it"));
        let none_at_once = Array { at_once: Some(0), ..array(&[(0, 3, 1)]) };
        assert!(none_at_once.check().unwrap_err().contains("at least %1"));
    }
}
