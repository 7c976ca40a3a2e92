//! One plan while its shares are tuned: who starts with what, and which running jobs hold more or less.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{Demand, HostShare, JobId, NodeId, RankPlacement, Span, Time};

use super::node_shares::{grown, is_worth_it, targets};
use super::residents::Residents;
use super::tuned_job::TunedJob;
use crate::sensitivity::KnownSensitivity;
use crate::{Action, NodeView, RunPhase, RunningJob, View};

/// A job is changed at most this often,
const PAUSE: Span = Span::from_secs(30);

/// or this often where somebody could start otherwise.
const PAUSE_FOR_ROOM: Span = Span::from_secs(2);

/// A plan whose shares are tuned.
pub(super) struct Tuning<'v> {
    view: &'v View,
    residents: &'v Residents,
    known: &'v KnownSensitivity,
    nodes: BTreeMap<NodeId, NodeTuning<'v>>,
    /// When a job may be changed that may not be changed yet.
    pub(super) due: BTreeMap<NodeId, Time>,
}

/// One node.
struct NodeTuning<'v> {
    node: &'v NodeView,
    /// What is free, without what jobs take that start in this plan.
    free: HostShare,
    /// What the jobs that start here, and have not yet, need at least.
    needed: HostShare,
    /// Jobs that start here, in order.
    newcomers: Vec<(JobId, Newcomer)>,
    /// What those of them get that give a range; in the same order.
    starts: BTreeMap<JobId, HostShare>,
    changes: Vec<Change<'v>>,
}

/// What a job that starts takes.
#[derive(Debug, Clone)]
enum Newcomer {
    /// This, as it is part of a gang, claims fixed amounts, or starts where shares cannot change.
    Fixed(HostShare),
    Ranged(Box<TunedJob>),
}

/// What a running job is to have.
struct Change<'v> {
    job: &'v RunningJob,
    to: HostShare,
    why: String,
}

impl<'v> Tuning<'v> {
    pub(super) const fn new(
        view: &'v View,
        residents: &'v Residents,
        known: &'v KnownSensitivity,
    ) -> Tuning<'v> {
        Tuning { view, residents, known, nodes: BTreeMap::new(), due: BTreeMap::new() }
    }

    /// Shares these nodes anew, and all on which these actions start jobs.
    pub(super) fn share(&mut self, nodes: BTreeSet<NodeId>, actions: &[Action]) {
        for action in actions {
            if let Action::Place { job, placement, .. } = action {
                placement.parts.iter().for_each(|part| self.announce(*job, part));
            }
        }
        nodes.into_iter().for_each(|node| _ = self.open(node));
        for node in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.share_node(node);
        }
    }

    fn open(&mut self, node: NodeId) -> Option<&mut NodeTuning<'v>> {
        let view = self.view.nodes.iter().find(|it| it.id == node)?;
        let new = || NodeTuning {
            node: view,
            free: view.host_free(),
            needed: HostShare::default(),
            newcomers: Vec::new(),
            starts: BTreeMap::new(),
            changes: Vec::new(),
        };
        Some(self.nodes.entry(node).or_insert_with(new))
    }

    fn announce(&mut self, id: JobId, part: &RankPlacement) {
        let Some(job) = self.view.pending.get(&id) else { return };
        let known = self.known;
        let Some(tuning) = self.open(part.node) else { return };
        // Where nothing can be taken from it again, it gets what it has by rights.
        let newcomer = match job.demand.is_fungible() && tuning.node.changes_host_shares {
            true => {
                let curve = known.curve(tuning.node, &job.demand, &job.traits);
                // The policy counts on this share: with a smaller one, it does not see what is left.
                let least = part.host_share(&job.demand);
                Newcomer::Ranged(Box::new(TunedJob::on(tuning.node, &job.demand, least, curve)))
            }
            false => Newcomer::Fixed(part.host_share(&job.demand).at_most(tuning.node.host())),
        };
        tuning.needed = tuning.needed.plus(job.demand.least_host());
        tuning.newcomers.push((id, newcomer));
    }

    fn share_node(&mut self, id: NodeId) {
        let Some(tuning) = self.nodes.get(&id) else { return };
        let node = tuning.node;
        let soon = self.residents.being_taken(id, self.view);
        let needs_room = !tuning.needed.is_within(node.host_free().plus(soon));
        let pause = if needs_room { PAUSE_FOR_ROOM } else { PAUSE };
        let (mut ready, mut due) = (Vec::new(), None::<Time>);
        let going_on =
            self.residents.on(id, self.view).filter(|job| node.changes_host_shares && may_change(job));
        for job in going_on {
            let at = job.allotted_at + pause;
            let is_ready = at <= self.view.now;
            let later = self.residents.stuck_until(job, self.view.now);
            let learned = self.known.may_learn(job, self.view.now).then_some(self.view.now + PAUSE);
            due = due.into_iter().chain((!is_ready).then_some(at)).chain(later).chain(learned).min();
            ready.extend(is_ready.then_some(job));
        }
        let tuned: Vec<TunedJob> = ready
            .iter()
            .map(|job| {
                let curve = self.known.curve(node, &job.demand, &job.traits);
                let least = self.residents.least(job, self.view.now);
                let tuned = TunedJob::on(node, &job.demand, least, curve);
                tuned.open_to_trial(self.known.is_ready_for_trial(job, self.view.now))
            })
            .collect();
        self.due.extend(due.map(|at| (id, at)));
        if let Some(tuning) = self.nodes.get_mut(&id) {
            tuning.share_among(&ready, &tuned, needs_room);
        }
    }

    /// The actions that are possible now. A job for which others have to give something up first starts with
    /// a later plan.
    pub(super) fn admit(&mut self, actions: Vec<Action>) -> Vec<Action> {
        let admitted = actions.into_iter().filter_map(|action| match action {
            Action::Place { job, mut placement, runtime, slowdown, why } => {
                let demand = self.view.pending.get(&job)?.demand;
                let fits = placement.parts.iter().all(|part| self.has_room(&demand, part));
                for part in &mut placement.parts {
                    self.take(job, &demand, part, fits);
                }
                fits.then_some(Action::Place { job, placement, runtime, slowdown, why })
            }
            action @ (Action::Preempt { .. }
            | Action::Reclaim { .. }
            | Action::StopIdle { .. }
            | Action::Allot { .. }) => Some(action),
        });
        admitted.collect()
    }

    fn has_room(&self, demand: &Demand, part: &RankPlacement) -> bool {
        self.nodes.get(&part.node).is_none_or(|it| demand.least_host().is_within(it.free))
    }

    /// A part of a job that starts takes its share; one that does not start keeps everything for itself.
    fn take(&mut self, job: JobId, demand: &Demand, part: &mut RankPlacement, starts: bool) {
        let Some(tuning) = self.nodes.get_mut(&part.node) else { return };
        let smallest = demand.least_host();
        tuning.needed = tuning.needed.saturating_sub(smallest);
        if !starts {
            tuning.free = HostShare::default();
            return;
        }
        let wanted = tuning.starts.get(&job).copied().or(part.host).unwrap_or(smallest);
        let share = wanted.at_most(tuning.free.saturating_sub(tuning.needed)).at_least(smallest);
        tuning.free = tuning.free.saturating_sub(share);
        part.host = demand.up_to.map(|_| share);
    }

    /// The changes of running jobs: first what they give up, then what they get of what is free.
    pub(super) fn changes(self) -> Vec<Action> {
        let (mut less, mut more) = (Vec::new(), Vec::new());
        for NodeTuning { mut free, changes, .. } in self.nodes.into_values() {
            for Change { job, to, why } in changes {
                let held = job.host_share();
                let to = to.at_most(held.plus(free));
                free = free.saturating_sub(to.saturating_sub(held));
                let list = if to.is_within(held) { &mut less } else { &mut more };
                if to != held {
                    list.push(Action::Allot { job: job.id, host: to, why });
                }
            }
        }
        less.append(&mut more);
        less
    }
}

