//! One actor at the coordinator: its phases, and what its callers see of them.

use std::collections::BTreeSet;

use cohabit_types::{AttemptId, JobId};

use crate::actor_spec::{ActorSpec, ActorState};
use crate::coordinator_effect::CoordinatorEffect;
use crate::errors::ActorEnd;
use crate::frames::{Construction, FromCoordinator};
use crate::ids::{ActorId, IncarnationNumber, RequestNumber};
use crate::object_value::Carried;

#[derive(Debug)]
pub(crate) struct ActorEntry {
    pub(crate) id: ActorId,
    pub(crate) spec: ActorSpec,
    /// The handles in the arguments of its constructor.
    pub(crate) carries: Vec<Carried>,
    /// How often it was constructed, or 0.
    pub(crate) incarnation: u32,
    pub(crate) phase: Phase,
    pub(crate) watchers: BTreeSet<AttemptId>,
    /// Who waits for the end of its process.
    pub(crate) stops: Vec<(AttemptId, RequestNumber)>,
}

#[derive(Debug)]
pub(crate) enum Phase {
    /// The ceiling of the application leaves no room.
    Queued { why: String },
    /// The head was asked for a runner and has not answered.
    Submitting,
    /// It has a job.
    Placed { job: JobId, run: Run },
    /// Callers see its end; its process is being ended, or its submission is still under way. `told` is the
    /// process that was told to end and may still run.
    Ending { job: Option<JobId>, told: Option<AttemptId>, end: ActorEnd },
    /// No process of it runs or will run.
    Ended(ActorEnd),
}

/// The process of an actor that has a job.
#[derive(Debug)]
pub(crate) enum Run {
    Waiting { why: String },
    Starting,
    Constructing { member: AttemptId },
    Ready { member: AttemptId },
}

impl ActorEntry {
    pub(crate) const fn new(id: ActorId, spec: ActorSpec, carries: Vec<Carried>) -> ActorEntry {
        let phase = Phase::Queued { why: String::new() };
        ActorEntry { id, spec, carries, incarnation: 0, phase, watchers: BTreeSet::new(), stops: Vec::new() }
    }

    /// Whether callers see it as live.
    pub(crate) const fn is_live(&self) -> bool {
        match self.phase {
            Phase::Queued { .. } | Phase::Submitting | Phase::Placed { .. } => true,
            Phase::Ending { .. } | Phase::Ended(_) => false,
        }
    }

    /// The process that has, or constructs, it.
    pub(crate) const fn member(&self) -> Option<AttemptId> {
        match &self.phase {
            Phase::Placed { run, .. } => run.member(),
            Phase::Ending { told, .. } => *told,
            Phase::Queued { .. } | Phase::Submitting | Phase::Ended(_) => None,
        }
    }

    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// What callers see.
    pub(crate) fn state(&self) -> ActorState {
        match &self.phase {
            Phase::Queued { why } => ActorState::Pending { why: why.clone() },
            Phase::Submitting => ActorState::Pending { why: "its runner is being submitted".to_owned() },
            Phase::Ending { end, .. } | Phase::Ended(end) => ActorState::Ended(end.clone()),
            Phase::Placed { run, .. } => match run {
                Run::Ready { member } => {
                    ActorState::Ready { member: *member, incarnation: IncarnationNumber(self.incarnation) }
                }
                Run::Waiting { .. } | Run::Starting | Run::Constructing { .. } if self.incarnation > 1 => {
                    ActorState::Restarting
                }
                Run::Constructing { .. } => ActorState::Starting,
                Run::Waiting { .. } | Run::Starting if self.incarnation > 0 => ActorState::Restarting,
                Run::Waiting { why } => ActorState::Pending { why: why.clone() },
                Run::Starting => ActorState::Starting,
            },
        }
    }

    /// Changes the phase and tells those who watch, if they see a difference.
    pub(crate) fn change(
        &mut self,
        effects: &mut Vec<CoordinatorEffect>,
        change: impl FnOnce(&mut ActorEntry),
    ) {
        let before = self.state();
        change(self);
        let state = self.state();
        if state != before {
            let (actor, watchers) = (self.id, &self.watchers);
            effects.extend(watchers.iter().map(|to| CoordinatorEffect::Send {
                to: *to,
                frame: FromCoordinator::State { actor, state: state.clone() },
            }));
        }
    }

    /// Begins the next incarnation in the process of this member.
    pub(crate) fn construct(&mut self, member: AttemptId, effects: &mut Vec<CoordinatorEffect>) {
        self.change(effects, |actor| {
            actor.incarnation += 1;
            actor.phase = Phase::Placed { job: member.job, run: Run::Constructing { member } };
        });
        let construction = Construction {
            actor: self.id,
            kind: self.spec.kind,
            incarnation: IncarnationNumber(self.incarnation),
            concurrency: self.spec.concurrency,
            arguments: self.spec.arguments.clone(),
            needs: self.spec.needs.clone(),
            carries: self.carries.clone(),
        };
        effects.push(CoordinatorEffect::Send { to: member, frame: FromCoordinator::Construct(construction) });
    }

    /// Cancels its job if its process was told to end, and is one of these.
    pub(crate) fn cancel_told(
        &mut self,
        effects: &mut Vec<CoordinatorEffect>,
        which: impl FnOnce(AttemptId) -> bool,
    ) {
        if let Phase::Ending { told, .. } = &mut self.phase
            && let Some(member) = told.take_if(|member| which(*member))
        {
            effects.push(CoordinatorEffect::CancelRunner { job: member.job });
        }
    }

    /// Answers those who wait for its end.
    pub(crate) fn answer_stops(&mut self, effects: &mut Vec<CoordinatorEffect>) {
        effects.extend(self.stops.drain(..).map(|(to, request)| CoordinatorEffect::Send {
            to,
            frame: FromCoordinator::Stopped { request },
        }));
    }
}
