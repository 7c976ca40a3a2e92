//! Which models become versions, and which observations count as a change.

use cohabit_policy::interference::{ColocationHistory, GpuKind, ObservedSample, SetMember};
use cohabit_types::{SharingStrategy, Span, Time};

use super::digest::InterferenceDigest;

/// A minute of a member beside another, or alone.
fn minute(model: &str, rate: f64, neighbor: Option<&str>) -> ObservedSample {
    let member = |model: &str| SetMember { model: model.into(), batch: Some(8), ..SetMember::default() };
    ObservedSample {
        gpu: GpuKind::named("v100"),
        sharing: SharingStrategy::Mps,
        member: member(model),
        neighbors: neighbor.map(member).into_iter().collect(),
        until: Time::EPOCH + Span::from_secs(60),
        length: Span::from_secs(60),
        steps: 600,
        rate,
        memory: None,
        utilization: None,
    }
}

/// Observations of a pair with these slowdowns.
fn pair(slowdowns: [f64; 2]) -> ColocationHistory {
    let mut experience = ColocationHistory::default();
    let [a, b] = slowdowns.map(|slowdown| 10.0 / slowdown);
    for sample in [("a", 10.0, None), ("b", 10.0, None), ("a", a, Some("b")), ("b", b, Some("a"))] {
        experience.note(&minute(sample.0, sample.1, sample.2));
    }
    experience
}

fn figures(experience: &ColocationHistory) -> InterferenceDigest {
    InterferenceDigest::of(&experience.sets(), &experience.solos(&Default::default()))
}

#[test]
fn noise_is_no_change_and_another_slowdown_or_set_is() {
    let known = figures(&pair([1.25, 2.0]));
    assert!(known.is_close_to(&figures(&pair([1.26, 2.01]))));
    assert!(!known.is_close_to(&figures(&pair([1.25, 2.2]))));
    assert!(!known.is_close_to(&figures(&ColocationHistory::default())));
}

#[cfg(feature = "learned")]
mod learned {
    use std::path::Path;
    use std::sync::Arc;

    use cohabit_policy::interference::{
        AnalyticInterference, ColocationEstimate, ColocationSet, Interference, MaxMinSharing, MeasuredSet,
        MeasuredTable, ObservedSet, SetOutcome,
    };
    use cohabit_predict::interference::{ModelCard, ModelTrainer, StoredModel, kind_by_name};
    use cohabit_types::ModelRecord;

    use super::super::base_predictor::BasePredictor;
    use super::super::guarded_model::GuardedModel;
    use super::super::models::{read_base_predictor, restore, train_candidates};
    use super::super::refit::{BetterModel, Refit};
    use super::super::validation_split::is_reserved;
    use super::*;
    use crate::InterferenceSource;

    const MODELS: usize = 14;

    fn name(number: usize) -> String {
        format!("model {number}")
    }

    /// All pairs of different models with these slowdowns.
    fn sets_with(slowdown: impl Fn(usize, usize) -> f64) -> Vec<ObservedSet> {
        let mut experience = ColocationHistory::default();
        (0..MODELS).for_each(|one| experience.note(&minute(&name(one), 10.0, None)));
        for one in 0..MODELS {
            for other in (0..MODELS).filter(|other| *other != one) {
                let rate = 10.0 / slowdown(one, other);
                experience.note(&minute(&name(one), rate, Some(&name(other))));
            }
        }
        experience.sets()
    }

    /// The neighbor alone determines the slowdown.
    fn sets() -> Vec<ObservedSet> {
        sets_with(|_, pressure| 1.0 + 0.2 * pressure as f64)
    }

    /// A refit of these sets. The current model may have learned those that were first seen until
    /// `learned_until`.
    fn refit_of(
        sets: Vec<ObservedSet>,
        current: impl Interference + 'static,
        learned_until: Option<Time>,
        folder: &Path,
    ) -> Option<BetterModel> {
        let (base, current) = (BasePredictor::analytic(), GuardedModel::new(Arc::new(current)));
        Refit { sets, base, current, learned_until, version: 1, folder: folder.join("1") }.work()
    }

    fn refit(current: impl Interference + 'static, folder: &Path) -> Option<BetterModel> {
        refit_of(sets(), current, None, folder)
    }

