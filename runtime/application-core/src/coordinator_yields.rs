//! Runners of tasks make room for those of the application that wait.

use crate::ceiling::Claimant;
use crate::coordinator::Coordinator;
use crate::coordinator_effect::CoordinatorEffect;
use crate::runner_report::{RunnerShortage, RunnerState};
use crate::runner_yields::WaitingClaimant;

impl Coordinator {
    /// Time for the next round of `AwaitYield`.
    pub fn yield_due(&mut self, effects: &mut Vec<CoordinatorEffect>) {
        let from = effects.len();
        let runners = &self.task_runners;
        if self.yields.begin_round(|runner| runners.is_runner(runner.job())) {
            let waiting = self.waiting();
            let mut largest = self.yields.classes_before(&waiting, self.task_runners.live_runners(), 2);
            let told = largest.pop_last().and_then(|(_, class)| self.task_runners.give_way(&class, effects));
            self.yields.end_round(told, &waiting);
        }
        self.make_room(effects);
        self.admit(effects);
        self.nodes.introduce(from, effects);
    }

    /// Keeps classes from growing that others wait for, as long as these do.
    pub(crate) fn make_room(&mut self, effects: &mut Vec<CoordinatorEffect>) {
        let waiting = self.waiting();
        self.yields.look_at(&waiting);
        let before = self.yields.classes_before(&waiting, self.task_runners.live_runners(), 1);
        if !before.is_empty() && self.yields.needs_round() {
            effects.push(CoordinatorEffect::AwaitYield);
        }
        let held_back = before.into_iter().map(|(_, class)| class).collect();
        self.task_runners.hold_back(&held_back, &mut self.ceiling, effects);
    }

    /// Who waits for room at the head, or for the ceiling.
    fn waiting(&self) -> Vec<WaitingClaimant> {
        let at_head = self.reports.iter().filter_map(|(job, report)| match &report.state {
            RunnerState::Waiting { shortage: Some(shortage), .. } => {
                let gang = self.actors.live_gang_of(*job).map(Claimant::Gang);
                let who = gang.or_else(|| self.task_runners.waits(*job).map(Claimant::TaskRunner));
                Some((who?, *shortage))
            }
            RunnerState::Waiting { shortage: None, .. } | RunnerState::Live | RunnerState::Ended { .. } => {
                None
            }
        });
        let at_ceiling = self.ceiling.waiting().map(|who| (who, RunnerShortage::Gpus));
        let with_class = |(who, shortage)| {
            let class = match who {
                Claimant::Gang(_) => None,
                Claimant::TaskRunner(runner) => self.task_runners.class(runner).cloned(),
            };
            let runners = class.as_ref().map_or(0, |class| self.task_runners.live(class));
            WaitingClaimant { who, shortage, class, runners }
        };
        at_head.chain(at_ceiling).map(with_class).collect()
    }
}
