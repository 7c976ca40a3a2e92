//! Which models become versions, and what a school makes of them.

use cohabit_policy::interference::{ColocationHistory, GpuKind, ObservedSample, SetMember};
use cohabit_types::{SharingStrategy, Span, Time};

use super::news::InterferenceDigest;

/// A minute of a member beside another, or alone.
fn minute(model: &str, rate: f64, neighbour: Option<&str>) -> ObservedSample {
    let member = |model: &str| SetMember { model: model.into(), batch: Some(8), ..SetMember::default() };
    ObservedSample {
        gpu: GpuKind::named("v100"),
        sharing: SharingStrategy::Mps,
        member: member(model),
        neighbours: neighbour.map(member).into_iter().collect(),
        until: Time::EPOCH + Span::from_secs(60),
        length: Span::from_secs(60),
        steps: 600,
        rate,
        memory: None,
        utilisation: None,
    }
}

/// A pair that slows each other down so much.
fn pair(slowdowns: [f64; 2]) -> ColocationHistory {
    let mut experience = ColocationHistory::default();
    let [a, b] = slowdowns.map(|slowdown| 10.0 / slowdown);
    for lived in [("a", 10.0, None), ("b", 10.0, None), ("a", a, Some("b")), ("b", b, Some("a"))] {
        experience.note(&minute(lived.0, lived.1, lived.2));
    }
    experience
}

fn figures(experience: &ColocationHistory) -> InterferenceDigest {
    InterferenceDigest::of(&experience.sets(), &experience.solos(&Default::default()))
}

#[test]
fn noise_is_no_news_and_a_slowdown_or_a_set_is() {
    let known = figures(&pair([1.25, 2.0]));
    assert!(known.is_like(&figures(&pair([1.26, 2.01]))));
    assert!(!known.is_like(&figures(&pair([1.25, 2.2]))));
    assert!(!known.is_like(&figures(&ColocationHistory::default())));
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

    use super::super::base::source::{restore, train_candidates};
    use super::super::guarded::GuardedModel;
    use super::super::refit::{BetterModel, Refit};
    use super::*;
    use crate::interference::{Base, InterferenceSource};

    const MODELS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    /// All pairs, in which the neighbour alone decides.
    fn sets() -> Vec<ObservedSet> {
        let mut experience = ColocationHistory::default();
        MODELS.iter().for_each(|model| experience.note(&minute(model, 10.0, None)));
        for one in MODELS {
            for (pressure, other) in MODELS.iter().enumerate().filter(|(_, other)| **other != one) {
                experience.note(&minute(one, 10.0 / (1.0 + 0.3 * pressure as f64), Some(other)));
            }
        }
        experience.sets()
    }

    fn refit(current: impl Interference + 'static, base: Base, folder: &Path) -> Option<BetterModel> {
        let current = GuardedModel::new(Arc::new(current));
        Refit { sets: sets(), base, current, version: 1, folder: folder.join("1") }.work()
    }

    /// Knows everything already.
    fn exact() -> MeasuredTable {
        MeasuredTable::of(sets().iter().map(|it| &it.measured))
    }

    fn said(model: &dyn Interference) -> Vec<f64> {
        let sets: Vec<ColocationSet> = sets().into_iter().map(|it| it.measured.set).collect();
        model.predict(&sets).iter().flatten().map(|it| it.slowdown).collect()
    }

    #[test]
    fn what_errs_less_on_what_came_last_is_kept_and_restored_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let better =
            refit(AnalyticInterference::<MaxMinSharing>::default(), Base::law(), folder.path()).unwrap();
        assert_eq!((better.record.rows, better.record.judged_on), (46, 10));
        assert!(better.record.error < better.record.error_before, "{:?}", better.record);
        let restored = restore(&folder.path().join("1"), &better.record, &Base::law()).unwrap();
        assert_eq!(said(&*restored), said(&*better.model));
    }

    #[test]
    fn what_errs_as_much_or_more_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        assert!(refit(exact(), Base::law(), folder.path()).is_none());
        assert!(!folder.path().join("1").exists());
    }

    #[test]
    fn a_model_that_fails_over_the_judgement_is_what_the_law_is() {
        #[derive(Debug)]
        struct Broken;
        impl Interference for Broken {
            fn predict(&self, _: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
                panic!("a model of a test panics on purpose")
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let by_law =
            refit(AnalyticInterference::<MaxMinSharing>::default(), Base::law(), folder.path()).unwrap();
        let broken = refit(Broken, Base::law(), folder.path()).unwrap();
        assert_eq!(broken.record.error_before, by_law.record.error_before);
    }

    fn measured() -> Vec<MeasuredSet> {
        sets().into_iter().map(|it| it.measured).collect()
    }

    /// A base in a folder, which has learned the opposite of what the cluster lives through.
    fn model_in(folder: &Path) -> Base {
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
        Base::read(&InterferenceSource::Model(folder.to_owned())).unwrap()
    }

    #[test]
    fn an_adapted_base_is_restored_upon_that_base_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (base, kept) = (model_in(&folder.path().join("base")), folder.path().join("1"));
        let train_candidates = train_candidates(&base, &measured());
        let adapted = train_candidates.into_iter().find(|it| it.kind() == "adapted").unwrap();
        let before = said(adapted.model());
        adapted.keep(&kept).unwrap();
        let record = ModelRecord {
            version: 1,
            kind: "adapted".into(),
            base: base.basis.to_string(),
            trained_at: Time::EPOCH,
            rows: 56,
            judged_on: 0,
            error: 0.0,
            error_before: 0.0,
        };
        assert_eq!(said(&*restore(&kept, &record, &base).unwrap()), before);
        assert_ne!(said(&*base.interference), before);
        let refusal = restore(&kept, &record, &Base::law()).unwrap_err();
        assert!(refusal.contains("model:") && refusal.contains("'law'"), "{refusal}");
    }
}
