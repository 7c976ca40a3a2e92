//! The coordinator of an application: its members, its actors, and who holds what. Its objects are in
//! `coordinator_objects`.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{AttemptId, JobId, Share};

use crate::actor_spec::ActorSpec;
use crate::actors::Actors;
use crate::ceiling::{Admission, Ceiling, Claimant};
use crate::coordinator_effect::CoordinatorEffect;
use crate::deadlocks::Deadlocks;
use crate::describe_application::{CoordinatorParts, describe_application};
use crate::descriptions::{ApplicationDescription, MemberTopic};
use crate::directory::Directory;
use crate::errors::CreateError;
use crate::frames::{FromCoordinator, ToCoordinator};
use crate::held::HeldId;
use crate::holders::{Holders, Unheld};
use crate::ids::{ActorId, RequestNumber, TaskRunnerNumber};
use crate::mains::Mains;
use crate::object_value::Carried;
use crate::runner_report::{RunnerReport, RunnerState};
use crate::task_class::TaskClass;
use crate::task_runners::TaskRunners;

/// The state of an application.
#[derive(Debug)]
pub struct Coordinator {
    /// The coordinator itself: it holds the handles in constructor arguments.
    pub(crate) own: AttemptId,
    /// Connected members that have not ended.
    pub(crate) members: BTreeSet<AttemptId>,
    /// The last reports about jobs that have not ended.
    reports: BTreeMap<JobId, RunnerReport>,
    /// The last reports about jobs whose submission was not answered yet.
    unclaimed: BTreeMap<JobId, RunnerReport>,
    ended_jobs: BTreeSet<JobId>,
    holders: Holders,
    pub(crate) directory: Directory,
    ceiling: Ceiling,
    actors: Actors,
    task_runners: TaskRunners,
    deadlocks: Deadlocks,
    mains: Mains,
    exit: ExitStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExitStatus {
    NotYet,
    Ordered,
}

impl Coordinator {
    /// An application without members. `own` is the attempt of the root, `ceiling` its `max_gpus`, `capacity`
    /// the GPUs of its node.
    #[must_use]
    pub fn new(own: AttemptId, ceiling: Option<Share>, capacity: Option<Share>) -> Coordinator {
        Coordinator {
            own,
            members: BTreeSet::new(),
            reports: BTreeMap::new(),
            unclaimed: BTreeMap::new(),
            ended_jobs: BTreeSet::new(),
            holders: Holders::default(),
            directory: Directory::new(),
            ceiling: Ceiling::new(ceiling, capacity),
            actors: Actors::new(),
            task_runners: TaskRunners::new(),
            deadlocks: Deadlocks::new(ceiling, capacity),
            mains: Mains::default(),
            exit: ExitStatus::NotYet,
        }
    }

    /// A runner that runs `main` was submitted: by this coordinator the first one, by launchers all others.
    /// Saying so again changes nothing.
    pub fn main(&mut self, job: JobId, effects: &mut Vec<CoordinatorEffect>) {
        if !self.ended_jobs.contains(&job) && !self.mains.contains(job) {
            self.mains.add(job);
            self.claim(job, effects);
        }
    }

    /// Whether a connection from this member is let in: one that has ended is not.
    #[must_use]
    pub fn admits(&self, member: AttemptId) -> bool {
        let ended = self.reports.get(&member.job).map_or(0, |report| report.ended_attempts);
        !self.ended_jobs.contains(&member.job) && member.attempt > ended
    }

    /// A member has connected, for the first time or again.
    pub fn connected(&mut self, member: AttemptId, effects: &mut Vec<CoordinatorEffect>) {
        if self.admits(member) {
            self.members.insert(member);
            self.construct(member.job, effects);
        } else {
            effects.push(CoordinatorEffect::Close { member });
        }
    }

