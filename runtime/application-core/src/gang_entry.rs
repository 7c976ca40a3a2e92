//! Actors at the coordinator: what each is made of, the phases of the gang that they share, and what their
//! callers see of it.

use std::collections::BTreeSet;

use cohabit_types::{AttemptId, JobId, RankId};

use crate::actor_spec::{ActorState, GangSpec};
use crate::coordinator_effect::CoordinatorEffect;
use crate::errors::ActorEnd;
use crate::frames::{Construction, FromCoordinator, OnPanic};
use crate::held::HeldId;
use crate::ids::{ActorId, IncarnationNumber, RequestNumber};
use crate::object_value::Carried;
use crate::runner_report::{RunnerReport, RunnerState};

/// Actors that share a job; a single one is a gang of one.
#[derive(Debug)]
pub(crate) struct GangEntry {
    pub(crate) spec: GangSpec,
    /// By rank. Their ids are consecutive.
    pub(crate) actors: Vec<ActorEntry>,
    pub(crate) phase: Phase,
    /// Who waits for the end of their processes.
    pub(crate) stops: Vec<(RankId, RequestNumber)>,
}

/// What one actor has for itself.
#[derive(Debug)]
pub(crate) struct ActorEntry {
    pub(crate) id: ActorId,
    /// The handles in the arguments of its constructor.
    pub(crate) carries: Vec<Carried>,
    /// How often it was constructed, or 0.
    pub(crate) incarnation: u32,
    pub(crate) watchers: BTreeSet<RankId>,
}

#[derive(Debug)]
pub(crate) enum Phase {
    /// The ceiling of the application leaves no room.
    Queued { why: String },
    /// The head was asked for a job and has not answered.
    Submitting,
    /// There is a job; `runs` are the processes by rank.
    Placed { job: JobId, runs: Vec<Run> },
    /// Callers see the end; the processes are being ended, or the submission is still under way. `told` is
    /// the attempt whose processes were all told to end and may still run.
    Ending { job: Option<JobId>, told: Option<AttemptId>, end: ActorEnd },
    /// No process runs or will run.
    Ended(ActorEnd),
}

/// The process of an actor that has a job.
#[derive(Debug, Clone)]
pub(crate) enum Run {
    Waiting { why: String },
    Starting,
    Constructing { member: RankId },
    Ready { member: RankId },
}

impl GangEntry {
    /// Actors that wait for the ceiling; the first has this id.
    pub(crate) fn new(first: ActorId, spec: GangSpec, carries: Vec<Vec<Carried>>) -> GangEntry {
        let mut carries = carries.into_iter();
        let actor = |rank| ActorEntry {
            id: first.of_rank(rank as u32),
            carries: carries.next().unwrap_or_default(),
            incarnation: 0,
            watchers: BTreeSet::new(),
        };
        let actors = (0..spec.actors.len()).map(actor).collect();
        GangEntry { spec, actors, phase: Phase::Queued { why: String::new() }, stops: Vec::new() }
    }