    /// Predicts every set exactly.
    fn exact() -> MeasuredTable {
        MeasuredTable::of(sets().iter().map(|it| &it.measured))
    }

    fn predicted(model: &dyn Interference) -> Vec<f64> {
        let sets: Vec<ColocationSet> = sets().into_iter().map(|it| it.measured.set).collect();
        model.predict(&sets).iter().flatten().map(|it| it.slowdown).collect()
    }

    #[test]
    fn a_model_that_is_better_on_reserved_sets_is_saved_and_restored() {
        let folder = tempfile::tempdir().unwrap();
        let better = refit(AnalyticInterference::<MaxMinSharing>::default(), folder.path()).unwrap();
        let reserved = sets().iter().filter(|it| is_reserved(&it.measured.set.members)).count() as u64;
        let all = (MODELS * (MODELS - 1)) as u64;
        assert_eq!((better.record.rows, better.record.validation_rows), (all - 2 * reserved, 2 * reserved));
        assert!(better.record.error < 0.5 * better.record.error_before, "{:?}", better.record);
        let restored = restore(&folder.path().join("1"), &better.record, &BasePredictor::analytic()).unwrap();
        assert_eq!(predicted(&*restored), predicted(&*better.model));
    }

    #[test]
    fn no_candidate_learns_the_sets_that_judge_it() {
        // The judging sets have a slowdown that no other has, so a leak would show in the predictions.
        let folder = tempfile::tempdir().unwrap();
        let mut odd = sets();
        for it in odd.iter_mut().filter(|it| is_reserved(&it.measured.set.members)) {
            let SetOutcome::Ran(observed) = &mut it.measured.outcome else { unreachable!() };
            observed.iter_mut().for_each(|it| it.slowdown *= 1.1);
        }
        let current = || AnalyticInterference::<MaxMinSharing>::default();
        let usual = refit(current(), folder.path()).unwrap();
        let other = refit_of(odd, current(), None, &folder.path().join("odd")).unwrap();
        assert_eq!(predicted(&*usual.model), predicted(&*other.model));
        assert_ne!(usual.record.error, other.record.error);
    }

    /// The same set, which did not fit.
    fn misfit(set: ObservedSet) -> ObservedSet {
        let measured = MeasuredSet { outcome: SetOutcome::DidNotFit, ..set.measured };
        ObservedSet { measured, uncertainty: Vec::new(), ..set }
    }

    #[test]
    fn candidates_learn_which_sets_did_not_fit_and_are_judged_by_slowdowns() {
        let folder = tempfile::tempdir().unwrap();
        // Of each pair, the observations in which the last model takes part did not fit.
        let last = name(MODELS - 1);
        let has_last = |it: &ObservedSet| it.measured.set.members.iter().any(|member| member.model == last);
        let sets: Vec<ObservedSet> =
            sets().into_iter().map(|it| if has_last(&it) { misfit(it) } else { it }).collect();
        let ran = |it: &&ObservedSet| is_reserved(&it.measured.set.members) && !has_last(it);
        let judging = 2 * sets.iter().filter(ran).count() as u64;
        let (of_last, of_others) = {
            let find = |wanted: bool| sets.iter().find(|it| has_last(it) == wanted).unwrap();
            (find(true).measured.set.clone(), find(false).measured.set.clone())
        };
        let current = AnalyticInterference::<MaxMinSharing>::default();
        let better = refit_of(sets, current, None, folder.path()).unwrap();
        assert_eq!(better.record.validation_rows, judging, "a set that did not fit has no slowdown");
        let fits = better.model.predict(&[of_last, of_others]).into_iter().map(|it| it[0].fits);
        let fits: Vec<f64> = fits.collect();
        assert!(fits[0] < 0.5 && fits[1] > 0.5, "{fits:?}");
    }

