//! Which sets judge models. No model that the head trains ever learns from them, so neither a candidate nor
//! the version that it would replace can have learned the sets on which the two are compared.
//!
//! A hash of the configurations decides, for all GPUs and ways of sharing alike: what a pair does on one GPU
//! tells much of what it does on another. Nothing has to be stored, and restarts change nothing.
//!
//! A model that the head did not train by this rule may have learned anything up to the time when it was
//! made: the operator's tables and models, and versions of releases that had another rule. Only sets that
//! were first seen later judge such a model.

use cohabit_policy::interference::{Configuration, MeasuredSet, ObservedSet, SetMember};
use cohabit_types::Time;
use sha2::{Digest, Sha256};

/// The name of this rule in the files of versions. Another rule needs another name.
pub(super) const RULE: &str = "configurations-one-in-5";

/// One combination of configurations in this many is reserved.
const RESERVED_ONE_IN: u8 = 5;

/// At most this many of the newest sets are learned: the cost of training and of predicting grows with them.
const MAX_LEARNED_SETS: usize = 400;

/// At most this many of the newest sets judge, so that the comparison tells how the models do now.
const MAX_JUDGED_SETS: usize = 100;

/// The observed sets, divided.
#[derive(Debug)]
pub(super) struct ValidationSplit {
    /// What candidates learn from.
    pub(super) learned: Vec<MeasuredSet>,
    /// What candidates and the current model are compared on.
    pub(super) judged: Vec<MeasuredSet>,
}

impl ValidationSplit {
    /// Divides the sets, which are ordered by age. A reserved set that was first seen by `learned_until`,
    /// when a model may still have learned it, is in neither part.
    pub(super) fn of(sets: Vec<ObservedSet>, learned_until: Option<Time>) -> ValidationSplit {
        let (judging, learned): (Vec<ObservedSet>, Vec<ObservedSet>) =
            sets.into_iter().partition(|it| is_reserved(&it.measured.set.members));
        let is_new = |it: &ObservedSet| learned_until.is_none_or(|until| it.first > until);
        let judging = judging.into_iter().filter(is_new).collect();
        ValidationSplit {
            learned: newest(learned, MAX_LEARNED_SETS),
            judged: newest(judging, MAX_JUDGED_SETS),
        }
    }
}

/// Whether sets of these configurations judge models. The order of the members makes no difference.
pub(super) fn is_reserved(members: &[SetMember]) -> bool {
    let mut configurations: Vec<Configuration> = members.iter().map(SetMember::configuration).collect();
    configurations.sort();
    let mut hash = Sha256::new();
    for Configuration { model, batch, precision } in configurations {
        // Lengths make it impossible that two lists of configurations have the same bytes.
        for text in [&model, &precision] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        hash.update(batch.map_or(0, |batch| batch.saturating_add(1)).to_be_bytes());
    }
    // 256 = 5 * 51 + 1: the first byte draws all remainders alike, to within half a percent.
    hash.finalize()[0].is_multiple_of(RESERVED_ONE_IN)
}

fn newest(sets: Vec<ObservedSet>, count: usize) -> Vec<MeasuredSet> {
    let surplus = sets.len().saturating_sub(count);
    sets.into_iter().skip(surplus).map(|it| it.measured).collect()
}

#[cfg(test)]
mod tests {
    use cohabit_policy::interference::{ColocationSet, GpuKind, SetOutcome};
    use cohabit_types::{SharingStrategy, Span};

    use super::*;

    fn member(number: usize) -> SetMember {
        SetMember { model: format!("model {number}"), batch: Some(8), ..SetMember::default() }
    }

    fn observed(gpu: &str, members: [usize; 2], first: u64) -> ObservedSet {
        let set = ColocationSet {
            gpu: GpuKind::named(gpu),
            sharing: Some(SharingStrategy::Mps),
            members: members.map(member).into(),
        };
        let seen = Time::EPOCH + Span::from_secs(first);
        ObservedSet {
            measured: MeasuredSet { set, outcome: SetOutcome::DidNotFit },
            uncertainty: Vec::new(),
            first: seen,
            last: seen,
        }
    }

    #[test]
    fn one_in_five_is_reserved_in_any_order_and_on_any_gpu() {
        let pairs = || (0..80).flat_map(|one| (one..80).map(move |other| [one, other]));
        let reserved = pairs().filter(|pair| is_reserved(&pair.map(member))).count();
        assert!((0.18..0.22).contains(&(reserved as f64 / pairs().count() as f64)), "{reserved}");
        for [one, other] in pairs() {
            assert_eq!(is_reserved(&[one, other].map(member)), is_reserved(&[other, one].map(member)));
        }
        let on = |gpu| pairs().map(|pair| observed(gpu, pair, 1)).collect::<Vec<_>>();
        let judged = |gpu| ValidationSplit::of(on(gpu), None).judged;
        let members =
            |sets: &[MeasuredSet]| -> Vec<_> { sets.iter().map(|it| it.set.members.clone()).collect() };
        assert_eq!(members(&judged("v100")), members(&judged("k80")));
    }

    #[test]
    fn no_set_is_learned_in_one_split_and_judges_in_another() {
        // Two moments in the life of a cluster: other sets are the newest, the same sets recur.
        let pairs = (0..30).flat_map(|one| (one..30).map(move |other| [one, other]));
        let all: Vec<ObservedSet> = pairs.map(|pair| observed("v100", pair, 1)).collect();
        let mut later = all.clone();
        later.rotate_left(150);
        let (early, late) = (ValidationSplit::of(all, None), ValidationSplit::of(later, None));
        assert!(!early.judged.is_empty() && !late.judged.is_empty());
        for (learned, judged) in [(&early, &late), (&late, &early), (&early, &early)] {
            assert!(judged.judged.iter().all(|it| !learned.learned.contains(it)));
        }
    }

    #[test]
    fn a_model_of_unknown_training_is_judged_by_later_sets_only() {
        let pairs = || (0..30).flat_map(|one| (one..30).map(move |other| [one, other]));
        let seen = |(second, pair): (usize, [usize; 2])| observed("v100", pair, second as u64);
        let all: Vec<ObservedSet> = pairs().enumerate().map(seen).collect();
        let made = Time::EPOCH + Span::from_secs(200);
        let ValidationSplit { judged, learned } = ValidationSplit::of(all.clone(), Some(made));
        let later: Vec<_> = all.iter().skip(201).filter(|it| is_reserved(&it.measured.set.members)).collect();
        assert_eq!(judged, later.iter().map(|it| it.measured.clone()).collect::<Vec<_>>());
        assert_eq!(learned.len(), ValidationSplit::of(all, None).learned.len());
    }

    #[test]
    fn the_reserved_sets_are_the_same_in_every_release() {
        // Another hash would let a model of an earlier release be judged by what it has learned.
        let reserved = (0..40).filter(|number| is_reserved(&[*number, 2].map(member)));
        assert_eq!(reserved.collect::<Vec<_>>(), RESERVED_BESIDE_MODEL_2);
    }

    /// Worked out with Python's hashlib.
    const RESERVED_BESIDE_MODEL_2: &[usize] = &[6, 8, 10, 11, 16, 22, 25, 29, 34, 38];
}
