//! The coordinator of an application: its members, its actors, and who holds what. Its objects are in
//! `coordinator_objects` and `coordinator_stores`, its nodes in `coordinator_nodes`.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{AttemptId, JobId, RankId, Share};

use crate::actor_spec::GangSpec;
use crate::actors::Actors;
use crate::ceiling::{Admission, Ceiling, Claimant};
use crate::coordinator_effect::CoordinatorEffect;
use crate::coordinator_end::ApplicationEnd;
use crate::deadlocks::Deadlocks;
use crate::describe_application::{CoordinatorParts, describe_application};
use crate::descriptions::{ApplicationDescription, MemberTopic};
use crate::directory::Directory;
use crate::errors::CreateError;
use crate::fetches::Fetches;
use crate::frames::{FromCoordinator, ToCoordinator};
use crate::held::HeldId;
use crate::holders::{Holders, Unheld};
use crate::ids::{ActorId, ClosingNumber, NodeNumber, ObjectId, RequestNumber, TaskRunnerNumber};
use crate::lineages::Lineages;
use crate::mains::Mains;
use crate::node_frames::ToStore;
use crate::nodes::{CoordinatorNode, Nodes};
use crate::object_value::Carried;
use crate::runner_report::{RunnerReport, RunnerState};
use crate::runner_yields::RunnerYields;
use crate::task_class::TaskClass;
use crate::task_runners::TaskRunners;

/// The state of an application.
#[derive(Debug)]
pub struct Coordinator {
    /// The coordinator itself: it holds the handles in constructor arguments.
    pub(crate) own: RankId,
    /// Connected members that have not ended.
    pub(crate) members: BTreeSet<RankId>,
    /// Processes that have not ended for certain and are let in no more, with their nodes.
    pub(crate) expelled: BTreeMap<RankId, NodeNumber>,
    /// The last reports about jobs that have not ended.
    pub(crate) reports: BTreeMap<JobId, RunnerReport>,
    /// The last reports about jobs whose submission was not answered yet.
    pub(crate) unclaimed: BTreeMap<JobId, RunnerReport>,
    ended_jobs: BTreeSet<JobId>,
    pub(crate) holders: Holders,
    pub(crate) directory: Directory,
    pub(crate) nodes: Nodes,
    pub(crate) fetches: Fetches,
    pub(crate) lineages: Lineages,
    /// Objects that are wanted and of which members were asked whether they have said everything: who has not
    /// answered.
    pub(crate) inquiries: BTreeMap<ObjectId, BTreeSet<RankId>>,
    pub(crate) ceiling: Ceiling,
    pub(crate) actors: Actors,
    pub(crate) task_runners: TaskRunners,
    pub(crate) yields: RunnerYields,
    deadlocks: Deadlocks,
    pub(crate) mains: Mains,
    pub(crate) end: ApplicationEnd,
    pub(crate) last_closing: ClosingNumber,
}

impl Coordinator {
    /// An application without members. `own` is the attempt of the root, which runs on this node; `ceiling`
    /// is its `max_gpus`, `capacity` the GPUs of all nodes.
    #[must_use]
    pub fn new(
        own: RankId,
        node: CoordinatorNode,
        ceiling: Option<Share>,
        capacity: Option<Share>,
    ) -> Coordinator {
        Coordinator {
            own,
            members: BTreeSet::new(),
            expelled: BTreeMap::new(),
            reports: BTreeMap::new(),
            unclaimed: BTreeMap::new(),
            ended_jobs: BTreeSet::new(),
            holders: Holders::default(),
            directory: Directory::new(),
            nodes: Nodes::new(node),
            fetches: Fetches::default(),
            lineages: Lineages::default(),
            inquiries: BTreeMap::new(),
            ceiling: Ceiling::new(ceiling, capacity),
            actors: Actors::new(),
            task_runners: TaskRunners::new(),
            yields: RunnerYields::default(),
            deadlocks: Deadlocks::new(ceiling, capacity),
            mains: Mains::default(),
            end: ApplicationEnd::NotYet,
            last_closing: ClosingNumber(0),
        }
    }

    /// A runner that runs `main` was submitted: by this coordinator the first one, by launchers all others.
    /// Saying so again changes nothing.
    pub fn main(&mut self, job: JobId, effects: &mut Vec<CoordinatorEffect>) {
        let from = effects.len();
        if !self.ended_jobs.contains(&job) && !self.mains.contains(job) {
            self.mains.add(job);
            self.claim(job, effects);
        }
        self.nodes.introduce(from, effects);
    }

