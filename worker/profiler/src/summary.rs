//! Summarises a table for each way of sharing.
//!
//! Pure.

use std::collections::BTreeMap;

use cohabit_types::SharingStrategy;

use crate::table::ProfileRow;

/// The summary of all sets of several workloads with one way of sharing.
#[derive(Debug, Clone, PartialEq)]
pub struct SharingSummary {
    /// The way of sharing.
    pub sharing: SharingStrategy,
    /// Sets that ran.
    pub feasible: usize,
    /// Sets that could not run.
    pub infeasible: usize,
    /// The average slowdown factor of a member: the time of a step divided by its time alone.
    pub mean_slowdown: Option<f64>,
    /// The average combined throughput of a set, relative to its members one after the other: more than 1 is
    /// a gain.
    pub mean_throughput: Option<f64>,
    /// The pair with the highest combined throughput.
    pub best_pair: Option<SetSlowdowns>,
    /// The pair with the lowest combined throughput.
    pub worst_pair: Option<SetSlowdowns>,
}

/// One set that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct SetSlowdowns {
    /// The names of its members.
    pub workloads: Vec<String>,
    /// The slowdown factor of each: the time of a step divided by its time alone.
    pub slowdowns: Vec<f64>,
}

impl SetSlowdowns {
    /// The combined throughput, relative to the members one after the other.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.slowdowns.iter().map(|slowdown| slowdown.recip()).sum()
    }

    fn of(rows: &[&ProfileRow]) -> Option<SetSlowdowns> {
        let slowdown =
            |row: &&ProfileRow| Some(row.solo.rate? / row.together.rate.filter(|rate| *rate > 0.0)?);
        Some(SetSlowdowns {
            workloads: rows.iter().map(|row| row.workload.clone()).collect(),
            slowdowns: rows.iter().map(slowdown).collect::<Option<_>>()?,
        })
    }
}

/// A summary for each way of sharing that occurs in the table.
#[must_use]
pub fn summaries(rows: &[ProfileRow]) -> Vec<SharingSummary> {
    let mut sets: BTreeMap<u64, Vec<&ProfileRow>> = BTreeMap::new();
    rows.iter().for_each(|row| sets.entry(row.set).or_default().push(row));
    let shared: Vec<Vec<&ProfileRow>> = sets.into_values().filter(|set| set.len() > 1).collect();
    SharingStrategy::ALL.into_iter().filter_map(|sharing| summary(sharing, &shared)).collect()
}

fn summary(sharing: SharingStrategy, sets: &[Vec<&ProfileRow>]) -> Option<SharingSummary> {
    let ours: Vec<&Vec<&ProfileRow>> =
        sets.iter().filter(|set| set.iter().all(|row| row.sharing == sharing)).collect();
    let ran: Vec<SetSlowdowns> = ours.iter().filter_map(|set| SetSlowdowns::of(set)).collect();
    let infeasible = ours.iter().filter(|set| set.iter().any(|row| !row.feasible)).count();
    let by_throughput = |a: &&SetSlowdowns, b: &&SetSlowdowns| a.throughput().total_cmp(&b.throughput());
    let pairs = || ran.iter().filter(|set| set.workloads.len() == 2);
    (!ours.is_empty()).then(|| SharingSummary {
        sharing,
        feasible: ours.len() - infeasible,
        infeasible,
        mean_slowdown: mean(ran.iter().flat_map(|set| set.slowdowns.iter().copied())),
        mean_throughput: mean(ran.iter().map(SetSlowdowns::throughput)),
        best_pair: pairs().max_by(by_throughput).cloned(),
        worst_pair: pairs().min_by(by_throughput).cloned(),
    })
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_usize), |(sum, count), number| (sum + number, count + 1));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::MemberFigures;
    use crate::table::samples::row;

    fn set(number: u64, sharing: SharingStrategy, rates: &[(&str, f64)]) -> Vec<ProfileRow> {
        rates.iter().map(|(name, rate)| row(number, sharing, name, *rate)).collect()
    }

    #[test]
    fn each_way_of_sharing_has_a_slowdown_and_a_best_and_worst_pair() {
        use SharingStrategy::{Exclusive, Mps, TimeSliced};
        let rows = [
            set(1, Exclusive, &[("a", 10.0)]),
            set(2, Mps, &[("a", 8.0), ("b", 8.0)]),
            set(3, Mps, &[("a", 5.0), ("c", 4.0)]),
            set(4, Mps, &[("a", 5.0), ("b", 5.0), ("c", 5.0)]),
            set(5, TimeSliced, &[("a", 5.0), ("b", 5.0)]),
        ]
        .concat();
        let by_sharing = summaries(&rows);
        assert_eq!(by_sharing.iter().map(|it| it.sharing).collect::<Vec<_>>(), [TimeSliced, Mps]);
        assert_eq!(
            (by_sharing[0].feasible, by_sharing[0].mean_slowdown, by_sharing[0].mean_throughput),
            (1, Some(2.0), Some(1.0))
        );
        let mps = &by_sharing[1];
        assert_eq!(mps.feasible, 3);
        assert!((mps.mean_slowdown.unwrap() - (1.25 * 2.0 + 2.0 + 2.5 + 2.0 * 3.0) / 7.0).abs() < 1e-12);
        assert_eq!(mps.best_pair.as_ref().unwrap().workloads, ["a", "b"]);
        assert_eq!(mps.worst_pair.as_ref().unwrap().workloads, ["a", "c"]);
    }

    #[test]
    fn sets_that_could_not_run_are_only_counted() {
        let mut rows = set(1, SharingStrategy::Mps, &[("a", 8.0), ("b", 8.0)]);
        for row in &mut rows {
            row.feasible = false;
            row.together = MemberFigures::default();
        }
        let summary = &summaries(&rows)[0];
        assert_eq!((summary.feasible, summary.infeasible, summary.mean_slowdown), (0, 1, None));
        assert_eq!(summary.best_pair, None);
    }
}
