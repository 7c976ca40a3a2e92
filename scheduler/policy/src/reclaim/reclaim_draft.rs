//! One plan: the room that is kept, and the jobs that are stopped for one who holds less than is due to them.
//!
//! A job is stopped for another only if afterwards its own side still holds its part: so nobody can take a
//! place back, and stops do not go on for ever. At most one user is helped by each plan.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cohabit_fair_share::{FairShares, Party, Turns, wanted};
use cohabit_types::{Demand, JobId, Qos, Span, Time};

use super::claims::RoomClaim;
use super::longest_waiting::LongestWaiting;
use super::looks::{NextLook, RunningSets};
use crate::queue::fit_tracker::fits;
use crate::queue::{VictimSelection, note_stops};
use crate::{Action, FreeNodes, PendingJob, Plan, Policy, Profile, RunningJob, View};

/// Others are stopped for a job that has waited so long.
pub(super) const WAITED: Span = Span::from_secs(10 * 60);
/// The same if it is within what its project is guaranteed, or if jobs of low quality of service make room.
pub(super) const WAITED_AT_ONCE: Span = Span::from_secs(30);
/// It is looked again after this at the latest, if there is a plan then.
const LOOK_AGAIN: Span = Span::from_secs(60);
/// After somebody was helped, it is looked so soon for others.
const SOON: Span = Span::from_secs(1);
/// So many jobs of each user are looked at, and for so many it is tried to make room, so that a plan stays
/// quick.
const LOOKED_AT: usize = 16;
const MOST_TRIES: usize = 64;

/// A plan while jobs are stopped for it.
pub(super) struct ReclaimDraft<'v> {
    view: &'v View,
    shares: &'v FairShares,
    waiting: &'v LongestWaiting,
    running: &'v RunningSets,
    /// What everybody holds once this plan is carried out.
    turns: Turns,
    plan: Plan,
    /// When others may be stopped for a job for which they may not be yet.
    next: Option<Time>,
}

/// A running job that may be stopped.
struct Candidate<'v> {
    job: &'v RunningJob,
    party: Party,
    holds: u64,
}

impl Candidate<'_> {
    fn is_low(&self) -> bool {
        self.job.traits.preemptible && self.job.traits.qos == Qos::Low
    }
}

/// The jobs that are asked to stop for one that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victims {
    /// Those that do nothing.
    Idle,
    /// Those that take only what nobody else wants.
    LowQos,
    /// Those of users and projects that hold more than is due to them.
    BeyondTheirPart,
}

