//! The actors of the application: names, restarts, ends.
//!
//! An actor that ends in the eyes of its callers keeps its name and its share of GPUs until the head says
//! that its job has ended. An ended actor is remembered as long as somebody holds it.

use std::collections::BTreeMap;

use cohabit_types::{AttemptId, JobId};

use crate::actor_entry::{ActorEntry, Phase, Run};
use crate::actor_spec::{ActorSpec, ActorState, Lifetime};
use crate::ceiling::{Ceiling, Claimant};
use crate::coordinator_effect::CoordinatorEffect;
use crate::errors::{ActorEnd, CreateError};
use crate::frames::FromCoordinator;
use crate::held::HeldId;
use crate::ids::{ActorId, IncarnationNumber, RequestNumber};
use crate::limits::MAX_ACTORS;
use crate::object_value::Carried;
use crate::runner_report::{RunnerReport, RunnerState};

/// All actors that have not been forgotten.
#[derive(Debug)]
pub(crate) struct Actors {
    last: ActorId,
    all: BTreeMap<ActorId, ActorEntry>,
    names: BTreeMap<String, ActorId>,
    jobs: BTreeMap<JobId, ActorId>,
    /// Number of actors that have not ended.
    unended: usize,
    /// How many of them are detached.
    detached: usize,
}

/// What constructor arguments have in them and is no longer needed.
pub(crate) type Unneeded = Vec<HeldId>;

impl Actors {
    pub(crate) const fn new() -> Actors {
        Actors {
            last: ActorId(0),
            all: BTreeMap::new(),
            names: BTreeMap::new(),
            jobs: BTreeMap::new(),
            unended: 0,
            detached: 0,
        }
    }

    /// Creates an actor, which waits for the ceiling.
    pub(crate) fn create(
        &mut self,
        spec: ActorSpec,
        carries: Vec<Carried>,
        ceiling: &mut Ceiling,
    ) -> Result<ActorId, CreateError> {
        spec.check()?;
        if let Some(name) = spec.name.as_ref().filter(|name| self.names.contains_key(*name)) {
            return Err(CreateError::NameInUse { name: name.clone() });
        }
        if let Some(max_gpus) = ceiling.forbids(spec.gpus) {
            return Err(CreateError::AboveCeiling { gpus: spec.gpus, max_gpus });
        }
        if self.unended >= MAX_ACTORS {
            return Err(CreateError::TooManyActors);
        }
        self.last = ActorId(self.last.0 + 1);
        let id = self.last;
        self.unended += 1;
        self.detached += usize::from(spec.lifetime == Lifetime::Detached);
        if let Some(name) = &spec.name {
            self.names.insert(name.clone(), id);
        }
        ceiling.wait(Claimant::Actor(id), spec.gpus);
        self.all.insert(id, ActorEntry::new(id, spec, carries));
        Ok(id)
    }

    /// The ceiling leaves room for an actor.
    pub(crate) fn admitted(&mut self, id: ActorId, effects: &mut Vec<CoordinatorEffect>) {
        if let Some(actor) = self.all.get_mut(&id) {
            actor.change(effects, |actor| actor.phase = Phase::Submitting);
            effects.push(submission(actor));
        }
    }

    /// The ceiling leaves no room for an actor yet.
    pub(crate) fn waits(&mut self, id: ActorId, why: String, effects: &mut Vec<CoordinatorEffect>) {
        if let Some(actor) = self.all.get_mut(&id) {
            actor.change(effects, |actor| actor.phase = Phase::Queued { why });
        }
    }

    /// The live actor with this name.
    pub(crate) fn find(&self, name: &str) -> Option<ActorId> {
        let id = self.names.get(name)?;
        self.all.get(id).filter(|actor| actor.is_live()).map(|actor| actor.id)
    }

    pub(crate) fn watch(&mut self, id: ActorId, by: AttemptId, effects: &mut Vec<CoordinatorEffect>) {
        let known = self.all.get_mut(&id);
        let state = known.map_or(ActorState::Ended(ActorEnd::Stopped), |actor| {
            actor.watchers.insert(by);
            actor.state()
        });
        let frame = FromCoordinator::State { actor: id, state };
        effects.push(CoordinatorEffect::Send { to: by, frame });
    }

    pub(crate) fn unwatch(&mut self, id: ActorId, by: AttemptId) {
        if let Some(actor) = self.all.get_mut(&id) {
            actor.watchers.remove(&by);
        }
    }

    pub(crate) fn member_ended(&mut self, member: AttemptId) {
        for actor in self.all.values_mut() {
            actor.watchers.remove(&member);
            actor.stops.retain(|(by, _)| *by != member);
        }
    }

