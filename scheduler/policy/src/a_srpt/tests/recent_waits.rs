//! The window of waits compared with a plain sort.

use cohabit_types::Span;
use proptest::prelude::*;

use super::super::recent_waits::RecentWaits;

proptest! {
    #[test]
    fn the_median_is_that_of_the_last_two_hundred(waits in prop::collection::vec(0_u64..50, 0..500)) {
        let mut recent = RecentWaits::default();
        waits.iter().for_each(|wait| recent.note(Span::from_micros(*wait)));
        let mut last: Vec<u64> = waits.iter().rev().take(200).copied().collect();
        last.sort_unstable();
        let median = last.get(last.len() / 2).copied().unwrap_or(0);
        prop_assert_eq!(recent.median(), Span::from_micros(median));
    }
}
