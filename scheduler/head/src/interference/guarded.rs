//! A model that may fail, and the law that takes its place when it does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use cohabit_policy::interference::{ByLaw, CoLocation, Colocated, Contention, FairShares, Interference};

/// A model whose answers are looked at before anybody goes by them. After its first failure it is asked no
/// more.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    model: Arc<dyn Interference>,
    trouble: Arc<OnceLock<&'static str>>,
}

impl Guarded {
    pub(super) fn new(model: Arc<dyn Interference>) -> Guarded {
        Guarded { model, trouble: Arc::default() }
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

impl Interference for Guarded {
    fn predict(&self, sets: &[CoLocation]) -> Vec<Vec<Colocated>> {
        let answer = self.ask(|model| model.predict(sets), |answer| answers(sets, answer));
        answer.unwrap_or_else(|| ByLaw::<FairShares>::default().predict(sets))
    }

    fn contention(&self, sets: &[CoLocation]) -> Option<Vec<Vec<Contention>>> {
        self.ask(
            |model| model.contention(sets),
            |answer| answer.as_ref().is_none_or(|it| compares(sets, it)),
        )?
    }
}

/// Whether this is an answer about every member, in numbers.
fn answers(sets: &[CoLocation], answer: &[Vec<Colocated>]) -> bool {
    let same = |(set, said): (&CoLocation, &Vec<Colocated>)| set.members.len() == said.len();
    let all_there = answer.len() == sets.len() && sets.iter().zip(answer).all(same);
    all_there && answer.iter().flatten().all(is_sound)
}

fn is_sound(said: &Colocated) -> bool {
    let finite = |value: Option<f64>| value.is_none_or(f64::is_finite);
    said.slowdown.is_finite()
        && said.slowdown >= 1.0
        && said.uncertainty.is_finite()
        && said.uncertainty >= 0.0
        && (0.0..=1.0).contains(&said.fits)
        && finite(said.memory)
        && finite(said.utilisation)
}

fn compares(sets: &[CoLocation], answer: &[Vec<Contention>]) -> bool {
    let same = |(set, said): (&CoLocation, &Vec<Contention>)| set.members.len() == said.len();
    let all_there = answer.len() == sets.len() && sets.iter().zip(answer).all(same);
    all_there && answer.iter().flatten().flat_map(|it| &it.0).all(|it| it.is_finite())
}

#[cfg(test)]
mod tests {
    use cohabit_policy::interference::Member;

    use super::*;

    /// Says the batch size of a member as its slowdown; panics over one that has none.
    #[derive(Debug)]
    struct Said;

    impl Interference for Said {
        fn predict(&self, sets: &[CoLocation]) -> Vec<Vec<Colocated>> {
            let member = |member: &Member| {
                let slowdown = member.batch.expect("a model of a test panics on purpose") as f64;
                Colocated { slowdown: 1.0 / (slowdown - 3.0) + 5.0, ..Colocated::alone(member) }
            };
            sets.iter().map(|set| set.members.iter().map(member).collect()).collect()
        }
    }

    fn pair(batch: Option<u64>) -> CoLocation {
        let member = Member { batch, ..Member::default() };
        CoLocation { members: vec![member.clone(), member], ..CoLocation::default() }
    }

    fn said(guarded: &Guarded, batch: Option<u64>) -> f64 {
        guarded.predict(&[pair(batch)])[0][0].slowdown
    }

    #[test]
    fn a_sound_answer_is_passed_on() {
        let guarded = Guarded::new(Arc::new(Said));
        assert_eq!((said(&guarded, Some(4)), guarded.trouble()), (6.0, None));
    }

    #[test]
    fn the_law_answers_for_a_model_that_failed_from_then_on() {
        let law = ByLaw::<FairShares>::default().predict(&[pair(Some(4))])[0][0].slowdown;
        for (fault, trouble) in [(None, "it panicked"), (Some(3), "it answered what makes no sense")] {
            let guarded = Guarded::new(Arc::new(Said));
            assert_eq!((said(&guarded, fault), guarded.trouble()), (law, Some(trouble)));
            assert_eq!(said(&guarded, Some(4)), law);
        }
    }

    /// Forgets the last set.
    #[derive(Debug)]
    struct Forgetful;

    impl Interference for Forgetful {
        fn predict(&self, _: &[CoLocation]) -> Vec<Vec<Colocated>> {
            Vec::new()
        }

        fn contention(&self, _: &[CoLocation]) -> Option<Vec<Vec<Contention>>> {
            Some(vec![vec![Contention(vec![f64::NAN])]])
        }
    }

    #[test]
    fn who_answers_too_little_has_failed() {
        let guarded = Guarded::new(Arc::new(Forgetful));
        assert_eq!(guarded.contention(&[pair(None)]), None);
        assert!(guarded.trouble().is_some());
        let guarded = Guarded::new(Arc::new(Forgetful));
        assert_eq!(guarded.predict(&[pair(None)])[0].len(), 2);
        assert!(guarded.trouble().is_some());
    }
}
