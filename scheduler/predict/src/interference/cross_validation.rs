//! Splits measurements into training data, observed sets of newcomers, and test data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use cohabit_policy::interference::{Configuration, GpuKind, MeasuredSet, SetMember, SetOutcome};
use cohabit_types::SharingStrategy;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::random::RandomExt;

/// What a model has never seen when it is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldOut {
    /// One fifth of the sets, drawn by the seed. Their members were seen in other sets.
    Sets,
    /// Every set with a certain configuration; each configuration in turn.
    Configurations,
    /// Every set with a certain model in any configuration; each model in turn.
    Models,
    /// Every set on a certain GPU model; each GPU model in turn. Their members were seen on the others, so no
    /// sets are observed first.
    Gpus,
}

/// One split.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fold {
    /// What is held out, for people: `ResNet-50 (32)`.
    pub(crate) held_out: String,
    /// Training data.
    pub(crate) train: Vec<MeasuredSet>,
    /// Sets that are observed before the test.
    pub(crate) observed: Vec<MeasuredSet>,
    /// Test data.
    pub(crate) test: Vec<MeasuredSet>,
}

/// One in this many sets is held out.
const ONE_IN: usize = 5;

/// The splits of these measurements.
///
/// Sets of one job are always training data: a job in the test was measured alone. With each newcomer (a
/// held-out configuration), `observed` sets that ran are drawn on each GPU and observed before the test.
pub(crate) fn folds(measured: &[MeasuredSet], hold_out: HoldOut, observed: usize, seed: u64) -> Vec<Fold> {
    match hold_out {
        HoldOut::Sets => {
            let (train, test) = held_back(measured, ONE_IN, seed);
            vec![Fold { held_out: "sets".to_owned(), train, observed: Vec::new(), test }]
        }
        HoldOut::Configurations => {
            leave_one_out_folds(measured, |member| member.configuration().to_string(), observed, seed)
        }
        HoldOut::Models => leave_one_out_folds(measured, |member| member.model.clone(), observed, seed),
        HoldOut::Gpus => gpus(measured),
    }
}

/// A split for each name of members, in which the members of this name are new.
fn leave_one_out_folds(
    measured: &[MeasuredSet],
    name: impl Fn(&SetMember) -> String,
    observed: usize,
    seed: u64,
) -> Vec<Fold> {
    let names: BTreeSet<String> = measured.iter().flat_map(|it| &it.set.members).map(&name).collect();
    let fold = |held_out: String| {
        let is_new = |member: &SetMember| name(member) == held_out;
        let meets = |it: &MeasuredSet| it.set.members.len() > 1 && it.set.members.iter().any(is_new);
        let (with, train): (Vec<_>, Vec<_>) = measured.iter().cloned().partition(meets);
        let drawn = draw(&with, &is_new, observed, seed);
        let (observed, test): (Vec<_>, Vec<_>) =
            with.into_iter().enumerate().partition(|(place, _)| drawn.contains(place));
        let sets = |part: Vec<(usize, MeasuredSet)>| part.into_iter().map(|(_, it)| it).collect();
        Fold { held_out: held_out.clone(), train, observed: sets(observed), test: sets(test) }
    };
    names.into_iter().map(fold).collect()
}

/// A split for each GPU model.
fn gpus(measured: &[MeasuredSet]) -> Vec<Fold> {
    let gpus: BTreeSet<&GpuKind> = measured.iter().map(|it| &it.set.gpu).collect();
    let fold = |gpu: &GpuKind| {
        let asked = |it: &MeasuredSet| it.set.gpu == *gpu && it.set.members.len() > 1;
        let (test, train) = measured.iter().cloned().partition(asked);
        Fold { held_out: gpu.name().to_owned(), train, observed: Vec::new(), test }
    };
    gpus.into_iter().map(fold).collect()
}

