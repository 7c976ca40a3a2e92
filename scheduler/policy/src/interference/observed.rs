//! A predictor corrected by observations: a set that was observed is answered by what was measured, all
//! others by another predictor.
//!
//! A set that contains a smaller observed one is answered no better than that one, because no job runs
//! faster when another one joins.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::SharingStrategy;

use super::{
    ColocationEstimate, ColocationSet, Configuration, ContentionMetrics, GpuKind, Interference,
    MeasuredMember, ObservedSet, SetMember, SetOutcome, UNKNOWN_UNCERTAINTY,
};

/// A predictor with observed sets.
#[derive(Debug)]
pub struct ObservedInterference {
    base: Arc<dyn Interference>,
    /// Ids of the configurations that were observed in sets, so that sets compare fast.
    ids: BTreeMap<Configuration, u32>,
    observed: BTreeMap<(GpuKind, Option<SharingStrategy>), ObservedSets>,
}

/// The sets on one kind of GPU with one way of sharing, by the sorted ids of their members.
type ObservedSets = BTreeMap<Vec<u32>, SeenOutcome>;

/// What happened to a set.
#[derive(Debug)]
enum SeenOutcome {
    DidNotFit,
    /// What was observed of each configuration, by its id, with its uncertainty.
    Ran(BTreeMap<u32, (MeasuredMember, f64)>),
}

/// A set that is asked about, as the observations know it.
struct SetQuery<'a> {
    /// `None` where no set was observed on such a GPU with such a way of sharing.
    sets: Option<&'a ObservedSets>,
    /// The ids of the members, in their order; `None` for one that was never observed in a set.
    ids: Vec<Option<u32>>,
    /// The ids that exist, sorted.
    known: Vec<u32>,
}

impl ObservedInterference {
    /// The predictor `base` with these sets; of a set that occurs twice the later one counts.
    #[must_use]
    pub fn over(base: Arc<dyn Interference>, sets: &[ObservedSet]) -> ObservedInterference {
        let mut all = ObservedInterference { base, ids: BTreeMap::new(), observed: BTreeMap::new() };
        sets.iter().for_each(|observed_set| all.add(observed_set));
        all
    }

    fn add(&mut self, observed_set: &ObservedSet) {
        let set = &observed_set.measured.set;
        let ids: Vec<u32> = set.members.iter().map(|member| self.id(member)).collect();
        let seen = match &observed_set.measured.outcome {
            SetOutcome::DidNotFit => SeenOutcome::DidNotFit,
            SetOutcome::Ran(observed) => {
                let figures = observed.iter().copied().zip(observed_set.uncertainty.iter().copied());
                SeenOutcome::Ran(ids.iter().copied().zip(figures).collect())
            }
        };
        self.observed.entry(kind(set)).or_default().insert(in_order(ids), seen);
    }

    fn id(&mut self, member: &SetMember) -> u32 {
        let next = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        *self.ids.entry(member.configuration()).or_insert(next)
    }

    fn query(&self, set: &ColocationSet) -> SetQuery<'_> {
        let id = |member: &SetMember| self.ids.get(&member.configuration()).copied();
        let ids: Vec<Option<u32>> = set.members.iter().map(id).collect();
        let known = in_order(ids.iter().flatten().copied().collect());
        SetQuery { sets: self.observed.get(&kind(set)), ids, known }
    }
}

impl Interference for ObservedInterference {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let queries: Vec<SetQuery<'_>> = sets.iter().map(|set| self.query(set)).collect();
        let is_new = |it: &(&ColocationSet, &SetQuery<'_>)| it.1.seen().is_none();
        let new = sets.iter().zip(&queries).filter(is_new).map(|(set, _)| set);
        // Usually none of many sets was observed: then nothing is copied.
        let all_are_new = queries.iter().all(|it| it.seen().is_none());
        let new = if all_are_new { Cow::Borrowed(sets) } else { new.cloned().collect() };
        let mut from_base = self.base.predict(&new).into_iter();
        let answer = |(set, queries): (&ColocationSet, &SetQuery<'_>)| match queries.seen() {
            Some(seen) => seen.answer(&set.members, &queries.ids),
            None => queries.bounded(from_base.next().unwrap_or_default()),
        };
        sets.iter().zip(&queries).map(answer).collect()
    }

    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        self.base.contention(sets)
    }

    fn base(&self) -> Option<Arc<dyn Interference>> {
        Some(self.base.clone())
    }
}

