//! The actors of the application: names, restarts, ends.
//!
//! Actors are created as gangs, of one or more, which share a job. A gang that ends in the eyes of its
//! callers keeps its names and its share of GPUs until the head says that its job has ended. A gang that has
//! ended is remembered as long as somebody holds an actor of it.

use std::collections::BTreeMap;

use cohabit_types::{JobId, RankId};

use crate::actor_spec::{ActorState, GangSpec, Lifetime};
use crate::ceiling::{Ceiling, Claimant};
use crate::coordinator_effect::CoordinatorEffect;
use crate::errors::{ActorEnd, CreateError};
use crate::frames::FromCoordinator;
use crate::gang_entry::{GangEntry, Phase, Run};
use crate::held::HeldId;
use crate::ids::{ActorId, IncarnationNumber, RequestNumber};
use crate::limits::MAX_ACTORS;
use crate::object_value::Carried;
use crate::runner_report::{RunnerReport, RunnerState};

/// All actors that have not been forgotten.
#[derive(Debug)]
pub(crate) struct Actors {
    last: ActorId,
    /// By their first actors.
    gangs: BTreeMap<ActorId, GangEntry>,
    names: BTreeMap<String, ActorId>,
    /// The first actor of the gang of each job.
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
            gangs: BTreeMap::new(),
            names: BTreeMap::new(),
            jobs: BTreeMap::new(),
            unended: 0,
            detached: 0,
        }
    }

    /// Creates the actors of a gang, which waits for the ceiling: their ids.
    pub(crate) fn create(
        &mut self,
        spec: GangSpec,
        carries: Vec<Vec<Carried>>,
        ceiling: &mut Ceiling,
    ) -> Result<Vec<ActorId>, CreateError> {
        spec.check()?;
        let mut names = spec.actors.iter().filter_map(|actor| actor.name.as_ref());
        if let Some(name) = names.find(|name| self.names.contains_key(*name)) {
            return Err(CreateError::NameInUse { name: name.clone() });
        }
        let (count, gpus) = (spec.actors.len(), spec.total_gpus());
        if let Some(max_gpus) = ceiling.forbids(gpus) {
            return Err(CreateError::AboveCeiling { gpus, max_gpus });
        }
        if self.unended + count > MAX_ACTORS {
            return Err(CreateError::TooManyActors);
        }
        let first = self.last.of_rank(1);
        self.last = self.last.of_rank(count as u32);
        self.unended += count;
        self.detached += if spec.lifetime == Lifetime::Detached { count } else { 0 };
        let gang = GangEntry::new(first, spec, carries);
        self.names.extend(gang.names().map(|(name, id)| (name.clone(), id)));
        ceiling.wait(Claimant::Gang(first), gpus);
        let ids = gang.ids().collect();
        self.gangs.insert(first, gang);
        Ok(ids)
    }

    /// The ceiling leaves room for a gang.
    pub(crate) fn admitted(&mut self, first: ActorId, effects: &mut Vec<CoordinatorEffect>) {
        if let Some(gang) = self.gangs.get_mut(&first) {
            gang.change(effects, |gang| gang.phase = Phase::Submitting);
            effects.push(CoordinatorEffect::Submit { first, gang: gang.spec.clone() });
        }
    }

    /// The ceiling leaves no room for a gang yet.
    pub(crate) fn waits(&mut self, first: ActorId, why: String, effects: &mut Vec<CoordinatorEffect>) {
        if let Some(gang) = self.gangs.get_mut(&first) {
            gang.change(effects, |gang| gang.phase = Phase::Queued { why });
        }
    }

    /// The live actor with this name.
    pub(crate) fn find(&self, name: &str) -> Option<ActorId> {
        let id = *self.names.get(name)?;
        self.gang_of(id).filter(|gang| gang.is_live()).map(|_| id)
    }

    pub(crate) fn watch(&mut self, id: ActorId, by: RankId, effects: &mut Vec<CoordinatorEffect>) {
        let known = self.gang_of_mut(id).and_then(|gang| Some((gang.rank_of(id)?, gang)));
        let state = known.map_or(ActorState::Ended(ActorEnd::Stopped), |(rank, gang)| {
            gang.actors[rank].watchers.insert(by);
            gang.state(rank)
        });
        let frame = FromCoordinator::State { actor: id, state };
        effects.push(CoordinatorEffect::Send { to: by, frame });
    }

    pub(crate) fn unwatch(&mut self, id: ActorId, by: RankId) {
        if let Some(gang) = self.gang_of_mut(id)
            && let Some(rank) = gang.rank_of(id)
        {
            gang.actors[rank].watchers.remove(&by);
        }
    }

    pub(crate) fn member_ended(&mut self, member: RankId) {
        for gang in self.gangs.values_mut() {
            gang.actors.iter_mut().for_each(|actor| _ = actor.watchers.remove(&member));
            gang.stops.retain(|(by, _)| *by != member);
        }
    }

    /// Somebody stops an actor, and with it all of its gang, and waits for their end.
    pub(crate) fn stop(
        &mut self,
        id: ActorId,
        (by, request): (RankId, RequestNumber),
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(gang) = self.gang_of_mut(id).filter(|gang| !gang.has_ended()) else {
            effects.push(CoordinatorEffect::Send { to: by, frame: FromCoordinator::Stopped { request } });
            return Unneeded::new();
        };
        gang.stops.push((by, request));
        let first = gang.first();
        self.end(first, ActorEnd::Stopped, ceiling, effects)
    }

    /// Nobody holds an actor any more. If that is so of all of its gang, that ends, or is forgotten if it has
    /// ended.
    pub(crate) fn unheld(
        &mut self,
        id: ActorId,
        is_held: impl Fn(ActorId) -> bool,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let gang = self.gang_of(id).filter(|gang| !gang.ids().any(is_held));
        let Some((first, lifetime)) = gang.map(|gang| (gang.first(), gang.spec.lifetime)) else {
            return Unneeded::new();
        };
        let unneeded = match lifetime {
            Lifetime::Held => self.end(first, ActorEnd::Stopped, ceiling, effects),
            Lifetime::Detached => Unneeded::new(),
        };
        if self.gangs.get(&first).is_some_and(GangEntry::has_ended) {
            self.gangs.remove(&first);
        }
        unneeded
    }

    /// The application is over: all actors end.
    pub(crate) fn end_all(
        &mut self,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let all: Vec<ActorId> = self.gangs.keys().copied().collect();
        all.into_iter().flat_map(|first| self.end(first, ActorEnd::Stopped, ceiling, effects)).collect()
    }

    /// The head has answered the submission of a gang.
    pub(crate) fn submitted(
        &mut self,
        first: ActorId,
        result: Result<JobId, String>,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(gang) = self.gangs.get_mut(&first) else { return Unneeded::new() };
        match (&mut gang.phase, result) {
            (Phase::Submitting, Ok(job)) => {
                let run = Run::Waiting { why: "its runner was submitted".to_owned() };
                let runs = vec![run; gang.actors.len()];
                gang.change(effects, |gang| gang.phase = Phase::Placed { job, runs });
                self.jobs.insert(job, first);
                Unneeded::new()
            }
            (Phase::Submitting | Phase::Ending { job: None, .. }, Err(text)) => {
                self.ended(first, ActorEnd::GivenUp(text), ceiling, effects)
            }
            (Phase::Ending { job: runner @ None, .. }, Ok(job)) => {
                *runner = Some(job);
                self.jobs.insert(job, first);
                effects.push(CoordinatorEffect::CancelRunner { job });
                Unneeded::new()
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

    /// The first actor of the gang of a job.
    pub(crate) fn of_job(&self, job: JobId) -> Option<ActorId> {
        self.jobs.get(&job).copied()
    }

    /// The first actor of the gang of a job, if it has not ended in the eyes of its callers.
    pub(crate) fn live_gang_of(&self, job: JobId) -> Option<ActorId> {
        let gang = self.gangs.get(self.jobs.get(&job)?)?;
        gang.is_live().then(|| gang.first())
    }

    /// The head has reported about a job.
    pub(crate) fn report(
        &mut self,
        job: JobId,
        report: &RunnerReport,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(first) = self.of_job(job) else { return Unneeded::new() };
        if let RunnerState::Ended { text, .. } = &report.state {
            self.jobs.remove(&job);
            return self.ended(first, ActorEnd::GivenUp(text.clone()), ceiling, effects);
        }
        if let Some(gang) = self.gangs.get_mut(&first) {
            gang.follow(report, effects);
        }
        Unneeded::new()
    }

    /// Processes that were told to end have had time for it.
    pub(crate) fn patience_over(&mut self, job: JobId, effects: &mut Vec<CoordinatorEffect>) {
        if let Some(gang) = self.gang_of_job_mut(job) {
            gang.cancel_told(effects, |_| true);
        }
    }

    /// A member is connected and all earlier attempts have ended: constructs its actor, unless that has been
    /// done. Returns what the arguments carry.
    pub(crate) fn construct(
        &mut self,
        member: RankId,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Option<&[Carried]> {
        let gang = self.gang_of_job_mut(member.job())?;
        let Phase::Placed { runs, .. } = &gang.phase else { return None };
        match runs.get(member.rank as usize)? {
            Run::Waiting { .. } | Run::Starting => {
                gang.construct(member, effects);
                Some(&gang.actors[member.rank as usize].carries)
            }
            Run::Constructing { .. } | Run::Ready { .. } => None,
        }
    }

    /// A member has its actor.
    pub(crate) fn constructed(
        &mut self,
        member: RankId,
        incarnation: IncarnationNumber,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        if let Some(gang) = self.of_member(member) {
            gang.constructed(member, incarnation, effects);
        }
    }

    /// The constructor of a member failed.
    pub(crate) fn constructor_failed(
        &mut self,
        member: RankId,
        text: String,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(gang) = self.of_member(member) else { return Unneeded::new() };
        let text = if gang.actors.len() > 1 { format!("that of rank {}: {text}", member.rank) } else { text };
        let first = gang.first();
        self.end(first, ActorEnd::ConstructorFailed(text), ceiling, effects)
    }

    /// A process of a job cannot be reached by its callers, nor will it: its gang ends.
    pub(crate) fn give_up(
        &mut self,
        job: JobId,
        why: String,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        match self.of_job(job) {
            Some(first) => self.end(first, ActorEnd::GivenUp(why), ceiling, effects),
            None => Unneeded::new(),
        }
    }

    /// Number of detached actors that have not ended.
    pub(crate) const fn detached(&self) -> usize {
        self.detached
    }

    /// All that are not forgotten, in the order of their creation.
    pub(crate) fn gangs(&self) -> impl Iterator<Item = &GangEntry> {
        self.gangs.values()
    }

    /// Whether all are forgotten.
    pub(crate) fn is_empty(&self) -> bool {
        self.gangs.is_empty()
    }

    fn gang_of(&self, id: ActorId) -> Option<&GangEntry> {
        let (_, gang) = self.gangs.range(..=id).next_back()?;
        gang.rank_of(id).map(|_| gang)
    }

    fn gang_of_mut(&mut self, id: ActorId) -> Option<&mut GangEntry> {
        let (_, gang) = self.gangs.range_mut(..=id).next_back()?;
        gang.rank_of(id).map(|_| gang)
    }

    fn gang_of_job_mut(&mut self, job: JobId) -> Option<&mut GangEntry> {
        self.gangs.get_mut(self.jobs.get(&job)?)
    }

    /// The gang of the actor that is, or is being, constructed in the process of this member.
    fn of_member(&mut self, member: RankId) -> Option<&mut GangEntry> {
        let gang = self.gang_of_job_mut(member.job())?;
        let Phase::Placed { runs, .. } = &gang.phase else { return None };
        (runs.get(member.rank as usize)?.member() == Some(member)).then_some(gang)
    }

    /// Ends a live gang: its callers hear of it, its processes are told to end.
    fn end(
        &mut self,
        first: ActorId,
        end: ActorEnd,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(gang) = self.gangs.get_mut(&first) else { return Unneeded::new() };
        match gang.phase {
            Phase::Queued { .. } => self.ended(first, end, ceiling, effects),
            Phase::Submitting | Phase::Placed { .. } | Phase::Ending { .. } | Phase::Ended(_) => {
                gang.end(end, effects)
            }
        }
    }

    /// No process of a gang runs or will run.
    fn ended(
        &mut self,
        first: ActorId,
        end: ActorEnd,
        ceiling: &mut Ceiling,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unneeded {
        let Some(gang) = self.gangs.get_mut(&first) else { return Unneeded::new() };
        for (name, _) in gang.names() {
            self.names.remove(name);
        }
        match gang.phase {
            Phase::Queued { .. } => ceiling.withdraw(Claimant::Gang(first)),
            Phase::Submitting | Phase::Placed { .. } | Phase::Ending { .. } | Phase::Ended(_) => {
                ceiling.give_back(gang.spec.total_gpus());
            }
        }
        let count = gang.actors.len();
        self.unended -= count;
        self.detached -= if gang.spec.lifetime == Lifetime::Detached { count } else { 0 };
        gang.ended(end, effects)
    }
}