    /// A member has sent a frame.
    pub fn received(&mut self, from: AttemptId, frame: ToCoordinator, effects: &mut Vec<CoordinatorEffect>) {
        if !self.members.contains(&from) {
            return;
        }
        match frame {
            ToCoordinator::Create { request, spec, carries } => {
                let result = self.create(from, spec, carries);
                let frame = FromCoordinator::Created { request, result };
                effects.push(CoordinatorEffect::Send { to: from, frame });
                self.admit(effects);
            }
            ToCoordinator::Find { request, name } => self.find(from, request, &name, effects),
            ToCoordinator::Stop { request, actor } => {
                let unneeded = self.actors.stop(actor, (from, request), &mut self.ceiling, effects);
                self.settle(unneeded, Unheld(vec![HeldId::Actor(actor)]), effects);
            }
            ToCoordinator::Watch { actor } => self.actors.watch(actor, from, effects),
            ToCoordinator::Lend { held, to } => {
                // Nobody lends to a member of whose end it has heard, but a lend may be under way.
                if self.members.contains(&to) || self.holders.awaits(to) {
                    let unheld = self.holders.lend(held, from, to);
                    self.settle(Vec::new(), unheld, effects);
                }
            }
            ToCoordinator::Release { held, settled } => {
                if let HeldId::Actor(actor) = held {
                    self.actors.unwatch(actor, from);
                }
                let unheld = self.holders.release(held, from, &settled);
                self.settle(Vec::new(), unheld, effects);
            }
            ToCoordinator::Closed { member, settled } => {
                let Unheld(mut unheld) = self.holders.close(member, from, &settled, self.own);
                unheld.extend(self.unasked());
                self.settle(Vec::new(), Unheld(unheld), effects);
            }
            ToCoordinator::Object(report) => self.received_object(from, report, effects),
            ToCoordinator::Constructed { incarnation } => {
                self.actors.constructed(from, incarnation, effects);
            }
            ToCoordinator::WantRunners { class, runners } => {
                self.task_runners.want(from, class, runners, &mut self.ceiling, effects);
                self.admit(effects);
            }
            ToCoordinator::Idle => {
                self.task_runners.idle(from, &mut self.ceiling, effects);
                self.admit(effects);
            }
            ToCoordinator::Blocked { needs } => self.runner_blocked(from, needs, effects),
            ToCoordinator::StillBlocked { probe } => self.deadlocks.answered(from, probe, effects),
            ToCoordinator::Description { request, description } => {
                effects.push(CoordinatorEffect::Described { member: from, request, description });
            }
            ToCoordinator::ConstructorFailed { text } => {
                let unneeded = self.actors.constructor_failed(from, text, &mut self.ceiling, effects);
                self.settle(unneeded, Unheld::default(), effects);
            }
        }
    }

    /// The head has answered a submission: with the job, or with the text of its refusal.
    pub fn submitted(
        &mut self,
        actor: ActorId,
        result: Result<JobId, String>,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let job = result.as_ref().ok().copied();
        let unneeded = self.actors.submitted(actor, result, &mut self.ceiling, effects);
        self.settle(unneeded, Unheld(vec![HeldId::Actor(actor)]), effects);
        if let Some(job) = job {
            self.claim(job, effects);
            self.construct(job, effects);
        }
    }

    /// The head has reported about the job of a runner, perhaps before the answer to its submission came.
    pub fn report(&mut self, job: JobId, report: RunnerReport, effects: &mut Vec<CoordinatorEffect>) {
        if self.ended_jobs.contains(&job) {
            return;
        }
        let actor = self.actors.of_job(job);
        if actor.is_none() && !self.mains.contains(job) && !self.task_runners.is_runner(job) {
            self.unclaimed.insert(job, report);
            return;
        }
        let ended = match report.state {
            RunnerState::Ended { code, .. } => {
                self.mains.ended(job, code);
                self.ended_jobs.insert(job);
                u32::MAX
            }
            RunnerState::Waiting { .. } | RunnerState::Live => report.ended_attempts,
        };
        let unneeded = self.actors.report(job, &report, &mut self.ceiling, effects);
        let in_order = self.task_runners.ended_in_order(job, &report);
        self.task_runners.report(job, &report, &mut self.ceiling, effects);
        if ended == u32::MAX {
            self.reports.remove(&job);
        } else {
            self.reports.insert(job, report);
        }
        let mut unheld: Vec<HeldId> = actor.into_iter().map(HeldId::Actor).collect();
        let gone: Vec<AttemptId> = self.members.range(job.attempt(0)..=job.attempt(ended)).copied().collect();
        for member in gone {
            if in_order == Some(member) {
                self.tell_others(member, FromCoordinator::RunnerEnded { runner: member }, effects);
            }
            unheld.extend(self.end_member(member, effects).0);
            unheld.extend(self.unasked());
        }
        self.task_runners.balance_all(&mut self.ceiling, effects);
        self.settle(unneeded, Unheld(unheld), effects);
        self.construct(job, effects);
    }

