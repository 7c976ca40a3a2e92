//! A model that may fail, and the analytic predictor that replaces it when it does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use cohabit_policy::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, ContentionMetrics, Interference, MaxMinSharing,
};

/// Checks the predictions of a model. After the model's first failure the analytic predictor replaces it.
/// Clones share the failure.
#[derive(Debug, Clone)]
pub(super) struct GuardedModel {
    model: Arc<dyn Interference>,
    failure: Arc<OnceLock<&'static str>>,
}

impl GuardedModel {
    pub(super) fn new(model: Arc<dyn Interference>) -> GuardedModel {
        GuardedModel { model, failure: Arc::default() }
    }

    /// How the model failed, if it did.
    pub(super) fn failure(&self) -> Option<&'static str> {
        self.failure.get().copied()
    }

    /// The model's answer, if it is valid.
    fn ask<T>(
        &self,
        query: impl FnOnce(&dyn Interference) -> T,
        is_valid: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        if self.failure.get().is_some() {
            return None;
        }
        let failure = match catch_unwind(AssertUnwindSafe(|| query(&*self.model))) {
            Ok(answer) if is_valid(&answer) => return Some(answer),
            Ok(_) => "its prediction was not valid",
            Err(_) => "it panicked",
        };
        if self.failure.set(failure).is_ok() {
            tracing::error!(failure, "the interference model failed; the analytic predictor replaces it");
        }
        None
    }
}

impl Interference for GuardedModel {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let answer = self.ask(|model| model.predict(sets), |answer| are_estimates_valid(sets, answer));
        answer.unwrap_or_else(|| AnalyticInterference::<MaxMinSharing>::default().predict(sets))
    }

    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        self.ask(
            |model| model.contention(sets),
            |answer| answer.as_ref().is_none_or(|it| are_metrics_valid(sets, it)),
        )?
    }
}

/// Whether the answer has a valid estimate for every member.
fn are_estimates_valid(sets: &[ColocationSet], answer: &[Vec<ColocationEstimate>]) -> bool {
    let same = |(set, said): (&ColocationSet, &Vec<ColocationEstimate>)| set.members.len() == said.len();
    let all_there = answer.len() == sets.len() && sets.iter().zip(answer).all(same);
    all_there && answer.iter().flatten().all(is_estimate_valid)
}

fn is_estimate_valid(said: &ColocationEstimate) -> bool {
    let finite = |value: Option<f64>| value.is_none_or(f64::is_finite);
    said.slowdown.is_finite()
        && said.slowdown >= 1.0
        && said.uncertainty.is_finite()
        && said.uncertainty >= 0.0
        && (0.0..=1.0).contains(&said.fits)
        && finite(said.memory)
        && finite(said.utilization)
}

fn are_metrics_valid(sets: &[ColocationSet], answer: &[Vec<ContentionMetrics>]) -> bool {
    let same = |(set, said): (&ColocationSet, &Vec<ContentionMetrics>)| set.members.len() == said.len();
    let all_there = answer.len() == sets.len() && sets.iter().zip(answer).all(same);
    all_there && answer.iter().flatten().flat_map(|it| &it.0).all(|it| it.is_finite())
}

#[cfg(test)]
mod tests {
    use cohabit_policy::interference::SetMember;

    use super::*;

    /// Predicts a slowdown from the batch size of a member; panics if there is none.
    #[derive(Debug)]
    struct BatchSizeModel;

    impl Interference for BatchSizeModel {
        fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
            let member = |member: &SetMember| {
                let slowdown = member.batch.expect("a model of a test panics on purpose") as f64;
                ColocationEstimate {
                    slowdown: 1.0 / (slowdown - 3.0) + 5.0,
                    ..ColocationEstimate::alone(member)
                }
            };
            sets.iter().map(|set| set.members.iter().map(member).collect()).collect()
        }
    }

    fn pair(batch: Option<u64>) -> ColocationSet {
        let member = SetMember { batch, ..SetMember::default() };
        ColocationSet { members: vec![member.clone(), member], ..ColocationSet::default() }
    }

    fn predicted(guarded: &GuardedModel, batch: Option<u64>) -> f64 {
        guarded.predict(&[pair(batch)])[0][0].slowdown
    }

    #[test]
    fn a_valid_prediction_is_passed_on() {
        let guarded = GuardedModel::new(Arc::new(BatchSizeModel));
        assert_eq!((predicted(&guarded, Some(4)), guarded.failure()), (6.0, None));
    }

    #[test]
    fn after_a_failure_the_analytic_predictor_answers() {
        let analytic =
            AnalyticInterference::<MaxMinSharing>::default().predict(&[pair(Some(4))])[0][0].slowdown;
        for (batch, failure) in [(None, "it panicked"), (Some(3), "its prediction was not valid")] {
            let guarded = GuardedModel::new(Arc::new(BatchSizeModel));
            assert_eq!((predicted(&guarded, batch), guarded.failure()), (analytic, Some(failure)));
            assert_eq!(predicted(&guarded, Some(4)), analytic);
        }
    }

    /// Predicts nothing, and metrics that are not numbers.
    #[derive(Debug)]
    struct Incomplete;

    impl Interference for Incomplete {
        fn predict(&self, _: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
            Vec::new()
        }

        fn contention(&self, _: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
            Some(vec![vec![ContentionMetrics(vec![f64::NAN])]])
        }
    }

    #[test]
    fn an_incomplete_prediction_is_a_failure() {
        let guarded = GuardedModel::new(Arc::new(Incomplete));
        assert_eq!(guarded.contention(&[pair(None)]), None);
        assert!(guarded.failure().is_some());
        let guarded = GuardedModel::new(Arc::new(Incomplete));
        assert_eq!(guarded.predict(&[pair(None)])[0].len(), 2);
        assert!(guarded.failure().is_some());
    }
}
