//! A decision round (section 4): sub-steps at one instant, each a joint action, until all nodes have enough
//! or nothing can start any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_types::{Bytes, HostShare, JobId, NodeId, Placement, Share, Slowdown, Time};

use super::features::{ResidentFigures, TaskFigures, pair_row, server_row, task_row};
use super::job_places::JobPlaces;
use super::observation::{JointObservation, ObservationShape, TASK_FEATURES};
use super::share_levels::{fixed_share_of, shares_of};
use super::situation::{PossibleStart, Situation};
use super::waiting_window::{WINDOW, WaitingJobs};
use crate::interference::GpuKind;
use crate::queue::expected_ends::estimate_end;
use crate::queue::unplaceable::UnplaceableDemands;
use crate::sensitivity::{JobCurve, KnownSensitivity};
use crate::sharing::Jobs;
use crate::{Action, FreeNodes, NodeView, PendingJob, Profile, RunPhase, RunningJob, View};

/// The most sub-steps of a round.
pub(super) const MOST_STEPS: usize = 2 * WINDOW;

/// A round while it is decided.
pub(super) struct Round<'v> {
    view: &'v View,
    pub(super) free: FreeNodes<'v>,
    residents: BTreeMap<NodeId, Vec<&'v RunningJob>>,
    taken: BTreeSet<JobId>,
    unplaceable: UnplaceableDemands,
    pub(super) gangs_tried: usize,
    pub(super) actions: Vec<Action>,
}

/// What a round asks.
pub(super) struct RoundKnowledge<'k> {
    pub(super) waiting: &'k WaitingJobs,
    pub(super) profiles: &'k BTreeMap<JobId, Profile>,
    pub(super) jobs: &'k mut Jobs,
    pub(super) places: &'k mut JobPlaces,
    pub(super) known: &'k KnownSensitivity,
    /// L: how many levels of a share the agents know, [`LEVELS`] or 1.
    pub(super) levels: usize,
}