impl SetQuery<'_> {
    /// What happened to this very set.
    fn seen(&self) -> Option<&SeenOutcome> {
        let all_are_known = self.known.len() == self.ids.len();
        self.sets?.get(&self.known).filter(|_| all_are_known)
    }

    /// The other predictor's answer, but no better than what was observed of pairs and triples within the
    /// set.
    fn bounded(&self, mut estimates: Vec<ColocationEstimate>) -> Vec<ColocationEstimate> {
        for seen in self.within() {
            for (member, id) in estimates.iter_mut().zip(&self.ids) {
                match seen {
                    SeenOutcome::DidNotFit => member.fits = 0.0,
                    SeenOutcome::Ran(figures) => {
                        let figure = id.and_then(|id| figures.get(&id));
                        figure.iter().for_each(|(observed, _)| slow_to(member, observed.slowdown));
                    }
                }
            }
        }
        estimates
    }

    /// The observed pairs and triples within the set.
    fn within(&self) -> impl Iterator<Item = &SeenOutcome> {
        let count = self.known.len();
        let pairs = (0..count).flat_map(move |one| (one + 1..count).map(move |other| (one, other)));
        let thirds = move |(one, other)| (other..count).map(move |third| [one, other, third]);
        self.sets.into_iter().flat_map(move |sets| {
            pairs.clone().flat_map(thirds).filter_map(|places| {
                let mut ids: Vec<u32> = places.map(|at| self.known[at]).to_vec();
                ids.truncate(if places[1] == places[2] { 2 } else { 3 });
                sets.get(&ids)
            })
        })
    }
}

/// Raises the slowdown of a member to at least this factor.
fn slow_to(member: &mut ColocationEstimate, slowdown: f64) {
    if slowdown > member.slowdown {
        member.utilization = member.utilization.map(|it| it * member.slowdown / slowdown);
        member.slowdown = slowdown;
    }
}

impl SeenOutcome {
    fn answer(&self, members: &[SetMember], ids: &[Option<u32>]) -> Vec<ColocationEstimate> {
        let of_member = |(member, id): (&SetMember, &Option<u32>)| match self {
            SeenOutcome::DidNotFit => {
                ColocationEstimate { fits: 0.0, measured: true, ..ColocationEstimate::alone(member) }
            }
            SeenOutcome::Ran(figures) => match id.and_then(|id| figures.get(&id)) {
                Some((observed, uncertainty)) => repeated(member, observed, *uncertainty),
                None => ColocationEstimate::slowed(member, 1.0, UNKNOWN_UNCERTAINTY),
            },
        };
        members.iter().zip(ids).map(of_member).collect()
    }
}

fn repeated(member: &SetMember, observed: &MeasuredMember, uncertainty: f64) -> ColocationEstimate {
    let usual = ColocationEstimate::slowed(member, observed.slowdown, uncertainty);
    let memory = observed.memory.or(usual.memory);
    let utilization = observed.utilization.or(usual.utilization);
    ColocationEstimate { memory, utilization, measured: true, ..usual }
}

fn kind(set: &ColocationSet) -> (GpuKind, Option<SharingStrategy>) {
    (set.gpu.clone(), set.sharing)
}