/// Splits off one in `one_in` sets, drawn by the seed. Sets of one job, and further measurements of a set in
/// the training data, are never held back.
#[must_use]
pub fn held_back(measured: &[MeasuredSet], one_in: usize, seed: u64) -> (Vec<MeasuredSet>, Vec<MeasuredSet>) {
    let sets = |it: &&MeasuredSet| it.set.members.len() > 1;
    let all: BTreeSet<UnorderedSetKey> = measured.iter().filter(sets).map(UnorderedSetKey::of).collect();
    let mut all: Vec<UnorderedSetKey> = all.into_iter().collect();
    ChaCha8Rng::seed_from_u64(seed).shuffle(&mut all);
    all.truncate(all.len() / one_in.max(1));
    let held: BTreeSet<UnorderedSetKey> = all.into_iter().collect();
    measured
        .iter()
        .cloned()
        .partition(|it| it.set.members.len() < 2 || !held.contains(&UnorderedSetKey::of(it)))
}

/// Divides measurements into this many parts of about the same size, drawn by the seed, and returns the part
/// of each. Measurements of one set are in one part.
pub(super) fn parts(measured: &[&MeasuredSet], parts: usize, seed: u64) -> Vec<usize> {
    let all: BTreeSet<UnorderedSetKey> = measured.iter().map(|it| UnorderedSetKey::of(it)).collect();
    let mut all: Vec<UnorderedSetKey> = all.into_iter().collect();
    ChaCha8Rng::seed_from_u64(seed).shuffle(&mut all);
    let numbered = all.into_iter().enumerate().map(|(at, set)| (set, at % parts.max(1)));
    let part_of: BTreeMap<UnorderedSetKey, usize> = numbered.collect();
    measured.iter().map(|it| part_of[&UnorderedSetKey::of(it)]).collect()
}

/// A set without the order of its members.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct UnorderedSetKey {
    gpu: GpuKind,
    sharing: u8,
    members: Vec<Configuration>,
}

impl UnorderedSetKey {
    fn of(measured: &MeasuredSet) -> UnorderedSetKey {
        let mut members: Vec<Configuration> =
            measured.set.members.iter().map(SetMember::configuration).collect();
        members.sort();
        let sharing = sharing_rank(measured.set.sharing);
        UnorderedSetKey { gpu: measured.set.gpu.clone(), sharing, members }
    }
}

/// The order of the ways of sharing in a key. It decides which sets a seed draws, so a change would change
/// every trained model.
const fn sharing_rank(sharing: Option<SharingStrategy>) -> u8 {
    match sharing {
        None => 0,
        Some(SharingStrategy::Exclusive) => 1,
        Some(SharingStrategy::Mps) => 2,
        Some(SharingStrategy::TimeSliced) => 3,
    }
}

