//! Tasks that would wait for ever for GPUs which waiting tasks of the same application hold.
//!
//! A runner with GPUs says when its task is blocked, and which classes of runners the task needs. It is
//! *stuck* if none of these can run anything: all runners of the class are stuck themselves, and the GPUs
//! that stuck runners hold leave no room for another one. Whatever else holds GPUs may end, so it counts as
//! free.
//!
//! What runners have said may be out of date. So those that seem stuck are asked again, and only if all of
//! them have answered that nothing has changed, were they all blocked at the time of the question.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{RankId, Share};

use crate::coordinator_effect::CoordinatorEffect;
use crate::frames::FromCoordinator;
use crate::task_class::TaskClass;

/// Runners whose tasks are blocked, and the question to those that seem stuck.
#[derive(Debug)]
pub(crate) struct Deadlocks {
    /// The GPUs that the application can have.
    limit: Option<Share>,
    blocked: BTreeMap<RankId, BlockedRunner>,
    last_report: u64,
    last_probe: u64,
    round: Option<ProbeRound>,
}

/// A runner whose task is blocked.
#[derive(Debug)]
struct BlockedRunner {
    class: TaskClass,
    needs: Vec<TaskClass>,
    report: u64,
    /// The runner whose task was told to let a call fail when this one was stuck with it: itself, or another
    /// one that may have passed the word on. Until that one says how it stands, this one may go on.
    told: Option<RankId>,
}

/// A question to runners that seem stuck, by the numbers of their reports.
#[derive(Debug)]
struct ProbeRound {
    stuck: BTreeMap<RankId, u64>,
    unanswered: BTreeSet<RankId>,
}

/// How it stands with the runners of a class that are not blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClassSupply {
    /// There is one.
    Live,
    /// One comes as soon as there is room for it.
    Growing,
    /// The head gives no further one.
    Exhausted,
}

impl Deadlocks {
    /// `ceiling` is the `max_gpus` of the application, `capacity` the GPUs of its node.
    pub(crate) fn new(ceiling: Option<Share>, capacity: Option<Share>) -> Deadlocks {
        let limit = ceiling.into_iter().chain(capacity).min();
        Deadlocks { limit, blocked: BTreeMap::new(), last_report: 0, last_probe: 0, round: None }
    }

    /// A runner of a class says what its task needs before it goes on.
    pub(crate) fn report(&mut self, runner: RankId, class: TaskClass, needs: Vec<TaskClass>) {
        self.last_report += 1;
        if needs.is_empty() {
            self.blocked.remove(&runner);
        } else {
            let report = self.last_report;
            self.blocked.insert(runner, BlockedRunner { class, needs, report, told: None });
        }
    }

    /// A runner has ended, or is to end.
    pub(crate) fn forget(&mut self, runner: RankId) {
        self.blocked.remove(&runner);
    }

    /// Whether a task that keeps its GPUs needs a runner of this class.
    pub(crate) fn needs(&self, class: &TaskClass) -> bool {
        self.blocked.values().any(|runner| runner.needs.contains(class))
    }

    /// Asks those that seem stuck, unless they were asked before.
    pub(crate) fn ask(
        &mut self,
        supply: impl Fn(&TaskClass) -> ClassSupply,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let stuck = self.stuck(supply);
        if stuck.is_empty() {
            self.round = None;
        } else if self.round.as_ref().is_none_or(|round| round.stuck != stuck) {
            self.last_probe += 1;
            let frame = FromCoordinator::Probe { probe: self.last_probe };
            effects.extend(stuck.keys().map(|to| CoordinatorEffect::Send { to: *to, frame: frame.clone() }));
            let unanswered = stuck.keys().copied().collect();
            self.round = Some(ProbeRound { stuck, unanswered });
        }
    }

    /// A runner has answered that nothing has changed. If all have, the one that began to wait last is told.
    pub(crate) fn answered(&mut self, runner: RankId, probe: u64, effects: &mut Vec<CoordinatorEffect>) {
        let Some(round) = self.round.as_mut().filter(|_| probe == self.last_probe) else { return };
        round.unanswered.remove(&runner);
        if !round.unanswered.is_empty() {
            return;
        }
        let Some(ProbeRound { stuck, .. }) = self.round.take() else { return };
        let last = stuck.iter().max_by_key(|(_, report)| **report).map(|(runner, _)| *runner);
        let held = self.held(&stuck);
        if let Some(to) = last {
            let together = self.blocked.iter_mut().filter(|(runner, _)| stuck.contains_key(runner));
            together.for_each(|(_, runner)| runner.told = last);
            let text = self.explain(held);
            effects.push(CoordinatorEffect::Send { to, frame: FromCoordinator::Deadlock { text } });
        }
    }

    /// Whether a runner, or one that it was stuck with, was told to let a call fail and has not said anything
    /// since.
    fn may_go_on(&self, runner: &BlockedRunner) -> bool {
        let told = runner.told.and_then(|told| Some((told, self.blocked.get(&told)?)));
        told.is_some_and(|(told, it)| it.told == Some(told))
    }

    /// The runners that cannot go on before one of them lets a call fail.
    fn stuck(&self, supply: impl Fn(&TaskClass) -> ClassSupply) -> BTreeMap<RankId, u64> {
        let waiting = self.blocked.iter().filter(|(_, runner)| !self.may_go_on(runner));
        let mut stuck: BTreeMap<RankId, u64> = waiting.map(|(it, runner)| (*it, runner.report)).collect();
        loop {
            let goes_on: Vec<RankId> = self.going_on(&stuck, &supply).collect();
            if goes_on.is_empty() {
                return stuck;
            }
            goes_on.iter().for_each(|runner| _ = stuck.remove(runner));
        }
    }

    /// Those of `stuck` that need a class which can run something although all of them are stuck.
    fn going_on<'a>(
        &'a self,
        stuck: &'a BTreeMap<RankId, u64>,
        supply: &'a impl Fn(&TaskClass) -> ClassSupply,
    ) -> impl Iterator<Item = RankId> + 'a {
        let held = self.held(stuck);
        let runs = move |class: &TaskClass| {
            let others = self.blocked.iter().filter(|(runner, _)| !stuck.contains_key(runner));
            others.map(|(_, runner)| &runner.class).any(|it| it == class)
                || match supply(class) {
                    ClassSupply::Live => true,
                    ClassSupply::Growing => self.has_room(held, class.gpus),
                    ClassSupply::Exhausted => false,
                }
        };
        let blocked = self.blocked.iter().filter(|(runner, _)| stuck.contains_key(runner));
        blocked.filter(move |(_, it)| it.needs.iter().any(&runs)).map(|(runner, _)| *runner)
    }

    fn has_room(&self, Share(held): Share, Share(gpus): Share) -> bool {
        self.limit.is_none_or(|Share(limit)| held.saturating_add(gpus) <= limit)
    }

    /// The GPUs of these runners.
    fn held(&self, runners: &BTreeMap<RankId, u64>) -> Share {
        let blocked = runners.keys().filter_map(|runner| self.blocked.get(runner));
        Share(blocked.fold(0, |sum: u32, runner| sum.saturating_add(runner.class.gpus.0)))
    }

    fn explain(&self, held: Share) -> String {
        match self.limit {
            Some(limit) => {
                format!("tasks that wait for others hold {held} of the {limit} that the application can have")
            }
            None => {
                format!("the cluster gives it no more processes, and tasks that wait for others hold {held}")
            }
        }
    }
}
