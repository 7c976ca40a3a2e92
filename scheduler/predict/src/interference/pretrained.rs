//! The pretrained model: the interference between jobs as long as a cluster has no measurements of its own.
//!
//! It was trained on public measurements by the command in its card, and contains none of them. For jobs and
//! GPUs that it has never seen it states a larger uncertainty, and leans to the law of slowdown if the
//! utilization of the jobs is known.

use std::path::Path;

use super::stored_model::{ModelCard, StoreError, StoredModel};

const CARD: &[u8] = include_bytes!("../../pretrained/interference/card.json");
const WEIGHTS: &[u8] = include_bytes!("../../pretrained/interference/weights.safetensors");

/// Loads the pretrained model, which is part of the binary.
///
/// # Errors
///
/// None with the files in the repository; those of [`StoredModel::load`] if they were replaced.
pub fn pretrained() -> Result<StoredModel, StoreError> {
    let card = ModelCard::of(CARD, Path::new("pretrained/card.json"))?;
    StoredModel::of(card, WEIGHTS, Path::new("pretrained/weights.safetensors"))
}

#[cfg(test)]
mod tests {
    use cohabit_policy::interference::{
        AnalyticInterference, ColocationEstimate, ColocationSet, GpuKind, Interference, MaxMinSharing,
        ModelFeatures, SetMember, SoloMetrics,
    };

    use super::*;

    /// A job that is in no measurement.
    fn unseen_job(utilization: Option<f64>, parameters: Option<f64>) -> SetMember {
        SetMember {
            model: "made up".to_owned(),
            batch: Some(48),
            features: ModelFeatures { parameters, ..ModelFeatures::default() },
            solo: SoloMetrics { utilization, ..SoloMetrics::default() },
            ..SetMember::default()
        }
    }

    fn predict(gpu: &str, members: Vec<SetMember>) -> Vec<ColocationEstimate> {
        let set = ColocationSet { gpu: GpuKind::named(gpu), sharing: None, members };
        pretrained().unwrap().model.predict(&[set]).remove(0)
    }

    #[test]
    fn the_model_is_small_and_complete() {
        assert!(CARD.len() + WEIGHTS.len() < 300_000, "{} + {}", CARD.len(), WEIGHTS.len());
        let stored = pretrained().unwrap();
        assert_eq!(stored.card.model, "low-rank");
        assert!(stored.card.command.starts_with("cohabit predict train "), "{}", stored.card.command);
    }

    #[test]
    fn on_an_unseen_gpu_it_leans_to_the_law() {
        for busy in [[0.1, 0.9], [0.3, 0.3], [0.5, 0.95], [0.95, 0.95], [0.05, 0.05]] {
            let members: Vec<SetMember> = busy.map(|busy| unseen_job(Some(busy), Some(3e8))).into();
            let set =
                ColocationSet { gpu: GpuKind::named("nvidia h200"), sharing: None, members: members.clone() };
            let law = AnalyticInterference::<MaxMinSharing>::default().predict(&[set]).remove(0);
            for (predicted, law) in predict("nvidia h200", members).iter().zip(law) {
                let apart = (predicted.slowdown / law.slowdown).ln().abs();
                assert!(apart < 0.2, "{busy:?}: {predicted:?} beside {law:?}");
                assert!(predicted.uncertainty > 0.1, "{busy:?}: {predicted:?}");
            }
        }
    }

    #[test]
    fn an_unseen_job_is_slowed_more_by_a_busier_partner() {
        let slowdowns_with =
            |busy| predict("nvidia h200", vec![unseen_job(Some(0.7), None), unseen_job(Some(busy), None)]);
        let slowdowns: Vec<f64> = [0.1, 0.4, 0.7, 1.0].map(|busy| slowdowns_with(busy)[0].slowdown).into();
        assert!(slowdowns.is_sorted() && slowdowns[3] > slowdowns[0] + 0.3, "{slowdowns:?}");
    }

    #[test]
    fn unknown_jobs_get_a_large_uncertainty() {
        for (utilization, parameters) in [(None, None), (None, Some(7e9)), (None, Some(0.0))] {
            for count in 2..=6 {
                let predicted = predict("gpu of tomorrow", vec![unseen_job(utilization, parameters); count]);
                for predicted in predicted {
                    assert!(predicted.uncertainty > 0.25, "{count}: {predicted:?}");
                    assert!(
                        (1.2..count as f64 * 1.7).contains(&predicted.slowdown),
                        "{count}: {predicted:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn invalid_values_still_give_finite_estimates() {
        for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            let members =
                vec![unseen_job(Some(odd), Some(odd)), unseen_job(None, None), SetMember::default()];
            let sound = |predicted: &ColocationEstimate| {
                predicted.slowdown.is_finite() && predicted.slowdown >= 1.0 && predicted.uncertainty > 0.0
            };
            assert!(predict("", members.clone()).iter().all(sound), "{odd}: {:?}", predict("", members));
        }
    }
}