    /// Somebody stops an actor and waits for its end.
    pub(crate) fn stop(
        &mut self,
        id: ActorId,
        (by, request): (AttemptId, RequestNumber),
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        match self.all.get_mut(&id).filter(|actor| !actor.has_ended()) {
            Some(actor) => actor.stops.push((by, request)),
            None => {
                effects.push(CoordinatorEffect::Send { to: by, frame: FromCoordinator::Stopped { request } })
            }
        }
        self.end(id, ActorEnd::Stopped, ceiling, effects)
    }

    /// Nobody holds an actor any more: it ends, or is forgotten if it has ended.
    pub(crate) fn unheld(
        &mut self,
        id: ActorId,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let held = self.all.get(&id).is_some_and(|actor| actor.spec.lifetime == Lifetime::Held);
        let unneeded = if held { self.end(id, ActorEnd::Stopped, ceiling, effects) } else { Unneeded::new() };
        if self.all.get(&id).is_some_and(ActorEntry::has_ended) {
            self.all.remove(&id);
        }
        unneeded
    }

    /// The application is over: all actors end.
    pub(crate) fn end_all(
        &mut self,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let all: Vec<ActorId> = self.all.keys().copied().collect();
        all.into_iter().flat_map(|id| self.end(id, ActorEnd::Stopped, ceiling, effects)).collect()
    }

    /// The head has answered a submission.
    pub(crate) fn submitted(
        &mut self,
        id: ActorId,
        result: Result<JobId, String>,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(actor) = self.all.get_mut(&id) else { return Unneeded::new() };
        match (&mut actor.phase, result) {
            (Phase::Submitting, Ok(job)) => {
                let run = Run::Waiting { why: "its runner was submitted".to_owned() };
                actor.change(effects, |actor| actor.phase = Phase::Placed { job, run });
                self.jobs.insert(job, id);
                Unneeded::new()
            }
            (Phase::Submitting, Err(text)) => self.ended(id, ActorEnd::GivenUp(text), ceiling, effects),
            (Phase::Ending { job: runner @ None, .. }, Ok(job)) => {
                *runner = Some(job);
                self.jobs.insert(job, id);
                effects.push(CoordinatorEffect::CancelRunner { job });
                Unneeded::new()
            }
            (Phase::Ending { job: None, .. }, Err(text)) => {
                self.ended(id, ActorEnd::GivenUp(text), ceiling, effects)
            }
            (
                Phase::Queued { .. }
                | Phase::Placed { .. }
                | Phase::Ending { job: Some(_), .. }
                | Phase::Ended(_),
                _,
            ) => Unneeded::new(),
        }
    }

    pub(crate) fn of_job(&self, job: JobId) -> Option<ActorId> {
        self.jobs.get(&job).copied()
    }

    /// The head has reported about a job.
    pub(crate) fn report(
        &mut self,
        job: JobId,
        report: &RunnerReport,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(id) = self.jobs.get(&job).copied() else { return Unneeded::new() };
        if let RunnerState::Ended { text, .. } = &report.state {
            self.jobs.remove(&job);
            return self.ended(id, ActorEnd::GivenUp(text.clone()), ceiling, effects);
        }
        if let Some(actor) = self.all.get_mut(&id) {
            actor.change(effects, |actor| {
                if let Phase::Placed { run, .. } = &mut actor.phase {
                    run.follow(report);
                }
            });
            // The process that was told to end has ended otherwise: no further attempt is wanted.
            actor.cancel_told(effects, |member| member.attempt <= report.ended_attempts);
        }
        Unneeded::new()
    }

    /// A process that was told to end has had time for it.
    pub(crate) fn patience_over(&mut self, job: JobId, effects: &mut Vec<CoordinatorEffect>) {
        if let Some(actor) = self.of_job(job).and_then(|id| self.all.get_mut(&id)) {
            actor.cancel_told(effects, |_| true);
        }
    }