    #[test]
    fn a_current_model_that_may_have_learned_every_set_cannot_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let current = || AnalyticInterference::<MaxMinSharing>::default();
        let made = |at: u64| Some(Time::EPOCH + Span::from_secs(at));
        assert!(refit_of(sets(), current(), made(60), folder.path()).is_none());
        assert!(refit_of(sets(), current(), made(59), folder.path()).is_some());
    }

    /// Predicts the same slowdown for every member.
    #[derive(Debug)]
    struct Constant(f64);

    impl Interference for Constant {
        fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
            let member =
                |member| ColocationEstimate { slowdown: self.0, ..ColocationEstimate::alone(member) };
            sets.iter().map(|set| set.members.iter().map(member).collect()).collect()
        }
    }

    #[test]
    fn a_refit_on_pure_noise_is_seldom_taken() {
        // The current model predicts the median, the best for noise: nothing can be gained. With a chance of
        // 2% each, 50 refits replace the model more than four times with a probability of 0.3%.
        let folder = tempfile::tempdir().unwrap();
        let mut taken = 0;
        for seed in 0..50_u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
            let draws: Vec<f64> = (0..MODELS * MODELS)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 11) as f64 / (1_u64 << 53) as f64
                })
                .collect();
            let noise = sets_with(|one, other| 1.5 + 0.5 * (draws[one * MODELS + other] - 0.5));
            let folder = folder.path().join(seed.to_string());
            taken += usize::from(refit_of(noise, Constant(1.5), None, &folder).is_some());
        }
        assert!(taken <= 4, "{taken} of 50");
    }

    #[test]
    fn a_model_is_never_saved_into_a_folder_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let newer = folder.path().join("1");
        std::fs::create_dir(&newer).unwrap();
        std::fs::write(newer.join("version.json"), "{}").unwrap();
        let better = refit(AnalyticInterference::<MaxMinSharing>::default(), folder.path());
        assert!(better.is_none());
        let left: Vec<_> = std::fs::read_dir(&newer).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["version.json"]);
    }

    #[test]
    fn a_model_with_the_same_or_a_higher_error_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        assert!(refit(exact(), folder.path()).is_none());
        assert!(!folder.path().join("1").exists());
    }

    #[test]
    fn a_model_that_fails_during_validation_counts_as_the_analytic_predictor() {
        #[derive(Debug)]
        struct Broken;
        impl Interference for Broken {
            fn predict(&self, _: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
                panic!("a model of a test panics on purpose")
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let analytic = refit(AnalyticInterference::<MaxMinSharing>::default(), folder.path()).unwrap();
        let broken = refit(Broken, &folder.path().join("other")).unwrap();
        assert_eq!(broken.record.error_before, analytic.record.error_before);
    }

    fn measured() -> Vec<MeasuredSet> {
        sets().into_iter().map(|it| it.measured).collect()
    }

    /// A base model in a directory, trained on the opposite of what the cluster observes.
    fn model_in(folder: &Path) -> BasePredictor {
        let mut opposite = measured();
        for it in &mut opposite {
            if let SetOutcome::Ran(observed) = &mut it.outcome {
                observed.reverse();
            }
        }
        let training = ModelTrainer { kind: kind_by_name("gaussian").unwrap(), seed: 1, epochs: None };
        let model = training.train(&opposite, &mut |_| {}).unwrap();
        let card = ModelCard { model: "gaussian".into(), ..ModelCard::default() };
        StoredModel { card, model }.save(folder).unwrap();
        read_base_predictor(&InterferenceSource::Model(folder.to_owned())).unwrap()
    }

    #[test]
    fn an_adapted_model_is_restored_only_with_its_own_base() {
        let folder = tempfile::tempdir().unwrap();
        let (base, kept) = (model_in(&folder.path().join("base")), folder.path().join("1"));
        let train_candidates = train_candidates(&base, &measured());
        let adapted = train_candidates.into_iter().find(|it| it.kind() == "adapted").unwrap();
        let before = predicted(adapted.model());
        adapted.save(&kept).unwrap();
        let record = ModelRecord {
            version: 1,
            kind: "adapted".into(),
            base: base.source.to_string(),
            trained_at: Time::EPOCH,
            rows: 56,
            validation_rows: 0,
            error: 0.0,
            error_before: 0.0,
        };
        assert_eq!(predicted(&*restore(&kept, &record, &base).unwrap()), before);
        assert_ne!(predicted(&*base.interference), before);
        let refusal = restore(&kept, &record, &BasePredictor::analytic()).unwrap_err();
        assert!(refusal.contains("model:") && refusal.contains("'law'"), "{refusal}");
    }
}
