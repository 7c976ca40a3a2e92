//! The order in which sets are measured.
//!
//! Pure. Combinations are measured in rounds. A round first measures those of its workloads alone that no
//! earlier round had, then its combinations with each way of sharing. So an early stop leaves a smaller but
//! consistent table, and the MPS daemon starts once in a round.

use cohabit_types::SharingStrategy;

use crate::combinations::combinations;

/// The number of combinations in a round.
const ROUND_SIZE: usize = 8;

/// What to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfilePlan {
    /// The ways of sharing. Workloads that the table lacks are always measured alone, too.
    pub sharing: Vec<SharingStrategy>,
    /// How many workloads share the GPU: 1, 2 or 3.
    pub sizes: Vec<usize>,
    /// The most pairs; each is measured with every way of sharing.
    pub pairs: usize,
    /// The most triples.
    pub triples: usize,
    /// The seed of the sample, if there are more combinations.
    pub seed: u64,
}

/// Workloads that run together, by their indices in the list of workloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkloadSet {
    pub(super) sharing: SharingStrategy,
    /// In ascending order.
    pub(super) members: Vec<usize>,
}

/// All sets of a comparison of `count` workloads.
pub(super) fn agenda(workloads: usize, comparison: &ProfilePlan) -> Vec<WorkloadSet> {
    let of_size = |size: usize, most: usize| {
        let wanted = comparison.sizes.contains(&size) && !together(comparison).is_empty();
        if wanted { combinations(workloads, size, most, comparison.seed) } else { Vec::new() }
    };
    let together = interleaved(of_size(2, comparison.pairs), of_size(3, comparison.triples));
    let mut sets = AgendaBuilder { comparison, sets: Vec::new() };
    for round in together.chunks(ROUND_SIZE) {
        let mut members = round.concat();
        members.sort_unstable();
        members.dedup();
        sets.round(&members, round);
    }
    sets.round(&(0..workloads).collect::<Vec<_>>(), &[]);
    sets.sets
}

struct AgendaBuilder<'a> {
    comparison: &'a ProfilePlan,
    sets: Vec<WorkloadSet>,
}

impl AgendaBuilder<'_> {
    fn round(&mut self, members: &[usize], combinations: &[Vec<usize>]) {
        let alone: Vec<Vec<usize>> = members.iter().map(|member| vec![*member]).collect();
        for sharing in SharingStrategy::ALL.into_iter().filter(|it| self.comparison.sharing.contains(it)) {
            if self.comparison.sizes.contains(&1) && sharing != SharingStrategy::TimeSliced {
                alone.iter().for_each(|set| self.add_new(sharing, set));
            }
            if sharing != SharingStrategy::Exclusive {
                combinations.iter().for_each(|set| self.add_new(sharing, set));
            }
        }
    }

    fn add_new(&mut self, sharing: SharingStrategy, members: &[usize]) {
        let set = WorkloadSet { sharing, members: members.to_vec() };
        if !self.sets.contains(&set) {
            self.sets.push(set);
        }
    }
}

/// The ways of sharing for several workloads.
fn together(comparison: &ProfilePlan) -> Vec<SharingStrategy> {
    comparison.sharing.iter().copied().filter(|sharing| *sharing != SharingStrategy::Exclusive).collect()
}

/// Merges both lists, each spread evenly over the result.
fn interleaved<T>(one: Vec<T>, other: Vec<T>) -> Vec<T> {
    let place = |at: usize, of: usize| (2 * at + 1) as f64 / (2 * of) as f64;
    let (ones, others) = (one.len(), other.len());
    let mut all: Vec<(f64, T)> = one.into_iter().enumerate().map(|(at, it)| (place(at, ones), it)).collect();
    all.extend(other.into_iter().enumerate().map(|(at, it)| (place(at, others), it)));
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    all.into_iter().map(|(_, it)| it).collect()
}

#[cfg(test)]
mod tests {
    use SharingStrategy::{Exclusive, Mps, TimeSliced};

    use super::*;

    fn comparison(sharing: &[SharingStrategy], sizes: &[usize]) -> ProfilePlan {
        ProfilePlan { sharing: sharing.to_vec(), sizes: sizes.to_vec(), pairs: 100, triples: 4, seed: 1 }
    }

    fn count(sets: &[WorkloadSet], sharing: SharingStrategy, size: usize) -> usize {
        sets.iter().filter(|set| set.sharing == sharing && set.members.len() == size).count()
    }

    #[test]
    fn each_combination_is_measured_by_every_sharing_strategy_for_its_size() {
        let sets = agenda(5, &comparison(&[Exclusive, TimeSliced, Mps], &[1, 2, 3]));
        let counts = |sharing| [1, 2, 3].map(|size| count(&sets, sharing, size));
        assert_eq!(counts(Exclusive), [5, 0, 0]);
        assert_eq!(counts(TimeSliced), [0, 15, 4]);
        assert_eq!(counts(Mps), [5, 15, 4]);
        assert_eq!(sets.len(), 48);
    }

    #[test]
    fn every_workload_is_measured_alone_first() {
        let sets = agenda(40, &comparison(&[Mps, TimeSliced, Exclusive], &[1, 2, 3]));
        for (at, set) in sets.iter().enumerate() {
            for member in &set.members {
                let alone = WorkloadSet { sharing: Exclusive, members: vec![*member] };
                assert!(sets[..=at].contains(&alone), "{set:?} comes before {member} alone");
            }
        }
    }

    #[test]
    fn a_stop_after_the_first_round_leaves_every_kind_of_set() {
        let sets = agenda(40, &comparison(&[Exclusive, TimeSliced, Mps], &[1, 2, 3]));
        let mut once = comparison(&[Exclusive, TimeSliced, Mps], &[1, 2, 3]);
        once.triples = 50;
        let first = &agenda(40, &once)[..60];
        for (sharing, size) in [(Exclusive, 1), (TimeSliced, 2), (TimeSliced, 3), (Mps, 2), (Mps, 3)] {
            assert!(count(first, sharing, size) > 0, "{sharing:?} {size}");
        }
        let switches =
            sets.windows(2).filter(|pair| pair[0].sharing != Mps && pair[1].sharing == Mps).count();
        assert!(switches <= 15, "the MPS daemon starts {switches} times");
    }

    #[test]
    fn unrequested_sets_are_left_out() {
        assert_eq!(agenda(3, &comparison(&[Exclusive], &[1, 2, 3])).len(), 3);
        let sets = agenda(3, &comparison(&[Mps], &[2]));
        assert_eq!((sets.len(), count(&sets, Mps, 2)), (6, 6));
        assert_eq!(agenda(3, &comparison(&[TimeSliced], &[1])), []);
    }
}
