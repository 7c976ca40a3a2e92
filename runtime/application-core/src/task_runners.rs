//! The runners of tasks at the coordinator: who wants them, how many there are, and when they end.
//!
//! Whoever wants runners of a class is told of all of its live ones. There are as many as all want together;
//! their number at most doubles at a time, since what is wanted is an estimate that the first tasks correct.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, RankId};

use crate::ceiling::{Ceiling, Claimant};
use crate::class_demand::ClassDemand;
use crate::coordinator_effect::CoordinatorEffect;
use crate::deadlocks::ClassSupply;
use crate::descriptions::{ClassDescription, RunnerCondition, RunnerDescription};
use crate::frames::FromCoordinator;
use crate::ids::TaskRunnerNumber;
use crate::limits::MAX_TASK_RUNNERS;
use crate::nodes::Nodes;
use crate::runner_report::{RunnerReport, RunnerState};
use crate::task_class::TaskClass;

/// All runners whose jobs have not ended.
#[derive(Debug)]
pub(crate) struct TaskRunners {
    last: TaskRunnerNumber,
    classes: BTreeMap<TaskClass, ClassDemand>,
    all: BTreeMap<TaskRunnerNumber, TaskRunner>,
    jobs: BTreeMap<JobId, TaskRunnerNumber>,
}

#[derive(Debug)]
struct TaskRunner {
    class: TaskClass,
    phase: RunnerPhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunnerPhase {
    /// The ceiling of the application leaves no room.
    Queued,
    /// The head was asked for a job and has not answered.
    Submitting,
    /// As before, and the job is not wanted any more.
    Unwanted,
    /// It has a job, of which no process serves.
    Waiting { job: JobId, history: History },
    /// Its process takes tasks.
    Live { member: RankId },
    /// Its job was cancelled, or its process was told to end and may still run.
    Leaving { job: JobId, told: Option<RankId> },
}

/// Whether a process of a job has ever connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum History {
    NeverConnected,
    Connected,
}

impl TaskRunners {
    pub(crate) const fn new() -> TaskRunners {
        TaskRunners {
            last: TaskRunnerNumber(0),
            classes: BTreeMap::new(),
            all: BTreeMap::new(),
            jobs: BTreeMap::new(),
        }
    }