    /// The head has answered the submission of a runner of tasks: with the job, or with the text of its
    /// refusal.
    pub fn task_runner_submitted(
        &mut self,
        runner: TaskRunnerNumber,
        result: Result<JobId, String>,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let job = result.as_ref().ok().copied();
        self.task_runners.submitted(runner, result, &mut self.ceiling, effects);
        if let Some(job) = job {
            self.claim(job, effects);
            self.construct(job, effects);
        }
        self.admit(effects);
    }

    /// A process that was told to end has had time for it. If its job has not ended, it is cancelled.
    pub fn patience_over(&mut self, job: JobId, effects: &mut Vec<CoordinatorEffect>) {
        self.actors.patience_over(job, effects);
    }

    /// Runners of a class that are on their way beyond what is wanted have been tolerated for some time.
    pub fn surplus_over(&mut self, class: &TaskClass, effects: &mut Vec<CoordinatorEffect>) {
        self.task_runners.surplus_over(class, &mut self.ceiling, effects);
        self.admit(effects);
    }

    /// The application as it is now.
    #[must_use]
    pub fn describe(&self) -> ApplicationDescription {
        describe_application(&CoordinatorParts {
            actors: &self.actors,
            task_runners: &self.task_runners,
            holders: &self.holders,
            ceiling: &self.ceiling,
            reports: &self.reports,
        })
    }

    /// Asks all members to describe themselves: who was asked. The answers come as `Described`.
    pub fn ask_members(
        &self,
        request: RequestNumber,
        topic: MemberTopic,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> BTreeSet<AttemptId> {
        let frame = FromCoordinator::Describe { request, topic };
        let send = |to: &AttemptId| CoordinatorEffect::Send { to: *to, frame: frame.clone() };
        effects.extend(self.members.iter().map(send));
        self.members.clone()
    }

    /// Whether nothing is left: no actor, no runner of tasks, no object, and no counter of a handle.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let holds = self.holders.len() > 0 || !self.directory.is_empty();
        self.actors.len() == 0 && self.task_runners.is_empty() && !holds
    }

    /// The coordinator lends something. No release of it has come before: nothing is unheld by this.
    pub(crate) fn lend(&mut self, held: HeldId, to: AttemptId) {
        self.holders.lend(held, self.own, to);
    }

    /// It is known what a job is for: what was reported about it counts now.
    fn claim(&mut self, job: JobId, effects: &mut Vec<CoordinatorEffect>) {
        if let Some(report) = self.unclaimed.remove(&job) {
            self.report(job, report, effects);
        }
    }

    fn create(
        &mut self,
        creator: AttemptId,
        spec: ActorSpec,
        carries: Vec<Carried>,
    ) -> Result<ActorId, CreateError> {
        let lent: Vec<HeldId> = carries.iter().filter_map(Carried::lent).collect();
        let is_unknown = |held: &&HeldId| matches!(held, HeldId::Actor(_)) && !self.holders.is_held(**held);
        if let Some(unknown) = lent.iter().find(is_unknown) {
            return Err(CreateError::UnknownHandle(*unknown));
        }
        let actor = self.actors.create(spec, carries, &mut self.ceiling)?;
        let own = self.own;
        lent.into_iter().for_each(|held| self.lend(held, own));
        self.lend(HeldId::Actor(actor), creator);
        Ok(actor)
    }

    fn find(
        &mut self,
        to: AttemptId,
        request: RequestNumber,
        name: &str,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let actor = self.actors.find(name);
        if let Some(actor) = actor {
            self.lend(HeldId::Actor(actor), to);
        }
        effects.push(CoordinatorEffect::Send { to, frame: FromCoordinator::Found { request, actor } });
    }

    /// Constructs the actor of a job, or lets it serve tasks, if its next member is here and the head says
    /// that all before it have ended.
    fn construct(&mut self, job: JobId, effects: &mut Vec<CoordinatorEffect>) {
        let ended = self.reports.get(&job).map_or(0, |report| report.ended_attempts);
        let member = job.attempt(ended.saturating_add(1));
        if !self.members.contains(&member) {
            return;
        }
        self.task_runners.serve(member, &mut self.ceiling, effects);
        self.admit(effects);
        let carries = self.actors.construct(member, effects).unwrap_or_default();
        let lent: Vec<HeldId> = carries.iter().filter_map(Carried::lent).collect();
        lent.into_iter().for_each(|held| self.lend(held, member));
    }