impl<'v> ReclaimDraft<'v> {
    pub(super) fn new(
        view: &'v View,
        shares: &'v FairShares,
        waiting: &'v LongestWaiting,
        running: &'v RunningSets,
        plan: Plan,
    ) -> ReclaimDraft<'v> {
        let turns = view.turns(waiting.lines(), |party| waiting.demand_of(party)).unwrap_or_default();
        ReclaimDraft { view, shares, waiting, running, turns, plan, next: None }
    }

    /// Starts the jobs for which room has become free, and drops the starts that would take kept room.
    pub(super) fn keep_room(&mut self, claims: &mut Vec<RoomClaim>, policy: &mut dyn Policy) {
        let view = self.view;
        let starts: BTreeSet<JobId> = started(&self.plan.actions).collect();
        let had_claims = !claims.is_empty();
        // The policy starts it by itself, perhaps elsewhere.
        claims.retain(|claim| !starts.contains(&claim.job));
        for index in 0..claims.len() {
            let claim = &claims[index];
            if !claim.is_free {
                continue;
            }
            let others = claims.iter().filter(|other| other.job != claim.job);
            let free = without(FreeNodes::new(&view.nodes), others);
            if let Some(start) = start_on(policy, view, &view.pending[&claim.job], &free) {
                self.plan.actions.insert(0, start);
            }
        }
        let starts: BTreeSet<JobId> = started(&self.plan.actions).collect();
        claims.retain(|claim| !starts.contains(&claim.job));
        let mut free = without(FreeNodes::new(&view.nodes), claims.iter());
        if had_claims {
            self.plan.actions.retain(|action| {
                let Action::Place { job, placement, .. } = action else { return true };
                let demand = &view.pending[job].demand;
                let fits = placement.parts.iter().all(|part| {
                    free.position(part.node).is_some_and(|it| free.node(it).fits(demand, part).is_ok())
                });
                if fits {
                    free.take(demand, placement);
                }
                fits
            });
        }
        for job in started(&self.plan.actions) {
            let pending = &view.pending[&job];
            self.turns.start(view.party(&pending.traits), &pending.demand);
        }
        note_stops(&mut self.turns, &self.plan.actions, view);
        claims.iter().for_each(|claim| self.turns.start(claim.party, &claim.demand));
    }

    /// Stops jobs for the first user in line who is owed something, if that is possible. Says when it is
    /// looked again.
    pub(super) fn reclaim(&mut self, claims: &mut Vec<RoomClaim>, policy: &mut dyn Policy) -> NextLook {
        let (view, waiting) = (self.view, self.waiting);
        let starts: BTreeSet<JobId> = started(&self.plan.actions).collect();
        let claiming: BTreeSet<JobId> = claims.iter().map(|claim| claim.job).collect();
        let mut candidates: Option<Vec<Candidate<'_>>> = None;
        let kinds = [
            (!self.running.idle.is_empty()).then_some(Victims::Idle),
            (!self.running.low.is_empty()).then_some(Victims::LowQos),
            Some(Victims::BeyondTheirPart),
        ];
        let mut tries = 0;
        let mut turns = self.turns.clone();
        while let Some(line) = turns.next() {
            turns.close(line);
            let party = line.party;
            // One reclaim of a project at a time.
            if claims.iter().any(|it| self.shares.project(it.party) == self.shares.project(party)) {
                continue;
            }
            let mut without_room: BTreeSet<(Demand, Victims)> = BTreeSet::new();
            let waits = |job: &JobId| !starts.contains(job) && !claiming.contains(job);
            for id in waiting.of(party).filter(waits).take(LOOKED_AT) {
                let job = &view.pending[&id];
                for victims in kinds.into_iter().flatten() {
                    let Some(since) = self.owed_from(job, party, victims) else { continue };
                    if since > view.now {
                        self.may_later(since);
                        continue;
                    }
                    if tries == MOST_TRIES || !without_room.insert((job.demand, victims)) {
                        continue;
                    }
                    tries += 1;
                    let candidates = candidates.get_or_insert_with(|| self.candidates());
                    if let Some(claim) = self.make_room(job, party, victims, candidates, claims, policy) {
                        claims.push(claim);
                        // Others may be owed something, too.
                        let soon = view.now + SOON;
                        return NextLook { at: soon, wake: Some(soon) };
                    }
                }
            }
        }
        let again = view.now + LOOK_AGAIN;
        NextLook { at: self.next.map_or(again, |at| at.min(again)), wake: self.next }
    }

    /// Notes that others may be stopped for somebody from then on.
    fn may_later(&mut self, at: Time) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// From when on others are stopped for this job; `None` if it is not due to its user.
    fn owed_from(&self, job: &PendingJob, party: Party, victims: Victims) -> Option<Time> {
        if !self.turns.may_lend(party, &job.demand) {
            return None;
        }
        let amount = wanted(&job.demand);
        match victims {
            Victims::Idle | Victims::LowQos => Some(job.eligible_at + WAITED_AT_ONCE),
            Victims::BeyondTheirPart if !self.turns.is_due(party, amount) => None,
            Victims::BeyondTheirPart if self.turns.is_guaranteed(party, amount) => {
                Some(job.eligible_at + WAITED_AT_ONCE)
            }
            Victims::BeyondTheirPart => Some(job.eligible_at + WAITED),
        }
    }

    /// The running jobs that may be stopped: those that do nothing first, then those of low quality of
    /// service, then those whose side holds most of its part, then the youngest.
    fn candidates(&self) -> Vec<Candidate<'v>> {
        let view = self.view;
        let stopped: BTreeSet<JobId> = self
            .plan
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Preempt { job, .. } | Action::Reclaim { job, .. } | Action::StopIdle { job, .. } => {
                    Some(*job)
                }
                Action::Place { .. } | Action::Allot { .. } => None,
            })
            .collect();
        let going_on = self.running.stoppable.iter().filter_map(|id| view.running.get(id));
        let mut candidates: Vec<Candidate<'v>> = going_on
            .filter(|job| !stopped.contains(&job.id))
            .map(|job| Candidate { job, party: view.party(&job.traits), holds: job.holds })
            .collect();
        candidates.sort_by_cached_key(|it| {
            let is_unwanted = (is_idle(it.job, view.now), it.is_low());
            let parts_held = self.turns.parts_held(it.party);
            (Reverse(is_unwanted), Reverse(parts_held), Reverse(it.job.started_at), it.job.id)
        });
        candidates
    }

    /// The jobs that have to stop for this one, which are told so, and where it goes then.
    fn make_room(
        &mut self,
        job: &PendingJob,
        party: Party,
        victims: Victims,
        candidates: &[Candidate<'v>],
        claims: &[RoomClaim],
        policy: &mut dyn Policy,
    ) -> Option<RoomClaim> {
        let view = self.view;
        let mut free = without(FreeNodes::new(&view.nodes), claims.iter());
        for action in &self.plan.actions {
            if let Action::Place { job, placement, .. } = action {
                free.take_as_resident(*job, &view.pending[job].demand, placement);
            }
        }
        if !free.could_hold_when_empty(&job.demand) || fits(&job.demand, &free) {
            return None;
        }
        let chosen = self.choose(job, party, victims, candidates, &free)?;
        for victim in &chosen {
            let victim = &view.running[victim];
            free.remove_resident(victim.id, &victim.demand, &victim.placement);
        }
        let placement = policy.dry_run_on(view, job, &free).ok()?.placement;
        for victim in chosen.iter().map(|victim| &view.running[victim]) {
            let (id, is_idle) = (victim.id, is_idle(victim, view.now));
            let why = self.reason(job, party, if is_idle { Victims::Idle } else { victims });
            self.plan.actions.push(match is_idle {
                true => Action::StopIdle { job: id, why },
                false => Action::Reclaim { job: id, why },
            });
        }
        Some(RoomClaim {
            job: job.id,
            party,
            demand: job.demand,
            placement,
            victims: chosen,
            until: RoomClaim::until_at_most(view.now),
            is_free: false,
            is_confirmed: false,
        })
    }

    /// As few jobs as possible, so that the demand fits without them.
    fn choose(
        &mut self,
        job: &PendingJob,
        party: Party,
        victims: Victims,
        candidates: &[Candidate<'v>],
        free: &FreeNodes<'v>,
    ) -> Option<BTreeSet<JobId>> {
        let mut selection = VictimSelection::new(&job.demand, free);
        let mut turns = self.turns.clone();
        let mut next_stoppable: Option<Time> = None;
        for candidate in candidates {
            if selection.fits() {
                break;
            }
            let Some(from) = self.stoppable_from(candidate, party, victims, &turns) else { continue };
            if from > self.view.now {
                next_stoppable = Some(next_stoppable.map_or(from, |at| at.min(from)));
                continue;
            }
            turns.release(candidate.party, candidate.holds);
            selection.add(candidate.job, free);
        }
        match selection.drop_needless() {
            Some((chosen, _)) => Some(chosen.into_iter().collect()),
            None => {
                next_stoppable.into_iter().for_each(|at| self.may_later(at));
                None
            }
        }
    }

    /// From when on a job may be stopped for one of this party; `None` if it may not.
    fn stoppable_from(
        &self,
        candidate: &Candidate<'v>,
        party: Party,
        victims: Victims,
        turns: &Turns,
    ) -> Option<Time> {
        let (job, is_low) = (candidate.job, candidate.is_low());
        let is_asked = match victims {
            Victims::Idle => false,
            Victims::LowQos => is_low,
            Victims::BeyondTheirPart => is_low || turns.may_reclaim(party, candidate.party, candidate.holds),
        };
        let keep_for = if is_low { Span::ZERO } else { self.shares.table().keep_for };
        let asked = (is_asked && job.traits.preemptible)
            .then(|| (job.started_at + keep_for).max(job.reclaimable_from));
        [asked, job.idle_from].into_iter().flatten().min()
    }

    fn reason(&self, job: &PendingJob, party: Party, victims: Victims) -> String {
        let (id, user) = (job.id, self.shares.name(party));
        match victims {
            Victims::Idle => format!("makes room for job {id} of {user}: it does nothing"),
            Victims::LowQos => format!("makes room for job {id} of {user}: it took what nobody else wanted"),
            Victims::BeyondTheirPart => {
                let standing = self.turns.standing_of_project(party);
                let project = self.shares.project(party);
                let side = match self.shares.is_named(project) {
                    true => format!("project {}", self.shares.project_name(project)),
                    false => format!("user {user}"),
                };
                format!(
                    "makes room for job {id} of {user}: {side} holds {:.1} GPUs, and the part due to them is {:.1}",
                    standing.held as f64 / 1_000.0,
                    standing.entitled as f64 / 1_000.0
                )
            }
        }
    }

    /// The plan, which is made again when room is no longer kept.
    pub(super) fn into_plan(mut self, claims: &[RoomClaim]) -> Plan {
        claims.iter().for_each(|claim| self.plan.wake_at(claim.until));
        self.plan
    }
}

fn is_idle(job: &RunningJob, now: Time) -> bool {
    job.idle_from.is_some_and(|from| from <= now)
}

fn started(actions: &[Action]) -> impl Iterator<Item = JobId> {
    actions.iter().filter_map(|action| match action {
        Action::Place { job, .. } => Some(*job),
        Action::Preempt { .. } | Action::Reclaim { .. } | Action::StopIdle { .. } | Action::Allot { .. } => {
            None
        }
    })
}

/// What is free besides the room that is kept for these.
fn without<'c, 'v>(mut free: FreeNodes<'v>, claims: impl Iterator<Item = &'c RoomClaim>) -> FreeNodes<'v> {
    claims.for_each(|claim| free.take(&claim.demand, &claim.placement));
    free
}

/// The start of a job where the policy would put it on what is free.
fn start_on(policy: &mut dyn Policy, view: &View, job: &PendingJob, free: &FreeNodes<'_>) -> Option<Action> {
    let mut proposal = policy.dry_run_on(view, job, free).ok()?;
    proposal.why = "room was made for it".to_owned();
    Some(proposal.start(job.id, &Profile::flat(&job.demand, &job.traits)))
}
