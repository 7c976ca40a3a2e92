//! Compares a candidate with the current model on the same sets, and tells an improvement from noise.
//!
//! For each set the errors of both are compared. Wilcoxon's signed-rank test says how likely the ranks of the
//! differences are if the candidate is no better than the current model by the margin; its distribution is
//! exact, and a few large errors cannot decide it. The mean error has to fall by the margin too.

use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, Interference, MeasuredMember, MeasuredSet, SetOutcome,
};

/// The errors of two models on the same sets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PairedComparison {
    /// Mean error of the current model: the absolute error of a slowdown as a fraction of the slowdown.
    pub(super) error_before: f64,
    /// The same of the candidate.
    pub(super) error: f64,
    /// The probability that a candidate that is not better by the margin looks as good as this one.
    pub(super) chance: f64,
}

/// A candidate must be better by this fraction of the current error.
const MARGIN: f64 = 0.02;

/// A refit that improves nothing replaces the model with at most this probability. Every refit compares anew.
const FALSE_REPLACEMENTS: f64 = 0.02;

impl PairedComparison {
    /// Compares two models by their errors on the same sets.
    pub(super) fn of(before: &[f64], after: &[f64]) -> PairedComparison {
        let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        let gains: Vec<f64> =
            before.iter().zip(after).map(|(before, after)| (1.0 - MARGIN) * before - after).collect();
        PairedComparison { error_before: mean(before), error: mean(after), chance: signed_rank(&gains) }
    }

    /// Whether the candidate is better beyond noise; `candidates` were compared, and any could have won.
    pub(super) fn is_improvement(&self, candidates: usize) -> bool {
        self.error < (1.0 - MARGIN) * self.error_before
            && self.chance <= FALSE_REPLACEMENTS / candidates.max(1) as f64
    }
}

/// The error of a model on each set: the mean over the members that were measured.
pub(super) fn errors(model: &dyn Interference, measured: &[MeasuredSet]) -> Vec<f64> {
    let sets: Vec<ColocationSet> = measured.iter().map(|it| it.set.clone()).collect();
    let of_set = |(predicted, measured): (Vec<ColocationEstimate>, &MeasuredSet)| {
        let SetOutcome::Ran(observed) = &measured.outcome else { return 0.0 };
        let off = |(predicted, observed): (&ColocationEstimate, &MeasuredMember)| {
            (predicted.slowdown / observed.slowdown - 1.0).abs()
        };
        predicted.iter().zip(observed).map(off).sum::<f64>() / observed.len().max(1) as f64
    };
    model.predict(&sets).into_iter().zip(measured).map(of_set).collect()
}

/// Wilcoxon's signed-rank test, one-sided: the probability of positive ranks that add up to at least as much,
/// if every difference could as well have the other sign. Differences of 0 are left out.
fn signed_rank(differences: &[f64]) -> f64 {
    let mut ordered: Vec<f64> = differences.iter().copied().filter(|it| *it != 0.0).collect();
    ordered.sort_unstable_by(|one, other| one.abs().total_cmp(&other.abs()));
    let ranks = doubled_ranks(&ordered);
    let positive: usize =
        ordered.iter().zip(&ranks).filter(|(it, _)| **it > 0.0).map(|(_, rank)| *rank).sum();
    // The distribution of the sum over all signs, one rank after the other.
    let mut sums = vec![1.0];
    for rank in ranks {
        let mut next = vec![0.0; sums.len() + rank];
        for (sum, probability) in sums.iter().enumerate() {
            next[sum] += 0.5 * probability;
            next[sum + rank] += 0.5 * probability;
        }
        sums = next;
    }
    sums[positive..].iter().sum()
}

/// Twice the rank of each difference, which is whole also where equal ones share the mean of their ranks.
fn doubled_ranks(ordered: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(ordered.len());
    for tied in ordered.chunk_by(|one, other| one.abs() == other.abs()) {
        let shared = 2 * ranks.len() + tied.len() + 1;
        ranks.extend(std::iter::repeat_n(shared, tied.len()));
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_published_table() {
        // Critical values of Wilcoxon's table: the sum of negative ranks at which the one-sided chance is
        // just below 5% and 1%.
        let chance = |count: usize, negative: &[usize]| {
            let of = |rank: usize| if negative.contains(&rank) { -(rank as f64) } else { rank as f64 };
            signed_rank(&(1..=count).map(of).collect::<Vec<_>>())
        };
        assert!(chance(10, &[10]) <= 0.05 && chance(10, &[1, 10]) > 0.05, "critical value 10");
        assert!(chance(10, &[5]) <= 0.01 && chance(10, &[6]) > 0.01, "critical value 5");
        assert!(chance(20, &[20, 19, 4]) <= 0.01 && chance(20, &[20, 19, 5]) > 0.01, "critical value 43");
        assert_eq!(chance(5, &[]), 1.0 / 32.0);
        assert_eq!(signed_rank(&[]), 1.0);
        assert_eq!(signed_rank(&[1.0, 1.0, -1.0]), 0.5, "equal differences share their ranks");
    }

    #[test]
    fn few_sets_are_no_evidence_and_neither_is_less_than_the_margin() {
        let compare =
            |count: usize, after: f64| PairedComparison::of(&vec![0.10; count], &vec![after; count]);
        assert!(!compare(5, 0.01).is_improvement(1), "five sets all point one way by chance in 3%");
        assert!(compare(6, 0.01).is_improvement(1) && !compare(6, 0.01).is_improvement(2));
        assert!(!compare(100, 0.0985).is_improvement(1) && compare(100, 0.0975).is_improvement(1));
        assert!(!PairedComparison::of(&[], &[]).is_improvement(1));
    }
}