    /// Whether a connection from this member is let in: one that has ended is not.
    #[must_use]
    pub fn admits(&self, member: RankId) -> bool {
        let ended = self.reports.get(&member.job()).map_or(0, |report| report.ended_attempts);
        let may_live = !self.ended_jobs.contains(&member.job()) && member.attempt.attempt > ended;
        let is_over = self.end == ApplicationEnd::Ordered;
        may_live && !is_over && !self.expelled.contains_key(&member)
    }

    /// A member has sent a frame.
    pub fn received(&mut self, from: RankId, frame: ToCoordinator, effects: &mut Vec<CoordinatorEffect>) {
        let first = effects.len();
        if self.members.contains(&from) {
            self.take_frame(from, frame, effects);
        }
        self.nodes.introduce(first, effects);
    }

    fn take_frame(&mut self, from: RankId, frame: ToCoordinator, effects: &mut Vec<CoordinatorEffect>) {
        match frame {
            ToCoordinator::Create { request, gang, carries } => {
                let result = self.create(from, gang, carries);
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
                self.seek_missed(effects);
            }
            ToCoordinator::Object(report) => self.received_object(from, report, effects),
            ToCoordinator::Store(frame) => self.store_speaks(from, frame, effects),
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
        let from = effects.len();
        let job = result.as_ref().ok().copied();
        let unneeded = self.actors.submitted(actor, result, &mut self.ceiling, effects);
        self.settle(unneeded, Unheld(vec![HeldId::Actor(actor)]), effects);
        if let Some(job) = job {
            self.claim(job, effects);
            self.construct(job, effects);
        }
        self.nodes.introduce(from, effects);
    }

    /// The head has reported about the job of a runner, perhaps before the answer to its submission came.
    pub fn report(&mut self, job: JobId, report: RunnerReport, effects: &mut Vec<CoordinatorEffect>) {
        let from = effects.len();
        self.take_report(job, report, effects);
        self.nodes.introduce(from, effects);
    }

    fn take_report(&mut self, job: JobId, report: RunnerReport, effects: &mut Vec<CoordinatorEffect>) {
        if self.ended_jobs.contains(&job) {
            return;
        }
        let actor = self.actors.of_job(job);
        if !self.is_claimed(job) {
            self.unclaimed.insert(job, report);
            return;
        }
        self.forget_unheard(job, report.ended_attempts, effects);
        let ended = match report.state {
            RunnerState::Ended { code, .. } => {
                self.mains.ended(job, code);
                self.ended_jobs.insert(job);
                self.expelled.retain(|member, _| member.job() != job);
                u32::MAX
            }
            RunnerState::Waiting { .. } | RunnerState::Live => report.ended_attempts,
        };
        let mut unneeded = self.actors.report(job, &report, &mut self.ceiling, effects);
        let in_order = self.task_runners.ended_in_order(job, &report);
        self.task_runners.report(job, &report, &mut self.ceiling, effects);
        let store = self.nodes.report(job, &report);
        if ended == u32::MAX {
            self.reports.remove(&job);
        } else {
            self.reports.insert(job, report);
        }
        let mut unheld: Vec<HeldId> = actor.into_iter().map(HeldId::Actor).collect();
        let gone: Vec<RankId> =
            self.members.range(job.attempt(0).rank(0)..=job.attempt(ended).rank(u32::MAX)).copied().collect();
        for member in gone {
            if in_order == Some(member) {
                self.tell_others(member, FromCoordinator::RunnerEnded { runner: member }, effects);
            }
            unheld.extend(self.end_member(member, effects).0);
            unheld.extend(self.unasked());
        }
        unheld.extend(self.store_changed(store, &mut unneeded, effects).0);
        self.task_runners.balance_all(&mut self.ceiling, effects);
        self.make_room(effects);
        self.settle(unneeded, Unheld(unheld), effects);
        self.construct(job, effects);
        self.seek_missed(effects);
    }

    /// The head has answered the submission of a runner of tasks: with the job, or with the text of its
    /// refusal.
    pub fn task_runner_submitted(
        &mut self,
        runner: TaskRunnerNumber,
        result: Result<JobId, String>,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let from = effects.len();
        let job = result.as_ref().ok().copied();
        self.task_runners.submitted(runner, result, &mut self.ceiling, effects);
        if let Some(job) = job {
            self.claim(job, effects);
            self.construct(job, effects);
        }
        self.admit(effects);
        self.nodes.introduce(from, effects);
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
            nodes: &self.nodes,
            fetches: &self.fetches,
            reports: &self.reports,
        })
    }

    /// Asks all members to describe themselves: who was asked. The answers come as `Described`.
    pub fn ask_members(
        &self,
        request: RequestNumber,
        topic: MemberTopic,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> BTreeSet<RankId> {
        let frame = FromCoordinator::Describe { request, topic };
        let send = |to: &RankId| CoordinatorEffect::Send { to: *to, frame: frame.clone() };
        effects.extend(self.members.iter().map(send));
        self.members.clone()
    }

    /// Whether nothing is left: no actor, no runner of tasks, no object, and no counter of a handle. Stores
    /// may still run.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let objects = !self.directory.is_empty() || !self.fetches.is_empty() || !self.lineages.is_empty();
        let holds = self.holders.len() > 0 || objects;
        self.actors.is_empty() && self.task_runners.is_empty() && !holds
    }

    /// The coordinator lends something. No release of it has come before: nothing is unheld by this.
    pub(crate) fn lend(&mut self, held: HeldId, to: RankId) {
        self.holders.lend(held, self.own, to);
    }

    /// Whether it is known what a job is for.
    pub(crate) fn is_claimed(&self, job: JobId) -> bool {
        let has_code = self.actors.of_job(job).is_some() || self.task_runners.is_runner(job);
        has_code || self.mains.contains(job) || self.nodes.is_store(job)
    }

    /// It is known what a job is for: what was reported about it counts now.
    pub(crate) fn claim(&mut self, job: JobId, effects: &mut Vec<CoordinatorEffect>) {
        if let Some(report) = self.unclaimed.remove(&job) {
            self.take_report(job, report, effects);
        }
    }

    fn create(
        &mut self,
        creator: RankId,
        gang: GangSpec,
        carries: Vec<Vec<Carried>>,
    ) -> Result<ActorId, CreateError> {
        let lent: Vec<HeldId> = carries.iter().flatten().filter_map(Carried::lent).collect();
        let is_unknown = |held: &&HeldId| matches!(held, HeldId::Actor(_)) && !self.holders.is_held(**held);
        if let Some(unknown) = lent.iter().find(is_unknown) {
            return Err(CreateError::UnknownHandle(*unknown));
        }
        let actors = self.actors.create(gang, carries, &mut self.ceiling)?;
        let own = self.own;
        lent.into_iter().for_each(|held| self.lend(held, own));
        actors.iter().for_each(|actor| self.lend(HeldId::Actor(*actor), creator));
        Ok(actors[0])
    }

    fn find(&mut self, to: RankId, request: RequestNumber, name: &str, effects: &mut Vec<CoordinatorEffect>) {
        let actor = self.actors.find(name);
        if let Some(actor) = actor {
            self.lend(HeldId::Actor(actor), to);
        }
        effects.push(CoordinatorEffect::Send { to, frame: FromCoordinator::Found { request, actor } });
    }

    /// The attempt of a job whose processes may do something: the head says that all before it have ended.
    pub(crate) fn next_attempt(&self, job: JobId) -> AttemptId {
        let ended = self.reports.get(&job).map_or(0, |report| report.ended_attempts);
        job.attempt(ended.saturating_add(1))
    }

    /// Constructs the actors of a job, or lets it serve tasks, where its next members are here and others
    /// reach them.
    pub(crate) fn construct(&mut self, job: JobId, effects: &mut Vec<CoordinatorEffect>) {
        let next = self.next_attempt(job);
        let here = self.members.range(next.rank(0)..=next.rank(u32::MAX));
        let here: Vec<RankId> = here.copied().collect();
        here.into_iter().for_each(|member| self.begin(member, effects));
    }

    fn begin(&mut self, member: RankId, effects: &mut Vec<CoordinatorEffect>) {
        if self.nodes.is_store(member.job()) {
            return self.hear_store(member, effects);
        }
        if !self.nodes.is_served(self.nodes.of(member)) {
            return;
        }
        self.task_runners.serve(member, &mut self.ceiling, effects);
        self.admit(effects);
        let carries = self.actors.construct(member, effects).unwrap_or_default();
        let lent: Vec<HeldId> = carries.iter().filter_map(Carried::lent).collect();
        lent.into_iter().for_each(|held| self.lend(held, member));
    }

    fn tell_others(&self, member: RankId, frame: FromCoordinator, effects: &mut Vec<CoordinatorEffect>) {
        let others = self.members.iter().filter(|other| **other != member);
        effects.extend(others.map(|to| CoordinatorEffect::Send { to: *to, frame: frame.clone() }));
    }

    pub(crate) fn end_member(&mut self, member: RankId, effects: &mut Vec<CoordinatorEffect>) -> Unheld {
        self.members.remove(&member);
        effects.push(CoordinatorEffect::Close { member });
        self.actors.member_ended(member);
        self.task_runners.member_ended(member);
        self.deadlocks.forget(member);
        self.nodes.member_ended(member);
        self.lineages.member_gone(member);
        self.answer_for(member);
        self.directory.member_ended(member, effects);
        self.tell_others(member, FromCoordinator::MemberEnded { member }, effects);
        self.holders.member_ended(member, &self.members)
    }

    /// References without a value, and objects that can be made again, which nobody may hold, once it is
    /// known who holds what: those who asked for them have ended, as those who were to say what they are.
    pub(crate) fn unasked(&self) -> Vec<HeldId> {
        if self.holders.awaits_any() {
            return Vec::new();
        }
        let remembered = self.lineages.of_ended(&self.members);
        self.directory.failed().chain(remembered).map(HeldId::Object).collect()
    }

    /// The task of a runner keeps its GPUs and needs other runners before it goes on, or goes on.
    fn runner_blocked(
        &mut self,
        runner: RankId,
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
    pub(crate) fn admit(&mut self, effects: &mut Vec<CoordinatorEffect>) {
        while self.admit_once(effects) {
            self.make_room(effects);
        }
        self.deadlocks.ask(|class| self.task_runners.supply(class), effects);
    }

    /// Whether somebody was admitted, or waits for another reason than before.
    fn admit_once(&mut self, effects: &mut Vec<CoordinatorEffect>) -> bool {
        let (runners, deadlocks) = (&self.task_runners, &self.deadlocks);
        let is_urgent = |claimant| match claimant {
            Claimant::TaskRunner(runner) => runners.class(runner).is_some_and(|class| deadlocks.needs(class)),
            Claimant::Gang(_) => false,
        };
        let admissions = self.ceiling.admit(is_urgent);
        let has_changed = !admissions.is_empty();
        for admission in admissions {
            match admission {
                Admission::Granted(Claimant::Gang(id)) => self.actors.admitted(id, effects),
                Admission::Granted(Claimant::TaskRunner(runner)) => {
                    self.task_runners.admitted(runner, effects)
                }
                Admission::Waits { claimant: Claimant::Gang(id), why } => {
                    self.actors.waits(id, why, effects);
                }
                Admission::Waits { claimant: Claimant::TaskRunner(_), why: _ } => {}
            }
        }
        has_changed
    }

    /// Lets go of handles that the coordinator held, ends or forgets what nobody holds, and goes on with
    /// what that makes possible.
    pub(crate) fn settle(
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
        while let Some(held) = self.next_unheld(&mut unheld, effects) {
            let unneeded = match held {
                HeldId::Actor(actor) => {
                    let holders = &self.holders;
                    let is_held = |actor| holders.is_held(HeldId::Actor(actor));
                    self.actors.unheld(actor, is_held, &mut self.ceiling, effects)
                }
                HeldId::Object(object) => {
                    let maker = object.maker;
                    let has_ended = !self.members.contains(&maker) && !self.holders.awaits(maker);
                    self.object_unheld(object, has_ended, effects)
                }
            };
            let_go(&mut self.holders, unneeded, &mut unheld);
        }
        self.admit(effects);
        self.consider_end(effects);
    }

    /// The next thing that nobody holds. When everything is known that anybody got from a process that has
    /// ended, its objects are looked at once more, and its store forgets the others.
    fn next_unheld(
        &mut self,
        unheld: &mut Vec<HeldId>,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Option<HeldId> {
        loop {
            while let Some(held) = unheld.pop() {
                if !self.holders.is_held(held) && !self.may_be_held(held) {
                    return Some(held);
                }
            }
            let closed = self.holders.take_closed();
            if closed.is_empty() {
                return None;
            }
            for maker in closed {
                unheld.extend(self.directory.stored_of(maker).map(HeldId::Object));
                let frame = ToStore::Forget { maker, keep: self.holders.objects_of(maker) };
                self.nodes.tell_store(self.nodes.of(maker), frame, effects);
                self.nodes.forget(maker);
            }
        }
    }

    /// Whether somebody may hold a thing without a counter: its maker has ended before it told of all that
    /// it lent, and not everybody has said what came from it. That is so of objects that were made again.
    fn may_be_held(&self, held: HeldId) -> bool {
        held.object()
            .is_some_and(|object| self.holders.awaits(object.maker) && self.directory.is_stored(object))
    }
}