impl<'v> Round<'v> {
    pub(super) fn new(view: &'v View) -> Round<'v> {
        let mut residents: BTreeMap<NodeId, Vec<&RunningJob>> = BTreeMap::new();
        for job in view.running.values() {
            for part in &job.placement.parts {
                residents.entry(part.node).or_default().push(job);
            }
        }
        Round {
            view,
            free: FreeNodes::new(&view.nodes),
            residents,
            taken: BTreeSet::new(),
            unplaceable: UnplaceableDemands::default(),
            gangs_tried: 0,
            actions: Vec::new(),
        }
    }

    /// What the agents observe now; `None` if nothing can start.
    pub(super) fn observe(&mut self, knowledge: &mut RoundKnowledge<'_>) -> Option<Situation> {
        let nodes: Vec<&NodeView> = self.free.nodes().collect();
        let typical = *nodes.first()?;
        let (view, waiting) = (self.view, knowledge.waiting);
        let mut may_start = |job: JobId| {
            let starts = nodes.iter().filter_map(|node| possible_start(&view.pending[&job], node, knowledge));
            starts.flat_map(|start| start.shares).any(|share| share.is_some())
        };
        let (window, is_first_due) =
            waiting.window(view, &self.free, &mut self.unplaceable, &self.taken, &mut may_start);
        let shape = ObservationShape { nodes: nodes.len(), jobs: WINDOW, levels: knowledge.levels };
        let mut observation = JointObservation::new(shape);
        for (place, node) in nodes.iter().enumerate() {
            observation.set_server(place, &server_row(node, &self.figures(node, knowledge)));
        }
        let mut by_arrival = window.clone();
        by_arrival.sort_by_key(|job| (self.view.pending[job].eligible_at, *job));
        let mut starts = vec![None; nodes.len() * window.len()];
        for (place, id) in window.iter().enumerate() {
            let job = &self.view.pending[id];
            let position = by_arrival.iter().position(|it| it == id).unwrap_or_default();
            let position = position as f64 / WINDOW as f64;
            observation.set_task(place, &self.task(job, typical, position, knowledge));
            for (number, node) in nodes.iter().enumerate() {
                let start = possible_start(job, node, knowledge);
                observation.set_pair(number, place, &pair_row(start.as_ref().map(|start| &start.place)));
                for level in
                    (0..knowledge.levels).filter(|it| start.as_ref().is_some_and(|s| s.shares[*it].is_some()))
                {
                    observation.allow(number, place, level);
                }
                starts[number * window.len() + place] = start;
            }
        }
        observation.is_anything_legal().then(|| Situation {
            nodes: nodes.iter().map(|node| (node.id, free_share(node))).collect(),
            window: window.iter().map(|id| (*id, knowledge.profiles[id].runtime)).collect(),
            is_first_due,
            starts,
            observation: Arc::new(observation),
        })
    }

    /// What is known of the running jobs on a node.
    fn figures(&self, node: &NodeView, knowledge: &mut RoundKnowledge<'_>) -> ResidentFigures {
        let slowdown = knowledge.places.mean_slowdown(node, knowledge.jobs);
        let mut figures = ResidentFigures { slowdown, ..ResidentFigures::default() };
        let residents = self.residents.get(&node.id).map_or(&[][..], Vec::as_slice);
        let mut known = 0.0;
        for job in residents.iter().filter(|job| job.phase == RunPhase::Running) {
            let rights = node.fair_share(&job.demand, job.demand.devices());
            figures.excess = figures.excess.plus(job.host_share().saturating_sub(rights));
            let profile = Profile::flat(&job.demand, &job.traits);
            let left = estimate_end(job, profile.runtime, self.view.now).since(self.view.now);
            figures.next_end = Some(figures.next_end.map_or(left, |known| known.min(left)));
            if let Some(curve) = knowledge.known.curve(node, &job.demand, &job.traits) {
                let gain = gains(&curve, job.host_share());
                figures.gain = (figures.gain.0 + gain.0, figures.gain.1 + gain.1);
                known += 1.0;
            }
        }
        figures.gain = (figures.gain.0 / f64::max(known, 1.0), figures.gain.1 / f64::max(known, 1.0));
        figures
    }

    fn task(
        &self,
        job: &PendingJob,
        typical: &NodeView,
        position: f64,
        knowledge: &mut RoundKnowledge<'_>,
    ) -> [f32; TASK_FEATURES] {
        let curve = knowledge.known.curve(typical, &job.demand, &job.traits);
        let device = typical.devices.first();
        let utilization = device.map_or(0.0, |device| {
            knowledge.jobs.insert_if_unknown(job);
            if job.demand.devices() == 0 {
                return 0.0;
            }
            knowledge.jobs.member(job.id, &GpuKind::named(&device.model)).member.busy()
        });
        let figures = TaskFigures {
            profile: &knowledge.profiles[&job.id],
            curve: curve.as_ref(),
            proportional: typical.proportional_share(1, Share::WHOLE),
            utilization,
            device_memory: device.and_then(|device| device.memory).map_or(0.0, |memory| memory.0 as f64),
            position,
        };
        task_row(job, &figures, self.view.now)
    }

    /// A node starts a job of the window at a level.
    pub(super) fn start(
        &mut self,
        situation: &Situation,
        (node, job, level): (usize, usize, usize),
        profile: &Profile,
        why: String,
        places: &mut JobPlaces,
    ) {
        let Some(start) = situation.start(node, job) else { return };
        let Some(share) = start.shares[level] else { return };
        let (id, node) = (situation.window[job].0, situation.nodes[node].0);
        let pending = &self.view.pending[&id];
        let Some(position) = self.free.position(node) else { return };
        let mut part = self.free.node(position).part(&pending.demand, start.place.devices.clone());
        part.host = pending.demand.up_to.map(|_| share);
        let placement = Placement { parts: vec![part] };
        self.free.take_as_resident(id, &pending.demand, &placement);
        places.forget(id, node);
        self.taken.insert(id);
        let shared = start.place.slowdown > 1.0;
        self.actions.push(Action::Place {
            job: id,
            placement,
            runtime: profile.expected_at(start.place.slowdown),
            slowdown: shared.then(|| Slowdown::from(start.place.slowdown)),
            why,
        });
    }

    /// A job that is placed by other means is not in the window any more.
    pub(super) fn take(&mut self, job: JobId) {
        self.taken.insert(job);
    }

    pub(super) const fn now(&self) -> Time {
        self.view.now
    }
}

fn possible_start(
    job: &PendingJob,
    node: &NodeView,
    knowledge: &mut RoundKnowledge<'_>,
) -> Option<PossibleStart> {
    let place = knowledge.places.find(job, node, knowledge.jobs)?;
    let curve = knowledge.known.curve(node, &job.demand, &job.traits);
    let shares = match knowledge.levels {
        1 => fixed_share_of(node, &job.demand),
        _ => shares_of(node, &job.demand, curve.as_ref()),
    };
    let speed = |share: &Option<HostShare>| match (share, &curve) {
        (Some(share), Some(curve)) => curve.speed(*share),
        (Some(_), None) => 1.0,
        (None, _) => 0.0,
    };
    let speeds = std::array::from_fn(|level| speed(&shares[level]));
    Some(PossibleStart { place, shares, speeds })
}

/// How much speed a job would gain by one more core, and by one more GiB.
fn gains(curve: &JobCurve, share: HostShare) -> (f64, f64) {
    let now = curve.speed(share);
    let more = HostShare { cpus: share.cpus + 1, ..share };
    let memory = HostShare { memory: share.memory + Bytes(1 << 30), ..share };
    (curve.speed(more) - now, curve.speed(memory) - now)
}

fn free_share(node: &NodeView) -> Share {
    node.devices.iter().map(|device| device.free).sum()
}
