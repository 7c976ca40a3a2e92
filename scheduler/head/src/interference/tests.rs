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
    use super::*;
    use crate::InterferenceSource;

    const MODELS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    /// All pairs; the neighbor alone determines the slowdown.
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

    fn refit(
        current: impl Interference + 'static,
        base: BasePredictor,
        folder: &Path,
    ) -> Option<BetterModel> {
        let current = GuardedModel::new(Arc::new(current));
        Refit { sets: sets(), base, current, version: 1, folder: folder.join("1") }.work()
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
    fn a_model_with_a_lower_error_on_the_newest_sets_is_saved_and_restored() {
        let folder = tempfile::tempdir().unwrap();
        let better =
            refit(AnalyticInterference::<MaxMinSharing>::default(), BasePredictor::analytic(), folder.path())
                .unwrap();
        assert_eq!((better.record.rows, better.record.validation_rows), (46, 10));
        assert!(better.record.error < better.record.error_before, "{:?}", better.record);
        let restored = restore(&folder.path().join("1"), &better.record, &BasePredictor::analytic()).unwrap();
        assert_eq!(predicted(&*restored), predicted(&*better.model));
    }

    #[test]
    fn a_model_is_never_saved_into_a_folder_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let newer = folder.path().join("1");
        std::fs::create_dir(&newer).unwrap();
        std::fs::write(newer.join("version.json"), "{}").unwrap();
        let better =
            refit(AnalyticInterference::<MaxMinSharing>::default(), BasePredictor::analytic(), folder.path());
        assert!(better.is_none());
        let left: Vec<_> = std::fs::read_dir(&newer).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["version.json"]);
    }

    #[test]
    fn a_model_with_the_same_or_a_higher_error_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        assert!(refit(exact(), BasePredictor::analytic(), folder.path()).is_none());
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
        let analytic =
            refit(AnalyticInterference::<MaxMinSharing>::default(), BasePredictor::analytic(), folder.path())
                .unwrap();
        let broken = refit(Broken, BasePredictor::analytic(), &folder.path().join("other")).unwrap();
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
