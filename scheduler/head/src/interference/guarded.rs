//! A model that may fail, and the law that takes its place when it does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use cohabit_policy::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, ContentionMetrics, Interference, MaxMinSharing,
};

/// A model whose answers are looked at before anybody goes by them. After its first failure it is asked no
/// more.
#[derive(Debug, Clone)]
pub(super) struct GuardedModel {
    model: Arc<dyn Interference>,
    trouble: Arc<OnceLock<&'static str>>,
}

impl GuardedModel {
    pub(super) fn new(model: Arc<dyn Interference>) -> GuardedModel {
        GuardedModel { model, trouble: Arc::default() }
    }

    /// How it has failed, if it has.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        self.trouble.get().copied()
    }

    /// What the model answers, if that makes sense.
    fn ask<T>(
        &self,
        question: impl FnOnce(&dyn Interference) -> T,
        sound: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        if self.trouble.get().is_some() {
            return None;
        }
        let trouble = match catch_unwind(AssertUnwindSafe(|| question(&*self.model))) {
            Ok(answer) if sound(&answer) => return Some(answer),
            Ok(_) => "it answered what makes no sense",
            Err(_) => "it panicked",
        };
        if self.trouble.set(trouble).is_ok() {
            tracing::error!(trouble, "the model of interference has failed, and the law takes its place");
        }
        None
    }
}

impl Interference for GuardedModel {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let answer = self.ask(|model| model.predict(sets), |answer| answers(sets, answer));
        answer.unwrap_or_else(|| AnalyticInterference::<MaxMinSharing>::default().predict(sets))
    }

    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        self.ask(
            |model| model.contention(sets),
            |answer| answer.as_ref().is_none_or(|it| compares(sets, it)),
        )?
    }
}

/// Whether this is an answer about every member, in numbers.
fn answers(sets: &[ColocationSet], answer: &[Vec<ColocationEstimate>]) -> bool {
    let same = |(set, said): (&ColocationSet, &Vec<ColocationEstimate>)| set.members.len() == said.len();
    let all_there = answer.len() == sets.len() && sets.iter().zip(answer).all(same);
    all_there && answer.iter().flatten().all(is_sound)
}

fn is_sound(said: &ColocationEstimate) -> bool {
    let finite = |value: Option<f64>| value.is_none_or(f64::is_finite);
    said.slowdown.is_finite()
        && said.slowdown >= 1.0
        && said.uncertainty.is_finite()
        && said.uncertainty >= 0.0
        && (0.0..=1.0).contains(&said.fits)
        && finite(said.memory)
        && finite(said.utilisation)
}

fn compares(sets: &[ColocationSet], answer: &[Vec<ContentionMetrics>]) -> bool {
    let same = |(set, said): (&ColocationSet, &Vec<ContentionMetrics>)| set.members.len() == said.len();
    let all_there = answer.len() == sets.len() && sets.iter().zip(answer).all(same);
    all_there && answer.iter().flatten().flat_map(|it| &it.0).all(|it| it.is_finite())
}

#[cfg(test)]
mod tests {
    use cohabit_policy::interference::SetMember;

    use super::*;

    /// Says the batch size of a member as its slowdown; panics over one that has none.
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

    fn said(guarded: &GuardedModel, batch: Option<u64>) -> f64 {
        guarded.predict(&[pair(batch)])[0][0].slowdown
    }

    #[test]
    fn a_sound_answer_is_passed_on() {
        let guarded = GuardedModel::new(Arc::new(BatchSizeModel));
        assert_eq!((said(&guarded, Some(4)), guarded.trouble()), (6.0, None));
    }

    #[test]
    fn the_law_answers_for_a_model_that_failed_from_then_on() {
        let law = AnalyticInterference::<MaxMinSharing>::default().predict(&[pair(Some(4))])[0][0].slowdown;
        for (fault, trouble) in [(None, "it panicked"), (Some(3), "it answered what makes no sense")] {
            let guarded = GuardedModel::new(Arc::new(BatchSizeModel));
            assert_eq!((said(&guarded, fault), guarded.trouble()), (law, Some(trouble)));
            assert_eq!(said(&guarded, Some(4)), law);
        }
    }

    /// Forgets the last set.
    #[derive(Debug)]
    struct Forgetful;

    impl Interference for Forgetful {
        fn predict(&self, _: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
            Vec::new()
        }

        fn contention(&self, _: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
            Some(vec![vec![ContentionMetrics(vec![f64::NAN])]])
        }
    }

    #[test]
    fn who_answers_too_little_has_failed() {
        let guarded = GuardedModel::new(Arc::new(Forgetful));
        assert_eq!(guarded.contention(&[pair(None)]), None);
        assert!(guarded.trouble().is_some());
        let guarded = GuardedModel::new(Arc::new(Forgetful));
        assert_eq!(guarded.predict(&[pair(None)])[0].len(), 2);
        assert!(guarded.trouble().is_some());
    }
}