    /// A member is connected and all earlier attempts have ended: its actor, if it is to be constructed now.
    pub(crate) fn construct(
        &mut self,
        member: AttemptId,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Option<&[Carried]> {
        let actor = self.all.get_mut(self.jobs.get(&member.job)?)?;
        match &actor.phase {
            Phase::Placed { run: Run::Waiting { .. } | Run::Starting, .. } => {
                actor.construct(member, effects);
                Some(&actor.carries)
            }
            Phase::Placed { run: Run::Constructing { .. } | Run::Ready { .. }, .. }
            | Phase::Queued { .. }
            | Phase::Submitting
            | Phase::Ending { .. }
            | Phase::Ended(_) => None,
        }
    }

    /// A member has its actor.
    pub(crate) fn constructed(
        &mut self,
        member: AttemptId,
        incarnation: IncarnationNumber,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let Some(actor) = self.of_member(member) else { return };
        actor.change(effects, |actor| {
            actor.incarnation = incarnation.0;
            actor.phase = Phase::Placed { job: member.job, run: Run::Ready { member } };
        });
    }

    /// The constructor of a member failed.
    pub(crate) fn constructor_failed(
        &mut self,
        member: AttemptId,
        text: String,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        match self.of_member(member).map(|actor| actor.id) {
            Some(id) => self.end(id, ActorEnd::ConstructorFailed(text), ceiling, effects),
            None => Unneeded::new(),
        }
    }

    /// The process of an actor cannot be reached by its callers, nor will it: the actor ends.
    pub(crate) fn give_up(
        &mut self,
        job: JobId,
        why: String,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        match self.of_job(job) {
            Some(id) => self.end(id, ActorEnd::GivenUp(why), ceiling, effects),
            None => Unneeded::new(),
        }
    }

    /// Number of detached actors that have not ended.
    pub(crate) const fn detached(&self) -> usize {
        self.detached
    }

    /// All that are not forgotten, in the order of their creation.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ActorEntry> {
        self.all.values()
    }

    /// Number of actors that are not forgotten.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The actor that is, or is being, constructed in the process of this member.
    fn of_member(&mut self, member: AttemptId) -> Option<&mut ActorEntry> {
        let actor = self.all.get_mut(self.jobs.get(&member.job)?)?;
        let own = matches!(
            actor.phase,
            Phase::Placed { run: Run::Constructing { member: it } | Run::Ready { member: it }, .. }
                if it == member
        );
        own.then_some(actor)
    }

    /// Ends a live actor: its callers hear of it, its process is told to end.
    fn end(
        &mut self,
        id: ActorId,
        end: ActorEnd,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(actor) = self.all.get_mut(&id) else { return Unneeded::new() };
        let (job, told) = match &actor.phase {
            Phase::Queued { .. } => return self.ended(id, end, ceiling, effects),
            Phase::Submitting => (None, None),
            Phase::Placed { job, run } => (Some(*job), run.member()),
            Phase::Ending { .. } | Phase::Ended(_) => return Unneeded::new(),
        };
        actor.change(effects, |actor| actor.phase = Phase::Ending { job, told, end });
        if let Some(to) = told {
            effects.push(CoordinatorEffect::Send { to, frame: FromCoordinator::End });
            effects.push(CoordinatorEffect::AwaitEnd { job: to.job });
        } else {
            effects.extend(job.map(|job| CoordinatorEffect::CancelRunner { job }));
        }
        std::mem::take(&mut actor.carries).iter().filter_map(Carried::lent).collect()
    }

    /// No process of an actor runs or will run. What callers saw as the cause of its end stays.
    fn ended(
        &mut self,
        id: ActorId,
        end: ActorEnd,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(actor) = self.all.get_mut(&id) else { return Unneeded::new() };
        if let Some(name) = &actor.spec.name {
            self.names.remove(name);
        }
        if matches!(actor.phase, Phase::Queued { .. }) {
            ceiling.withdraw(Claimant::Actor(id));
        } else {
            ceiling.give_back(actor.spec.gpus);
        }
        self.unended -= 1;
        self.detached -= usize::from(actor.spec.lifetime == Lifetime::Detached);
        actor.change(effects, |actor| {
            let end = match &actor.phase {
                Phase::Ending { end, .. } => end.clone(),
                Phase::Queued { .. } | Phase::Submitting | Phase::Placed { .. } | Phase::Ended(_) => end,
            };
            actor.phase = Phase::Ended(end);
        });
        actor.answer_stops(effects);
        std::mem::take(&mut actor.carries).iter().filter_map(Carried::lent).collect()
    }
}

impl Run {
    /// The process that has, or constructs, the actor.
    pub(crate) const fn member(&self) -> Option<AttemptId> {
        match self {
            Run::Constructing { member } | Run::Ready { member } => Some(*member),
            Run::Waiting { .. } | Run::Starting => None,
        }
    }

    /// Goes on to what the head reports, unless its process still lives.
    fn follow(&mut self, report: &RunnerReport) {
        let lives = match self {
            Run::Constructing { member } | Run::Ready { member } => member.attempt > report.ended_attempts,
            Run::Waiting { .. } | Run::Starting => false,
        };
        if !lives {
            *self = match &report.state {
                RunnerState::Waiting { why } => Run::Waiting { why: why.clone() },
                RunnerState::Live | RunnerState::Ended { .. } => Run::Starting,
            };
        }
    }
}

fn submission(actor: &ActorEntry) -> CoordinatorEffect {
    CoordinatorEffect::Submit {
        actor: actor.id,
        kind: actor.spec.kind,
        name: actor.spec.name.clone(),
        restarts: actor.spec.restarts,
        gpus: actor.spec.gpus,
        claims: actor.spec.claims.clone(),
    }
}