fn in_order(mut ids: Vec<u32>) -> Vec<u32> {
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interference::{MeasuredSet, SoloMetrics};
    use cohabit_types::Time;

    /// Slows every member down by 1.1, with an uncertainty of its own.
    #[derive(Debug)]
    struct Tenth;

    impl Interference for Tenth {
        fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
            let slowed = |member: &SetMember| ColocationEstimate::slowed(member, 1.1, 0.2);
            sets.iter().map(|set| set.members.iter().map(slowed).collect()).collect()
        }

        fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
            Some(sets.iter().map(|set| vec![ContentionMetrics(vec![1.0]); set.members.len()]).collect())
        }
    }

    fn set(models: &[&str]) -> ColocationSet {
        let member = |model: &&str| SetMember {
            model: (*model).to_owned(),
            solo: SoloMetrics { utilization: Some(0.6), memory: Some(2e9), ..SoloMetrics::default() },
            ..SetMember::default()
        };
        let members = models.iter().map(member).collect();
        ColocationSet { gpu: GpuKind::named("v100"), sharing: Some(SharingStrategy::Mps), members }
    }

    fn observed_set(models: &[&str], slowdowns: &[f64]) -> ObservedSet {
        let observed =
            |slowdown: &f64| MeasuredMember { slowdown: *slowdown, memory: Some(3e9), utilization: None };
        let outcome = SetOutcome::Ran(slowdowns.iter().map(observed).collect());
        let uncertainty = vec![0.05; models.len()];
        let measured = MeasuredSet { set: set(models), outcome };
        ObservedSet { measured, uncertainty, first: Time::EPOCH, last: Time::EPOCH }
    }

    /// `a` and `b` get along, `a` and `c` do not, and three times `d` is bad for all.
    fn observed() -> ObservedInterference {
        let sets = [
            observed_set(&["a", "b"], &[1.0, 1.05]),
            observed_set(&["a", "c"], &[2.0, 1.5]),
            observed_set(&["d", "d", "d"], &[3.0, 3.0, 3.0]),
            observed_set(&["a", "b", "c", "d"], &[2.5, 2.0, 2.0, 4.0]),
        ];
        ObservedInterference::over(Arc::new(Tenth), &sets)
    }

    fn slowdowns(models: &[&str]) -> Vec<f64> {
        observed().predict(&[set(models)])[0].iter().map(|it| it.slowdown).collect()
    }

    #[test]
    fn an_observed_set_is_repeated_in_any_order_of_members() {
        let estimates = &observed().predict(&[set(&["c", "a"])])[0];
        let expected = ColocationEstimate {
            slowdown: 1.5,
            uncertainty: 0.05,
            memory: Some(3e9),
            utilization: Some(0.6 / 1.5),
            fits: 1.0,
            measured: true,
        };
        assert_eq!((estimates[0], estimates[1].slowdown), (expected, 2.0));
        assert_eq!(slowdowns(&["d", "c", "b", "a"]), [4.0, 2.0, 2.0, 2.5]);
    }

    #[test]
    fn the_other_predictor_answers_sets_that_were_not_observed() {
        let base = |models| Tenth.predict(&[set(models)]).remove(0);
        let queries = [set(&["a"]), set(&["b", "c"]), set(&["a", "c"]), set(&["a", "x"])];
        let estimates = observed().predict(&queries);
        assert_eq!(estimates[0], base(&["a"]));
        assert_eq!(estimates[1], base(&["b", "c"]));
        assert!(estimates[2][0].measured && estimates[2][0].slowdown == 2.0);
        assert_eq!(estimates[3], base(&["a", "x"]));
        let elsewhere = ColocationSet { gpu: GpuKind::named("k80"), ..set(&["a", "c"]) };
        let otherwise = ColocationSet { sharing: Some(SharingStrategy::TimeSliced), ..set(&["a", "c"]) };
        let estimates = observed().predict(&[elsewhere, otherwise]);
        assert_eq!(estimates, [base(&["a", "c"]), base(&["a", "c"])]);
        assert_eq!(observed().contention(&queries), Tenth.contention(&queries));
    }

    #[test]
    fn a_larger_set_is_no_better_than_a_smaller_one_within_it() {
        assert_eq!(slowdowns(&["a", "b", "c"]), [2.0, 1.1, 1.5]);
        assert_eq!(slowdowns(&["x", "c", "a"]), [1.1, 1.5, 2.0]);
        assert_eq!(slowdowns(&["d", "x", "d", "d"]), [3.0, 1.1, 3.0, 3.0]);
        assert_eq!(slowdowns(&["d", "d", "x"]), [1.1; 3], "two of the three were not seen");
        let estimates = &observed().predict(&[set(&["x", "c", "a"])])[0][2];
        assert!((estimates.utilization.unwrap() - 0.3).abs() < 1e-12 && !estimates.measured, "{estimates:?}");
    }

    #[test]
    fn a_set_that_did_not_fit_fits_in_no_larger_set() {
        let pair = ObservedSet {
            measured: MeasuredSet { set: set(&["a", "b"]), outcome: SetOutcome::DidNotFit },
            uncertainty: Vec::new(),
            first: Time::EPOCH,
            last: Time::EPOCH,
        };
        let estimates = ObservedInterference::over(Arc::new(Tenth), &[pair]);
        let estimates = estimates.predict(&[set(&["b", "a"]), set(&["a", "b", "c"]), set(&["b", "c"])]);
        assert_eq!(estimates.iter().map(|it| it[0].fits).collect::<Vec<_>>(), [0.0, 0.0, 1.0]);
    }
}