    /// Whether there is no runner and nobody wants one.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.classes.is_empty()
    }

    /// The class of a process that takes tasks, or would but for the one that it runs. One that was told to
    /// end counts, too: a task may have come before the word.
    pub(crate) fn class_of(&self, member: RankId) -> Option<&TaskClass> {
        let runner = self.all.get(self.jobs.get(&member.job())?)?;
        let is_it = match runner.phase {
            RunnerPhase::Live { member: it } | RunnerPhase::Leaving { told: Some(it), .. } => it == member,
            RunnerPhase::Queued
            | RunnerPhase::Submitting
            | RunnerPhase::Unwanted
            | RunnerPhase::Waiting { .. }
            | RunnerPhase::Leaving { told: None, .. } => false,
        };
        is_it.then_some(&runner.class)
    }

    /// The class of a runner.
    pub(crate) fn class(&self, runner: TaskRunnerNumber) -> Option<&TaskClass> {
        self.all.get(&runner).map(|runner| &runner.class)
    }

    /// The classes with the numbers of processes that take their tasks.
    pub(crate) fn live_runners(&self) -> impl Iterator<Item = (&TaskClass, usize)> {
        self.classes.iter().map(|(class, demand)| (class, demand.live()))
    }

    /// Number of processes that take tasks of a class.
    pub(crate) fn live(&self, class: &TaskClass) -> usize {
        self.classes.get(class).map_or(0, ClassDemand::live)
    }

    /// The runner of a job that is wanted and of which no process serves.
    pub(crate) fn waits(&self, job: JobId) -> Option<TaskRunnerNumber> {
        let number = *self.jobs.get(&job)?;
        let runner = self.all.get(&number)?;
        matches!(runner.phase, RunnerPhase::Waiting { .. }).then_some(number)
    }

    /// These classes, and no others, do not grow: others wait for what their runners would claim.
    pub(crate) fn hold_back(
        &mut self,
        classes: &BTreeSet<TaskClass>,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let changed = self
            .classes
            .iter_mut()
            .filter_map(|(class, demand)| demand.hold_back(classes.contains(class)).then(|| class.clone()));
        let changed: Vec<TaskClass> = changed.collect();
        changed.iter().for_each(|class| self.balance(class, ceiling, effects));
    }

    /// One of several runners of a class ends after what it has started: which.
    pub(crate) fn give_way(
        &mut self,
        class: &TaskClass,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Option<RankId> {
        let member = self.classes.get(class).filter(|demand| demand.live() > 1)?.newest()?;
        self.leave(member, effects);
        Some(member)
    }

    /// Whether the class can run something, now or later.
    pub(crate) fn supply(&self, class: &TaskClass) -> ClassSupply {
        self.classes.get(class).map_or(ClassSupply::Growing, ClassDemand::supply)
    }

    /// A process that takes tasks does not for now, or does again.
    pub(crate) fn block(
        &mut self,
        class: &TaskClass,
        (member, is_blocked): (RankId, bool),
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        if let Some(demand) = self.classes.get_mut(class) {
            demand.block(member, is_blocked);
            self.balance(class, ceiling, effects);
        }
    }

    pub(crate) fn is_runner(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }

    /// A member says how many runners it could use.
    pub(crate) fn want(
        &mut self,
        by: RankId,
        class: TaskClass,
        runners: u32,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        if let Some(max_gpus) = ceiling.forbids(class.gpus).filter(|_| runners > 0) {
            let gpus = class.gpus;
            let why = format!(
                "a task needs {gpus} GPUs and the application may use {max_gpus}: raise max_gpus of main"
            );
            effects.push(CoordinatorEffect::Send { to: by, frame: FromCoordinator::NoRunner { class, why } });
            return;
        }
        if runners > 0 || self.classes.contains_key(&class) {
            let demand = self.classes.entry(class.clone()).or_insert_with(ClassDemand::new);
            for runner in demand.want(by, runners) {
                let frame = FromCoordinator::RunnerJoined { class: class.clone(), runner };
                effects.push(CoordinatorEffect::Send { to: by, frame });
            }
            self.balance(&class, ceiling, effects);
        }
    }

    /// A runner has had no task for some time: it ends. What was wanted until now is out of date.
    pub(crate) fn idle(
        &mut self,
        member: RankId,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let Some(class) = self.leave(member, effects) else { return };
        if let Some(demand) = self.classes.get_mut(&class) {
            demand.forget_wants();
        }
        self.balance(&class, ceiling, effects);
    }

    /// A process that takes tasks takes no more, and ends after what it has started: its class.
    fn leave(&mut self, member: RankId, effects: &mut Vec<CoordinatorEffect>) -> Option<TaskClass> {
        let runner = self.of_job(member.job()).filter(|it| it.phase == RunnerPhase::Live { member })?;
        runner.phase = RunnerPhase::Leaving { job: member.job(), told: Some(member) };
        let class = runner.class.clone();
        if let Some(demand) = self.classes.get_mut(&class) {
            demand.leave(member);
            effects.extend(demand.callers().map(|to| CoordinatorEffect::Send {
                to,
                frame: FromCoordinator::RunnerLeaves { runner: member },
            }));
        }
        effects.push(CoordinatorEffect::Send { to: member, frame: FromCoordinator::End });
        Some(class)
    }

    /// The application is over: all runners end.
    pub(crate) fn end_all(&mut self, ceiling: &mut Ceiling, effects: &mut Vec<CoordinatorEffect>) {
        self.classes.values_mut().for_each(ClassDemand::forget_wants);
        let all: Vec<TaskRunnerNumber> = self.all.keys().copied().collect();
        for number in all {
            let Some(TaskRunner { class, phase }) = self.all.get(&number) else { continue };
            match phase {
                RunnerPhase::Live { member } => self.idle(*member, ceiling, effects),
                RunnerPhase::Queued | RunnerPhase::Submitting | RunnerPhase::Waiting { .. } => {
                    if let Some(demand) = self.classes.get_mut(class) {
                        demand.give_up(number);
                    }
                    self.cancel(number, ceiling, effects);
                }
                RunnerPhase::Unwanted | RunnerPhase::Leaving { .. } => {}
            }
        }
    }

    /// The ceiling leaves room for a runner.
    pub(crate) fn admitted(&mut self, number: TaskRunnerNumber, effects: &mut Vec<CoordinatorEffect>) {
        if let Some(runner) = self.all.get_mut(&number) {
            runner.phase = RunnerPhase::Submitting;
            let class = runner.class.clone();
            effects.push(CoordinatorEffect::SubmitTaskRunner { runner: number, class });
        }
    }

    /// The head has answered a submission.
    pub(crate) fn submitted(
        &mut self,
        number: TaskRunnerNumber,
        result: Result<JobId, String>,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let Some(runner) = self.all.get_mut(&number) else { return };
        let wanted = match runner.phase {
            RunnerPhase::Submitting => true,
            RunnerPhase::Unwanted => false,
            RunnerPhase::Queued
            | RunnerPhase::Waiting { .. }
            | RunnerPhase::Live { .. }
            | RunnerPhase::Leaving { .. } => return,
        };
        match result {
            Ok(job) if wanted => {
                self.jobs.insert(job, number);
                runner.phase = RunnerPhase::Waiting { job, history: History::NeverConnected };
            }
            Ok(job) => {
                self.jobs.insert(job, number);
                runner.phase = RunnerPhase::Leaving { job, told: None };
                effects.push(CoordinatorEffect::CancelRunner { job });
            }
            Err(text) => {
                let class = runner.class.clone();
                self.remove(number, ceiling);
                if let Some(demand) = self.classes.get_mut(&class).filter(|_| wanted) {
                    demand.give_up(number);
                    demand.refused(&class, &text, effects);
                }
                self.balance_all(ceiling, effects);
            }
        }
    }

    /// A member is connected and all earlier attempts have ended: it serves, if its job is that of a runner.
    pub(crate) fn serve(
        &mut self,
        member: RankId,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let Some(number) = self.jobs.get(&member.job()).copied() else { return };
        let Some(runner) = self.all.get_mut(&number) else { return };
        if !matches!(runner.phase, RunnerPhase::Waiting { .. }) {
            return;
        }
        runner.phase = RunnerPhase::Live { member };
        let class = runner.class.clone();
        let frame = FromCoordinator::ServeTasks { class: class.clone() };
        effects.push(CoordinatorEffect::Send { to: member, frame });
        let demand = self.classes.entry(class.clone()).or_insert_with(ClassDemand::new);
        demand.join(number, member);
        effects.extend(demand.callers().map(|to| CoordinatorEffect::Send {
            to,
            frame: FromCoordinator::RunnerJoined { class: class.clone(), runner: member },
        }));
        self.balance(&class, ceiling, effects);
    }

    /// The process that was told to end and has done so, by this report: it has answered what it has started.
    pub(crate) fn ended_in_order(&self, job: JobId, report: &RunnerReport) -> Option<RankId> {
        let runner = self.all.get(self.jobs.get(&job)?)?;
        match (runner.phase, &report.state) {
            (RunnerPhase::Leaving { told, .. }, RunnerState::Ended { code: 0, .. }) => told,
            (
                RunnerPhase::Leaving { .. }
                | RunnerPhase::Queued
                | RunnerPhase::Submitting
                | RunnerPhase::Unwanted
                | RunnerPhase::Waiting { .. }
                | RunnerPhase::Live { .. },
                _,
            ) => None,
        }
    }

    /// The process of a runner cannot be reached by callers, nor will it: its job is cancelled. It may never
    /// have served.
    pub(crate) fn expel(&mut self, member: RankId, why: &str, effects: &mut Vec<CoordinatorEffect>) -> bool {
        let Some(number) = self.jobs.get(&member.job()).copied() else { return false };
        let Some(runner) = self.all.get_mut(&number) else { return false };
        let job = member.job();
        let left = std::mem::replace(&mut runner.phase, RunnerPhase::Leaving { job, told: None });
        let class = runner.class.clone();
        let demand = self.classes.entry(class.clone()).or_insert_with(ClassDemand::new);
        match left {
            RunnerPhase::Live { member } => demand.leave(member),
            RunnerPhase::Waiting { .. } => {
                demand.give_up(number);
                demand.died_early(&class, why, effects);
            }
            // It is cancelled already.
            RunnerPhase::Leaving { told: None, .. } => return true,
            RunnerPhase::Queued
            | RunnerPhase::Submitting
            | RunnerPhase::Unwanted
            | RunnerPhase::Leaving { told: Some(_), .. } => {}
        }
        effects.push(CoordinatorEffect::CancelRunner { job });
        true
    }

    /// The head has reported about a job.
    pub(crate) fn report(
        &mut self,
        job: JobId,
        report: &RunnerReport,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let Some(number) = self.jobs.get(&job).copied() else { return };
        let Some(runner) = self.all.get_mut(&number) else { return };
        let class = runner.class.clone();
        let demand = self.classes.entry(class.clone()).or_insert_with(ClassDemand::new);
        if let RunnerState::Ended { text, .. } = &report.state {
            match runner.phase {
                RunnerPhase::Live { member } => demand.leave(member),
                RunnerPhase::Waiting { history: History::Connected, .. } => demand.give_up(number),
                RunnerPhase::Waiting { history: History::NeverConnected, .. } => {
                    demand.give_up(number);
                    demand.died_early(&class, text, effects);
                }
                RunnerPhase::Queued
                | RunnerPhase::Submitting
                | RunnerPhase::Unwanted
                | RunnerPhase::Leaving { .. } => {}
            }
            self.jobs.remove(&job);
            self.remove(number, ceiling);
            return;
        }
        let has_ended = |member: RankId| member.attempt.attempt <= report.ended_attempts;
        match &mut runner.phase {
            RunnerPhase::Live { member } if has_ended(*member) => {
                demand.leave(*member);
                demand.expect(number);
                runner.phase = RunnerPhase::Waiting { job, history: History::Connected };
            }
            // The process that was told to end has ended otherwise: no further attempt is wanted.
            RunnerPhase::Leaving { told, .. } if told.is_some_and(has_ended) => {
                *told = None;
                effects.push(CoordinatorEffect::CancelRunner { job });
            }
            RunnerPhase::Live { .. }
            | RunnerPhase::Leaving { .. }
            | RunnerPhase::Waiting { .. }
            | RunnerPhase::Queued
            | RunnerPhase::Submitting
            | RunnerPhase::Unwanted => {}
        }
    }

    /// The time in which a surplus of runners is tolerated is over.
    pub(crate) fn surplus_over(
        &mut self,
        class: &TaskClass,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        if let Some(demand) = self.classes.get_mut(class) {
            demand.end_toleration();
            self.balance(class, ceiling, effects);
        }
    }

    /// A member has ended, and wants nothing any more.
    pub(crate) fn member_ended(&mut self, member: RankId) {
        self.classes.values_mut().for_each(|demand| demand.forget(member));
    }

    /// Submits or cancels runners of all classes, after a change that may concern any of them.
    pub(crate) fn balance_all(&mut self, ceiling: &mut Ceiling, effects: &mut Vec<CoordinatorEffect>) {
        let classes: Vec<TaskClass> = self.classes.keys().cloned().collect();
        classes.iter().for_each(|class| self.balance(class, ceiling, effects));
    }

    /// All runners, by class.
    pub(crate) fn describe(
        &self,
        ceiling: &Ceiling,
        nodes: &Nodes,
        reports: &BTreeMap<JobId, RunnerReport>,
    ) -> Vec<ClassDescription> {
        let mut classes: BTreeMap<&TaskClass, ClassDescription> = BTreeMap::new();
        let empty = |class: &TaskClass, wanted| {
            let (class, runners) = (class.clone(), Vec::new());
            ClassDescription { class, wanted, runners }
        };
        for (class, demand) in &self.classes {
            classes.insert(class, empty(class, demand.wanted() as u64));
        }
        for (number, runner) in &self.all {
            let class = classes.entry(&runner.class).or_insert_with(|| empty(&runner.class, 0));
            let shortage = || ceiling.shortage(runner.class.gpus);
            class.runners.push(runner.phase.describe(*number, shortage, nodes, reports));
        }
        classes.into_values().collect()
    }

    fn of_job(&mut self, job: JobId) -> Option<&mut TaskRunner> {
        self.all.get_mut(self.jobs.get(&job)?)
    }

    /// Cancels runners that nobody wants, newest first, or submits more.
    fn balance(&mut self, class: &TaskClass, ceiling: &mut Ceiling, effects: &mut Vec<CoordinatorEffect>) {
        let Some(demand) = self.classes.get_mut(class) else { return };
        let surplus = demand.take_surplus(class, effects);
        let more = demand.growth().min(MAX_TASK_RUNNERS.saturating_sub(self.all.len()));
        for _ in 0..more {
            self.last = TaskRunnerNumber(self.last.0 + 1);
            demand.expect(self.last);
            let runner = TaskRunner { class: class.clone(), phase: RunnerPhase::Queued };
            self.all.insert(self.last, runner);
            ceiling.wait(Claimant::TaskRunner(self.last), class.gpus);
        }
        if demand.is_unused() {
            self.classes.remove(class);
        }
        surplus.into_iter().for_each(|number| self.cancel(number, ceiling, effects));
    }

    /// A runner that does not serve is not wanted any more.
    fn cancel(
        &mut self,
        number: TaskRunnerNumber,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let Some(runner) = self.all.get_mut(&number) else { return };
        match runner.phase {
            RunnerPhase::Queued => self.remove(number, ceiling),
            RunnerPhase::Submitting => runner.phase = RunnerPhase::Unwanted,
            RunnerPhase::Waiting { job, .. } => {
                runner.phase = RunnerPhase::Leaving { job, told: None };
                effects.push(CoordinatorEffect::CancelRunner { job });
            }
            RunnerPhase::Unwanted | RunnerPhase::Live { .. } | RunnerPhase::Leaving { .. } => {}
        }
    }

    /// Forgets a runner that has no job, or whose job has ended.
    fn remove(&mut self, number: TaskRunnerNumber, ceiling: &mut Ceiling) {
        let Some(runner) = self.all.remove(&number) else { return };
        if runner.phase == RunnerPhase::Queued {
            ceiling.withdraw(Claimant::TaskRunner(number));
        } else {
            ceiling.give_back(runner.class.gpus);
        }
    }
}