    /// The id of the first actor, by which the gang is known.
    pub(crate) fn first(&self) -> ActorId {
        self.actors.first().map_or(ActorId(0), |actor| actor.id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ActorId> {
        self.actors.iter().map(|actor| actor.id)
    }

    /// The names of its actors, with their ids.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&String, ActorId)> {
        let names = self.spec.actors.iter().map(|actor| actor.name.as_ref());
        names.zip(self.ids()).filter_map(|(name, id)| Some((name?, id)))
    }

    /// The rank of an actor, if it is one of them.
    pub(crate) fn rank_of(&self, actor: ActorId) -> Option<usize> {
        let rank = actor.0.checked_sub(self.first().0)? as usize;
        (rank < self.actors.len()).then_some(rank)
    }

    /// Whether callers see it as live.
    pub(crate) const fn is_live(&self) -> bool {
        match self.phase {
            Phase::Queued { .. } | Phase::Submitting | Phase::Placed { .. } => true,
            Phase::Ending { .. } | Phase::Ended(_) => false,
        }
    }

    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// The process that has, or constructs, an actor.
    pub(crate) fn member(&self, rank: usize) -> Option<RankId> {
        match &self.phase {
            Phase::Placed { runs, .. } => runs.get(rank)?.member(),
            Phase::Ending { told, .. } => told.map(|attempt| attempt.rank(rank as u32)),
            Phase::Queued { .. } | Phase::Submitting | Phase::Ended(_) => None,
        }
    }

    /// What the callers of an actor see.
    pub(crate) fn state(&self, rank: usize) -> ActorState {
        let incarnation = self.actors[rank].incarnation;
        match &self.phase {
            Phase::Queued { why } => ActorState::Pending { why: why.clone() },
            Phase::Submitting => ActorState::Pending { why: "its runner is being submitted".to_owned() },
            Phase::Ending { end, .. } | Phase::Ended(end) => ActorState::Ended(end.clone()),
            Phase::Placed { runs, .. } => match &runs[rank] {
                Run::Ready { member } => {
                    ActorState::Ready { member: *member, incarnation: IncarnationNumber(incarnation) }
                }
                Run::Waiting { .. } | Run::Starting | Run::Constructing { .. } if incarnation > 1 => {
                    ActorState::Restarting
                }
                Run::Constructing { .. } => ActorState::Starting,
                Run::Waiting { .. } | Run::Starting if incarnation > 0 => ActorState::Restarting,
                Run::Waiting { why } => ActorState::Pending { why: why.clone() },
                Run::Starting => ActorState::Starting,
            },
        }
    }

    /// Changes the gang and tells those who watch its actors, if they see a difference.
    pub(crate) fn change(
        &mut self,
        effects: &mut Vec<CoordinatorEffect>,
        change: impl FnOnce(&mut GangEntry),
    ) {
        let ranks = 0..self.actors.len();
        let before: Vec<ActorState> = ranks.map(|rank| self.state(rank)).collect();
        change(self);
        for (rank, before) in before.into_iter().enumerate() {
            let state = self.state(rank);
            if state != before {
                let ActorEntry { id, watchers, .. } = &self.actors[rank];
                effects.extend(watchers.iter().map(|to| CoordinatorEffect::Send {
                    to: *to,
                    frame: FromCoordinator::State { actor: *id, state: state.clone() },
                }));
            }
        }
    }

    /// An actor is constructed in the process of this member.
    pub(crate) fn constructed(
        &mut self,
        member: RankId,
        incarnation: IncarnationNumber,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let rank = member.rank as usize;
        self.change(effects, |gang| {
            gang.actors[rank].incarnation = incarnation.0;
            if let Phase::Placed { runs, .. } = &mut gang.phase {
                runs[rank] = Run::Ready { member };
            }
        });
    }

    /// Goes on to what the head reports.
    pub(crate) fn follow(&mut self, report: &RunnerReport, effects: &mut Vec<CoordinatorEffect>) {
        self.change(effects, |gang| {
            if let Phase::Placed { runs, .. } = &mut gang.phase {
                runs.iter_mut().for_each(|run| run.follow(report));
            }
        });
        // The processes that were told to end have ended otherwise: no further attempt is wanted.
        self.cancel_told(effects, |attempt| attempt.attempt <= report.ended_attempts);
    }

    /// Begins the next incarnation of an actor in the process of this member, which is its rank.
    pub(crate) fn construct(&mut self, member: RankId, effects: &mut Vec<CoordinatorEffect>) {
        let rank = member.rank as usize;
        self.change(effects, |gang| {
            gang.actors[rank].incarnation += 1;
            if let Phase::Placed { runs, .. } = &mut gang.phase {
                runs[rank] = Run::Constructing { member };
            }
        });
        let (actor, spec) = (&self.actors[rank], &self.spec.actors[rank]);
        let construction = Construction {
            actor: actor.id,
            kind: spec.kind,
            incarnation: IncarnationNumber(actor.incarnation),
            concurrency: spec.concurrency,
            on_panic: if self.actors.len() > 1 { OnPanic::EndProcess } else { OnPanic::Reconstruct },
            arguments: spec.arguments.clone(),
            needs: spec.needs.clone(),
            carries: actor.carries.clone(),
        };
        effects.push(CoordinatorEffect::Send { to: member, frame: FromCoordinator::Construct(construction) });
    }

    /// Cancels its job if its processes were told to end, and are those of such an attempt.
    pub(crate) fn cancel_told(
        &mut self,
        effects: &mut Vec<CoordinatorEffect>,
        which: impl FnOnce(AttemptId) -> bool,
    ) {
        if let Phase::Ending { told, .. } = &mut self.phase
            && let Some(attempt) = told.take_if(|attempt| which(*attempt))
        {
            effects.push(CoordinatorEffect::CancelRunner { job: attempt.job });
        }
    }

    /// Ends it, if it is live: its callers hear of it, its processes are told to end. Returns what its
    /// constructors needed.
    pub(crate) fn end(&mut self, end: ActorEnd, effects: &mut Vec<CoordinatorEffect>) -> Vec<HeldId> {
        let (job, members) = match &self.phase {
            Phase::Submitting => (None, None),
            Phase::Placed { job, runs } => (Some(*job), runs.iter().map(Run::member).collect()),
            Phase::Queued { .. } | Phase::Ending { .. } | Phase::Ended(_) => return Vec::new(),
        };
        // Where a process is missing, the head ends those that are there.
        let members: Vec<RankId> = members.unwrap_or_default();
        let told = members.first().map(|member| member.attempt);
        self.change(effects, |gang| gang.phase = Phase::Ending { job, told, end });
        let tell = |to: &RankId| CoordinatorEffect::Send { to: *to, frame: FromCoordinator::End };
        effects.extend(members.iter().map(tell));
        effects.extend(job.map(|job| match told {
            Some(_) => CoordinatorEffect::AwaitEnd { job },
            None => CoordinatorEffect::CancelRunner { job },
        }));
        self.take_lent()
    }

    /// No process of it runs or will run. What callers saw as the cause of its end stays. Returns what its
    /// constructors needed.
    pub(crate) fn ended(&mut self, end: ActorEnd, effects: &mut Vec<CoordinatorEffect>) -> Vec<HeldId> {
        self.change(effects, |gang| {
            let end = match &gang.phase {
                Phase::Ending { end, .. } => end.clone(),
                Phase::Queued { .. } | Phase::Submitting | Phase::Placed { .. } | Phase::Ended(_) => end,
            };
            gang.phase = Phase::Ended(end);
        });
        effects.extend(self.stops.drain(..).map(|(to, request)| CoordinatorEffect::Send {
            to,
            frame: FromCoordinator::Stopped { request },
        }));
        self.take_lent()
    }

    fn take_lent(&mut self) -> Vec<HeldId> {
        let carries = self.actors.iter_mut().flat_map(|actor| std::mem::take(&mut actor.carries));
        carries.filter_map(|it| it.lent()).collect()
    }
}

impl Run {
    /// The process that has, or constructs, the actor.
    pub(crate) const fn member(&self) -> Option<RankId> {
        match self {
            Run::Constructing { member } | Run::Ready { member } => Some(*member),
            Run::Waiting { .. } | Run::Starting => None,
        }
    }

    /// Goes on to what the head reports, unless its process still lives.
    fn follow(&mut self, report: &RunnerReport) {
        let lives = self.member().is_some_and(|member| member.attempt.attempt > report.ended_attempts);
        if !lives {
            *self = match &report.state {
                RunnerState::Waiting { why, .. } => Run::Waiting { why: why.clone() },
                RunnerState::Live | RunnerState::Ended { .. } => Run::Starting,
            };
        }
    }
}
