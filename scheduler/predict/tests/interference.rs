//! Accuracy of the interference models on the measured pairs of Gavel.
//!
//! The pairs are not part of the repository. Without them, the tests print that they are skipped.
#![expect(clippy::print_stderr, clippy::unwrap_used, reason = "a test that prints its results")]

use std::path::{Path, PathBuf};

use cohabit_predict::interference::{
    EvaluationAccumulator, HoldOut, MeasuredSet, MeasurementFormat, ModelTrainer, PredictionMetrics,
    evaluate, kind_by_name, pretrained, read,
};

/// The measured pairs, if `shared/data` lies above the repository.
fn pairs() -> Option<Vec<MeasuredSet>> {
    let file = "shared/data/gavel/pairs_flat.csv";
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found: Option<PathBuf> = above.map(|folder| folder.join(file)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: there is no {file} in any directory above");
    }
    found.map(|path| {
        let table = read(std::fs::File::open(path).unwrap(), None).unwrap();
        assert_eq!(table.format, MeasurementFormat::GavelPairs);
        table.sets
    })
}

/// The metrics of a kind of model on held-out data, over all seeds.
fn figures(kind: &str, hold_out: HoldOut, observed: usize, seeds: &[u64]) -> Option<PredictionMetrics> {
    let measured = pairs()?;
    let kind = kind_by_name(kind).unwrap();
    let mut accumulator = EvaluationAccumulator::default();
    for seed in seeds {
        let training = ModelTrainer { kind, seed: *seed, epochs: None };
        training.cross_validate(&measured, hold_out, observed, &mut accumulator, &mut |_, _| {}).unwrap();
    }
    let figures = accumulator.figures();
    eprintln!("{} without {hold_out}, after {observed}: {figures:?}", kind.name());
    Some(figures)
}

/// Checks that the error is below a bound, as a fraction of the slowdown. The bounds are the errors of
/// boosted trees and of an additive model with all the information of a pair table.
fn assert_error_below(kind: &str, hold_out: HoldOut, observed: usize, floor: f64) {
    let Some(figures) = figures(kind, hold_out, observed, &[1]) else { return };
    assert!(figures.mape_slowdown.unwrap() < floor, "{figures:?}");
}

#[test]
fn sets_of_known_jobs_are_predicted() {
    let seeds = [1, 2, 3, 4, 5];
    let errors = |kind| figures(kind, HoldOut::Sets, 0, &seeds).and_then(|figures| figures.mape_slowdown);
    let (Some(additive), Some(gaussian)) = (errors("additive"), errors("gaussian")) else { return };
    assert!(additive < 0.08, "{additive}");
    assert!(gaussian < 0.045, "{gaussian}");
    let low_rank = errors("low-rank").unwrap();
    assert!(low_rank < 0.032, "{low_rank}");
}

#[test]
fn uncertainties_are_calibrated_on_unseen_sets() {
    for kind in ["low-rank", "gaussian"] {
        let Some(figures) = figures(kind, HoldOut::Sets, 0, &[1, 2, 3]) else { return };
        let (one, two) = (figures.coverage_1sigma.unwrap(), figures.coverage_2sigma.unwrap());
        // Errors have longer tails than the normal distribution: most are small, a few are not.
        assert!((0.68..0.88).contains(&one) && (0.92..0.98).contains(&two), "{kind}: {figures:?}");
    }
}

/// The card of the pretrained model is right, and its command reproduces the weights bit for bit.
#[test]
fn the_pretrained_model_matches_its_card() {
    let Some(measured) = pairs() else { return };
    let shipped = pretrained().unwrap();
    let same = |stated: &PredictionMetrics, found: &PredictionMetrics| {
        let apart = (stated.mape_slowdown.unwrap() - found.mape_slowdown.unwrap()).abs();
        assert!(apart < 1e-6 && stated.rows == found.rows, "{stated:?}, found {found:?}");
    };
    same(&shipped.card.training, &evaluate(&*shipped.model, &measured));
    let training = ModelTrainer {
        kind: kind_by_name(&shipped.card.model).unwrap(),
        seed: shipped.card.seed,
        epochs: None,
    };
    let stated = shipped.card.held_out.iter().find(|held| held.split == "sets").unwrap();
    let mut accumulator = EvaluationAccumulator::default();
    training.cross_validate(&measured, HoldOut::Sets, 0, &mut accumulator, &mut |_, _| {}).unwrap();
    same(&stated.figures, &accumulator.figures());
    let trained = training.train(&measured, &mut |_| {}).unwrap().weights();
    let shipped = shipped.model.weights();
    assert_eq!(shipped.metadata, trained.metadata);
    for (name, shipped) in shipped.tensors {
        let bits = |tensor: &candle_core::Tensor| {
            let numbers: Vec<f32> = tensor.flatten_all().unwrap().to_vec1().unwrap();
            numbers.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        assert_eq!(bits(&shipped), bits(&trained.tensors[&name]), "{name}");
    }
}

#[test]
fn misfits_are_found() {
    let seeds: Vec<u64> = (0..20).collect();
    let Some(figures) = figures("additive", HoldOut::Sets, 0, &seeds) else { return };
    assert!(figures.infeasible_recall.unwrap() >= 0.95, "{figures:?}");
    assert!(figures.infeasible_precision.unwrap() >= 0.6, "{figures:?}");
}

#[test]
fn unseen_configurations_are_predicted() {
    assert_error_below("additive", HoldOut::Configurations, 0, 0.157);
    assert_error_below("gaussian", HoldOut::Configurations, 0, 0.09);
    assert_error_below("low-rank", HoldOut::Configurations, 0, 0.085);
}

#[test]
fn three_observed_sets_describe_a_configuration() {
    assert_error_below("additive", HoldOut::Configurations, 3, 0.095);
    assert_error_below("gaussian", HoldOut::Configurations, 3, 0.055);
    assert_error_below("low-rank", HoldOut::Configurations, 3, 0.06);
}

#[test]
fn five_observed_sets_improve_predictions() {
    assert_error_below("additive", HoldOut::Configurations, 5, 0.09);
    assert_error_below("additive", HoldOut::Models, 5, 0.095);
    assert_error_below("gaussian", HoldOut::Configurations, 5, 0.05);
    assert_error_below("gaussian", HoldOut::Models, 5, 0.065);
}

#[test]
fn unseen_models_are_predicted() {
    assert_error_below("additive", HoldOut::Models, 0, 0.179);
    assert_error_below("gaussian", HoldOut::Models, 0, 0.179);
    assert_error_below("low-rank", HoldOut::Models, 0, 0.179);
}

#[test]
fn three_observed_sets_describe_a_model() {
    assert_error_below("additive", HoldOut::Models, 3, 0.102);
    assert_error_below("gaussian", HoldOut::Models, 3, 0.075);
    assert_error_below("low-rank", HoldOut::Models, 3, 0.08);
}