impl RunnerPhase {
    fn describe(
        self,
        runner: TaskRunnerNumber,
        shortage: impl FnOnce() -> String,
        nodes: &Nodes,
        reports: &BTreeMap<JobId, RunnerReport>,
    ) -> RunnerDescription {
        let pending = |why: &str| RunnerCondition::Pending { why: why.to_owned() };
        let (job, state) = match self {
            RunnerPhase::Queued => (None, RunnerCondition::Pending { why: shortage() }),
            RunnerPhase::Submitting => (None, pending("it is being submitted")),
            RunnerPhase::Unwanted => (None, RunnerCondition::Leaving),
            RunnerPhase::Live { member } => (Some(member.job()), RunnerCondition::Live { member }),
            RunnerPhase::Leaving { job, told: _ } => (Some(job), RunnerCondition::Leaving),
            RunnerPhase::Waiting { job, .. } => {
                let why = match reports.get(&job).map(|report| &report.state) {
                    Some(RunnerState::Waiting { why, .. }) => why,
                    Some(RunnerState::Live | RunnerState::Ended { .. }) => "its process starts",
                    None => "it was submitted",
                };
                (Some(job), pending(why))
            }
        };
        let node = match self {
            RunnerPhase::Live { member } | RunnerPhase::Leaving { told: Some(member), .. } => {
                Some(nodes.of(member))
            }
            RunnerPhase::Queued
            | RunnerPhase::Submitting
            | RunnerPhase::Unwanted
            | RunnerPhase::Waiting { .. }
            | RunnerPhase::Leaving { told: None, .. } => None,
        };
        RunnerDescription { runner, job, node, state }
    }
}