impl<'v> NodeTuning<'v> {
    /// Shares what these running jobs hold, and what is free, among them and the jobs that start.
    fn share_among(&mut self, ready: &[&'v RunningJob], tuned: &[TunedJob], needs_room: bool) {
        let held: Vec<HostShare> = ready.iter().map(|job| job.host_share()).collect();
        let starting: Vec<(JobId, TunedJob)> = self.newcomers.iter().filter_map(ranged).collect();
        let fixed = self.newcomers.iter().filter_map(|(_, newcomer)| match newcomer {
            Newcomer::Fixed(share) => Some(*share),
            Newcomer::Ranged(_) => None,
        });
        let fixed = fixed.fold(HostShare::default(), HostShare::plus);
        let all = held.iter().fold(self.free, |sum, held| sum.plus(*held)).saturating_sub(fixed);
        let everybody: Vec<&TunedJob> = tuned.iter().chain(starting.iter().map(|(_, job)| job)).collect();
        let mut new = targets(all, &everybody);
        let starts = new.split_off(ready.len());
        self.starts = starting.iter().map(|(job, _)| *job).zip(starts).collect();
        let own: Vec<&TunedJob> = tuned.iter().collect();
        if !needs_room && !is_worth_it(&own, &held, &new) {
            let taken = self.starts.values().fold(fixed, |sum, share| sum.plus(*share));
            new = grown(self.free.saturating_sub(taken), &held, &own);
        }
        let reason = self.newcomers.first().filter(|_| needs_room).map(|(job, _)| *job);
        self.changes = ready
            .iter()
            .zip(tuned)
            .zip(new)
            .filter(|((job, _), to)| *to != job.host_share())
            .map(|((job, tuned), to)| Change { job, to, why: why(tuned, job.host_share(), to, reason) })
            .collect();
    }
}

fn ranged((job, newcomer): &(JobId, Newcomer)) -> Option<(JobId, TunedJob)> {
    match newcomer {
        Newcomer::Ranged(tuned) => Some((*job, TunedJob::clone(tuned))),
        Newcomer::Fixed(_) => None,
    }
}

/// Whether the share of a running job may change, but for the time since it last did.
fn may_change(job: &RunningJob) -> bool {
    job.phase == RunPhase::Running && job.allotting.is_none()
}

/// Why a job has another share, for its history.
fn why(tuned: &TunedJob, held: HostShare, to: HostShare, newcomer: Option<JobId>) -> String {
    let speeds = tuned.curve.as_ref().map(|curve| (curve.speed(held), curve.speed(to)));
    match (newcomer, speeds) {
        (Some(job), _) if !held.is_within(to) => format!("makes room for job {job}"),
        (_, Some((before, after))) => format!("its speed goes from {before:.2} to {after:.2}"),
        (_, None) if held.is_within(to) => "how much that speeds it up is not known yet".to_owned(),
        (_, None) => "others need it".to_owned(),
    }
}
