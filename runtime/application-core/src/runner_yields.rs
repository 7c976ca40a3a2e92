//! Which runners of tasks end so that others of the application, which wait for what they hold, get it.
//!
//! A runner takes tasks as long as there are any: an actor, or tasks with other claims, could wait for ever
//! for its cores or GPUs. So as long as somebody waits, classes that have more runners do not grow, and one
//! runner after the other ends, when it has done what it has started. Each class keeps one, since others may
//! wait for its tasks. Among classes, one gives to another that has fewer runners by two or more.
//!
//! What somebody waits for may be held by other applications. If nothing has helped for long, they are left
//! out until they wait no longer.

use std::collections::BTreeSet;

use cohabit_types::RankId;

use crate::ceiling::Claimant;
use crate::runner_report::RunnerShortage;
use crate::task_class::TaskClass;

/// A runner that was told to end has so many rounds for what it has started. Then another one is told.
const ROUNDS_TO_END: u32 = 5;

/// After so many rounds in which no runner could be told to end, those that wait are left out.
const ROUNDS_IN_VAIN: u32 = 15;

/// Who waits, and what was done about it.
#[derive(Debug, Default)]
pub(crate) struct RunnerYields {
    /// The next round was asked for.
    has_round: bool,
    /// The runner that was told to end last, and in how many rounds it has not.
    leaving: Option<(RankId, u32)>,
    /// In how many rounds no runner could be told to end.
    in_vain: u32,
    /// Those that nothing helped, as long as they wait.
    left_out: BTreeSet<Claimant>,
}

/// Somebody that waits for what runners of tasks may hold.
#[derive(Debug)]
pub(crate) struct WaitingClaimant {
    pub(crate) who: Claimant,
    pub(crate) shortage: RunnerShortage,
    /// Its class, if it is a runner of tasks itself, and how many live runners that has.
    pub(crate) class: Option<TaskClass>,
    pub(crate) runners: usize,
}

/// Classes, those with the most live runners last.
pub(crate) type SortedClasses = BTreeSet<(usize, TaskClass)>;

impl WaitingClaimant {
    /// Whether a class with so many live runners holds what this one waits for, and more of it, by `margin`.
    fn is_behind(&self, (class, runners): (&TaskClass, usize), margin: usize) -> bool {
        let holds = match self.shortage {
            RunnerShortage::Gpus => class.gpus.0 > 0,
            RunnerShortage::Host | RunnerShortage::Jobs => true,
        };
        holds && self.class.as_ref() != Some(class) && runners >= self.runners + margin
    }
}

impl RunnerYields {
    /// Forgets those that wait no longer.
    pub(crate) fn look_at(&mut self, waiting: &[WaitingClaimant]) {
        self.left_out.retain(|who| waiting.iter().any(|it| it.who == *who));
    }

    /// Of these classes with their live runners, those that somebody waits for and that have more runners
    /// than those who wait, by `margin`.
    pub(crate) fn classes_before<'a>(
        &self,
        waiting: &[WaitingClaimant],
        classes: impl Iterator<Item = (&'a TaskClass, usize)>,
        margin: usize,
    ) -> SortedClasses {
        let is_needy = |it: &&WaitingClaimant| !self.left_out.contains(&it.who);
        let needy: Vec<&WaitingClaimant> = waiting.iter().filter(is_needy).collect();
        let before = classes.filter(|it| needy.iter().any(|waiting| waiting.is_behind(*it, margin)));
        before.map(|(class, runners)| (runners, class.clone())).collect()
    }

    /// A next round is needed: whether it has to be asked for.
    pub(crate) const fn needs_round(&mut self) -> bool {
        !std::mem::replace(&mut self.has_round, true)
    }

    /// A round begins: whether the runner that was told to end last, if it has not, has had time for it.
    pub(crate) fn begin_round(&mut self, is_there: impl FnOnce(RankId) -> bool) -> bool {
        self.has_round = false;
        match &mut self.leaving {
            Some((runner, rounds)) if *rounds < ROUNDS_TO_END && is_there(*runner) => {
                *rounds += 1;
                false
            }
            Some(_) | None => true,
        }
    }

    /// A round is over, in which this runner was told to end.
    pub(crate) fn end_round(&mut self, told: Option<RankId>, waiting: &[WaitingClaimant]) {
        self.leaving = told.map(|runner| (runner, 0));
        self.in_vain = if told.is_some() { 0 } else { self.in_vain + 1 };
        if self.in_vain >= ROUNDS_IN_VAIN {
            self.in_vain = 0;
            self.left_out.extend(waiting.iter().map(|it| it.who));
        }
    }
}