    fn tell_others(&self, member: AttemptId, frame: FromCoordinator, effects: &mut Vec<CoordinatorEffect>) {
        let others = self.members.iter().filter(|other| **other != member);
        effects.extend(others.map(|to| CoordinatorEffect::Send { to: *to, frame: frame.clone() }));
    }

    fn end_member(&mut self, member: AttemptId, effects: &mut Vec<CoordinatorEffect>) -> Unheld {
        self.members.remove(&member);
        effects.push(CoordinatorEffect::Close { member });
        self.actors.member_ended(member);
        self.task_runners.member_ended(member);
        self.deadlocks.forget(member);
        self.directory.member_ended(member, effects);
        self.tell_others(member, FromCoordinator::MemberEnded { member }, effects);
        self.holders.member_ended(member, &self.members)
    }

    /// References without a value that nobody may hold, once it is known who holds what: those who asked for
    /// them have ended, as those who were to say what they are.
    fn unasked(&self) -> Vec<HeldId> {
        if self.holders.awaits_any() {
            return Vec::new();
        }
        self.directory.failed().map(HeldId::Object).collect()
    }

    /// The task of a runner keeps its GPUs and needs other runners before it goes on, or goes on.
    fn runner_blocked(
        &mut self,
        runner: AttemptId,
        needs: Vec<TaskClass>,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let Some(class) = self.task_runners.class_of(runner).cloned() else { return };
        let is_blocked = !needs.is_empty();
        self.deadlocks.report(runner, class.clone(), needs);
        self.task_runners.block(&class, (runner, is_blocked), &mut self.ceiling, effects);
        self.ceiling.reconsider();
        self.admit(effects);
    }

    /// Submits what the ceiling leaves room for, and looks for tasks for which it never will.
    fn admit(&mut self, effects: &mut Vec<CoordinatorEffect>) {
        let (runners, deadlocks) = (&self.task_runners, &self.deadlocks);
        let is_urgent = |claimant| match claimant {
            Claimant::TaskRunner(runner) => runners.class(runner).is_some_and(|class| deadlocks.needs(class)),
            Claimant::Actor(_) => false,
        };
        for admission in self.ceiling.admit(is_urgent) {
            match admission {
                Admission::Granted(Claimant::Actor(id)) => self.actors.admitted(id, effects),
                Admission::Granted(Claimant::TaskRunner(runner)) => {
                    self.task_runners.admitted(runner, effects)
                }
                Admission::Waits { claimant: Claimant::Actor(id), why } => {
                    self.actors.waits(id, why, effects);
                }
                Admission::Waits { claimant: Claimant::TaskRunner(_), why: _ } => {}
            }
        }
        self.deadlocks.ask(|class| self.task_runners.supply(class), effects);
    }

    /// Lets go of handles that the coordinator held, ends or forgets what nobody holds, and goes on with
    /// what that makes possible.
    fn settle(
        &mut self,
        unneeded: Vec<HeldId>,
        Unheld(mut unheld): Unheld,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let own = self.own;
        let let_go = |holders: &mut Holders, unneeded: Vec<HeldId>, unheld: &mut Vec<HeldId>| {
            unheld.extend(unneeded.into_iter().flat_map(|it| holders.release(it, own, &[(own, 1)]).0));
        };
        let_go(&mut self.holders, unneeded, &mut unheld);
        while let Some(held) = unheld.pop() {
            if self.holders.is_held(held) {
                continue;
            }
            let unneeded = match held {
                HeldId::Actor(actor) => self.actors.unheld(actor, &mut self.ceiling, effects),
                HeldId::Object(object) => {
                    let maker = object.maker;
                    let has_ended = !self.members.contains(&maker) && !self.holders.awaits(maker);
                    self.directory.unheld(object, has_ended, effects)
                }
            };
            let_go(&mut self.holders, unneeded, &mut unheld);
        }
        for maker in self.holders.take_closed() {
            let keep = self.holders.objects_of(maker);
            effects.push(CoordinatorEffect::ForgetMaker { maker, keep });
        }
        self.admit(effects);
        if let Some(code) = self.mains.exit_code().filter(|_| self.actors.detached() == 0)
            && self.exit == ExitStatus::NotYet
        {
            self.exit = ExitStatus::Ordered;
            effects.push(CoordinatorEffect::Exit { code });
        }
    }
}
