//! The model that comes with the program: what sharing a GPU costs as long as a cluster has measured nothing.
//!
//! It was trained on public measurements by the command that its card tells, and holds none of them. Of jobs
//! and GPUs that it never saw it says so by its uncertainty, and leans to the law of shared GPUs where it is
//! known how busy jobs keep a GPU.

use std::path::Path;

use super::stored_model::{ModelCard, StoreError, StoredModel};

const CARD: &[u8] = include_bytes!("../../pretrained/interference/card.json");
const WEIGHTS: &[u8] = include_bytes!("../../pretrained/interference/weights.safetensors");

/// The model that comes with the program.
///
/// # Errors
/// None with the files that it was built with; those of [`StoredModel::load`] if they were exchanged for others.
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

    /// A job that nobody ever saw.
    fn stranger(utilisation: Option<f64>, parameters: Option<f64>) -> SetMember {
        SetMember {
            model: "made up".to_owned(),
            batch: Some(48),
            features: ModelFeatures { parameters, ..ModelFeatures::default() },
            solo: SoloMetrics { utilisation, ..SoloMetrics::default() },
            ..SetMember::default()
        }
    }

    fn asked(gpu: &str, members: Vec<SetMember>) -> Vec<ColocationEstimate> {
        let set = ColocationSet { gpu: GpuKind::named(gpu), sharing: None, members };
        pretrained().unwrap().model.predict(&[set]).remove(0)
    }

    #[test]
    fn it_is_small_and_whole() {
        assert!(CARD.len() + WEIGHTS.len() < 300_000, "{} + {}", CARD.len(), WEIGHTS.len());
        let stored = pretrained().unwrap();
        assert_eq!(stored.card.model, "low-rank");
        assert!(stored.card.command.starts_with("cohabit predict train "), "{}", stored.card.command);
    }

    #[test]
    fn on_a_gpu_that_it_never_saw_it_leans_to_the_law() {
        for busy in [[0.1, 0.9], [0.3, 0.3], [0.5, 0.95], [0.95, 0.95], [0.05, 0.05]] {
            let members: Vec<SetMember> = busy.map(|busy| stranger(Some(busy), Some(3e8))).into();
            let set =
                ColocationSet { gpu: GpuKind::named("nvidia h200"), sharing: None, members: members.clone() };
            let law = AnalyticInterference::<MaxMinSharing>::default().predict(&[set]).remove(0);
            for (said, law) in asked("nvidia h200", members).iter().zip(law) {
                let apart = (said.slowdown / law.slowdown).ln().abs();
                assert!(apart < 0.2, "{busy:?}: {said:?} beside {law:?}");
                assert!(said.uncertainty > 0.1, "{busy:?}: {said:?}");
            }
        }
    }

    #[test]
    fn the_busier_the_partner_the_more_a_stranger_is_slowed() {
        let beside = |busy| asked("nvidia h200", vec![stranger(Some(0.7), None), stranger(Some(busy), None)]);
        let slowdowns: Vec<f64> = [0.1, 0.4, 0.7, 1.0].map(|busy| beside(busy)[0].slowdown).into();
        assert!(slowdowns.is_sorted() && slowdowns[3] > slowdowns[0] + 0.3, "{slowdowns:?}");
    }

    #[test]
    fn of_whom_nothing_is_known_little_is_promised() {
        for (utilisation, parameters) in [(None, None), (None, Some(7e9)), (None, Some(0.0))] {
            for count in 2..=6 {
                let said = asked("gpu of tomorrow", vec![stranger(utilisation, parameters); count]);
                for said in said {
                    assert!(said.uncertainty > 0.25, "{count}: {said:?}");
                    assert!((1.2..count as f64 * 1.7).contains(&said.slowdown), "{count}: {said:?}");
                }
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_answered_with_numbers() {
        for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            let members = vec![stranger(Some(odd), Some(odd)), stranger(None, None), SetMember::default()];
            let sound = |said: &ColocationEstimate| {
                said.slowdown.is_finite() && said.slowdown >= 1.0 && said.uncertainty > 0.0
            };
            assert!(asked("", members.clone()).iter().all(sound), "{odd}: {:?}", asked("", members));
        }
    }
}