/// The indices of `count` sets with each newcomer on each GPU, or of fewer if there are not as many.
fn draw(
    with: &[MeasuredSet],
    is_new: &dyn Fn(&SetMember) -> bool,
    count: usize,
    seed: u64,
) -> BTreeSet<usize> {
    let mut by_newcomer: BTreeMap<(&GpuKind, Configuration), Vec<usize>> = BTreeMap::new();
    for (place, it) in with.iter().enumerate().filter(|(_, it)| matches!(it.outcome, SetOutcome::Ran(_))) {
        let new: BTreeSet<Configuration> =
            it.set.members.iter().filter(|member| is_new(member)).map(SetMember::configuration).collect();
        new.into_iter().for_each(|newcomer| {
            by_newcomer.entry((&it.set.gpu, newcomer)).or_default().push(place);
        });
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn = BTreeSet::new();
    for mut places in by_newcomer.into_values() {
        random.shuffle(&mut places);
        // One set may contain two newcomers.
        let shown = places.iter().filter(|place| drawn.contains(*place)).count();
        let more: Vec<usize> = places.into_iter().filter(|place| !drawn.contains(place)).collect();
        drawn.extend(more.into_iter().take(count.saturating_sub(shown)));
    }
    drawn
}

impl HoldOut {
    /// Every kind, in the order in which they are listed.
    pub const ALL: [HoldOut; 4] = [HoldOut::Sets, HoldOut::Configurations, HoldOut::Models, HoldOut::Gpus];

    /// Whether the held-out jobs are new, so that sets with them can be observed before the test.
    #[must_use]
    pub const fn has_newcomers(self) -> bool {
        match self {
            HoldOut::Configurations | HoldOut::Models => true,
            HoldOut::Sets | HoldOut::Gpus => false,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            HoldOut::Sets => "sets",
            HoldOut::Configurations => "configurations",
            HoldOut::Models => "models",
            HoldOut::Gpus => "gpus",
        }
    }
}

impl fmt::Display for HoldOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for HoldOut {
    type Err = String;

    fn from_str(word: &str) -> Result<HoldOut, String> {
        HoldOut::ALL.into_iter().find(|hold_out| hold_out.word() == word).ok_or_else(|| {
            format!(
                "cannot hold out '{word}': the choices are {}",
                HoldOut::ALL.map(HoldOut::word).join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use cohabit_policy::interference::{ColocationSet, MeasuredMember};

    use super::*;

    fn set(gpu: &str, models: &[&str]) -> MeasuredSet {
        let member = |model: &&str| SetMember { model: (*model).to_owned(), ..SetMember::default() };
        let members: Vec<SetMember> = models.iter().map(member).collect();
        let outcome = SetOutcome::Ran(members.iter().map(|_| MeasuredMember::default()).collect());
        MeasuredSet { set: ColocationSet { gpu: GpuKind::named(gpu), sharing: None, members }, outcome }
    }

    /// All pairs of eight models on two GPUs, and each model alone.
    fn pairs() -> Vec<MeasuredSet> {
        let models = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let mut sets = Vec::new();
        for gpu in ["v100", "k80"] {
            for (at, one) in models.iter().enumerate() {
                sets.push(set(gpu, &[one]));
                sets.extend(models[at..].iter().map(|other| set(gpu, &[one, other])));
            }
        }
        sets
    }

    #[test]
    fn one_set_in_five_is_held_out_in_both_orders() {
        let mut measured = pairs();
        let swapped = |it: &MeasuredSet| {
            let mut swapped = it.clone();
            swapped.set.members.reverse();
            swapped
        };
        measured.extend(pairs().iter().map(swapped));
        let folds = folds(&measured, HoldOut::Sets, 0, 7);
        let [Fold { train, test, .. }] = &folds[..] else { panic!("one split") };
        assert_eq!((train.len(), test.len()), (2 * (88 - 14), 2 * 14));
        assert!(test.iter().all(|it| it.set.members.len() == 2 && test.contains(&swapped(it))));
        assert_eq!(super::folds(&measured, HoldOut::Sets, 0, 7), folds);
        assert_ne!(super::folds(&measured, HoldOut::Sets, 0, 8), folds);
    }

    #[test]
    fn held_out_jobs_are_only_known_alone_and_from_observed_sets() {
        for fold in folds(&pairs(), HoldOut::Models, 3, 1) {
            let new = |it: &MeasuredSet| it.set.members.iter().any(|member| member.model == fold.held_out);
            assert!(fold.train.iter().all(|it| it.set.members.len() == 1 || !new(it)), "{}", fold.held_out);
            assert!(fold.observed.iter().chain(&fold.test).all(new), "{}", fold.held_out);
            assert_eq!((fold.observed.len(), fold.test.len()), (2 * 3, 2 * 5), "{}", fold.held_out);
        }
    }

    #[test]
    fn each_configuration_is_held_out_in_turn() {
        let folds = folds(&pairs(), HoldOut::Configurations, 0, 1);
        let names: Vec<&str> = folds.iter().map(|fold| fold.held_out.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h"]);
        assert!(folds.iter().all(|fold| fold.observed.is_empty() && fold.test.len() == 16));
        let gpus = super::folds(&pairs(), HoldOut::Gpus, 3, 1);
        let held: Vec<_> = gpus.iter().map(|fold| (fold.held_out.as_str(), fold.test.len())).collect();
        assert_eq!(held, [("k80", 36), ("v100", 36)]);
        assert!(gpus.iter().all(|fold| fold.test.iter().all(|it| it.set.gpu.name() == fold.held_out)));
    }
}
