//! Separates jobs that turned out to slow each other down beyond their limits.
//!
//! Only measurements of the very set count, never predictions. The job that started last is stopped, if that
//! gains more time than it costs. Which jobs were separated is not remembered here: the predictor knows the
//! measurement, so the same set is refused from then on.

use std::collections::BTreeMap;

use cohabit_types::{JobId, NodeId, Slowdown, Span, Time};

use super::HybridOptions;
use crate::interference::{ColocationEstimate, InterferenceContext, InternedSet, PredictionCache};
use crate::mapping::Toggle;
use crate::sharing::multi_stage::build_set;
use crate::sharing::{FreeDevice, Jobs};
use crate::{Action, NodeView, Plan, RunPhase, RunningJob, View, ViewChange};

/// An excess within this factor is measurement error.
const TOLERANCE: f64 = 1.05;

/// Jobs that have been together for less time are left alone: measurements of a start tell little.
const MIN_COLOCATED: Span = Span::from_secs(60);

/// A job is stopped for the sake of its neighbors at most this often.
const MAX_SEPARATIONS: u32 = 3;

/// The number of new sets in one plan.
const MAX_NEW: usize = 32;

/// Watches devices whose residents changed.
#[derive(Debug)]
pub(super) struct SlowdownGuard {
    switch: Toggle,
    max_slowdown: Option<Slowdown>,
    cache: PredictionCache,
    jobs: Jobs,
    /// Nodes that have to be checked, and from when on.
    due: BTreeMap<NodeId, Time>,
    /// How often each job was stopped.
    separations: BTreeMap<JobId, u32>,
}

/// One of the jobs on a device.
struct ColocatedJob<'v> {
    job: &'v RunningJob,
    estimates: ColocationEstimate,
    /// Its limit; `None` without one.
    allowed: Option<Slowdown>,
}

/// The result of checking a device.
enum Finding {
    /// Nothing to do before something changes.
    NoAction,
    /// Check again then.
    Recheck(Time),
    /// Stop this job, for this reason.
    Separate(JobId, String),
}

impl SlowdownGuard {
    pub(super) fn new(options: HybridOptions, context: &InterferenceContext) -> SlowdownGuard {
        let switch = match options.sharing {
            Toggle::On => options.watchdog,
            Toggle::Off => Toggle::Off,
        };
        SlowdownGuard {
            switch,
            max_slowdown: context.max_slowdown,
            cache: PredictionCache::new(context.interference.clone()),
            jobs: Jobs::new(context.solos.clone()),
            due: BTreeMap::new(),
            separations: BTreeMap::new(),
        }
    }

    /// Uses this knowledge of interference from now on, and checks everything again.
    pub(super) fn set_interference(&mut self, context: &InterferenceContext) {
        self.cache = PredictionCache::new(context.interference.clone());
        self.max_slowdown = context.max_slowdown;
        self.jobs.set_interference(context.solos.clone());
        self.due.values_mut().for_each(|at| *at = Time::EPOCH);
    }

    pub(super) fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        if self.switch == Toggle::Off {
            return;
        }
        self.jobs.learn(view.now, changes);
        for change in changes {
            match change {
                ViewChange::Node(node) => drop(self.due.insert(node.id, Time::EPOCH)),
                ViewChange::NodeGone(node) => drop(self.due.remove(node)),
                ViewChange::Gone(job) => drop(self.separations.remove(job)),
                ViewChange::Pending(_) | ViewChange::Running(_) | ViewChange::Shares(_) => {}
            }
        }
    }

    /// Stops one job on each device where a job is slowed down too much.
    pub(super) fn plan(&mut self, view: &View) -> Plan {
        let due = |node: &&NodeView| self.due.get(&node.id).is_some_and(|at| *at <= view.now);
        let nodes: Vec<&NodeView> = view.nodes.iter().filter(due).collect();
        let shared: Vec<FreeDevice<'_>> = nodes.iter().copied().flat_map(list_shared_devices).collect();
        let sets: Vec<InternedSet> = shared
            .iter()
            .map(|device| build_set(device, &self.jobs.on(device.view), &mut self.jobs))
            .collect();
        let estimates = self.cache.predict_some(&sets, MAX_NEW);
        self.due.extend(nodes.iter().map(|node| (node.id, Time::NEVER)));
        let mut plan = Plan::default();
        for ((device, set), estimates) in shared.iter().zip(&sets).zip(estimates) {
            // Sets that the predictor was not asked about yet come with the next plan.
            let finding = estimates.map_or(Finding::Recheck(view.now), |estimates| {
                self.check_device(device, set, estimates, view)
            });
            match finding {
                Finding::NoAction => {}
                Finding::Recheck(at) => {
                    let due = self.due.entry(device.node.id).or_insert(at);
                    *due = at.min(*due);
                }
                Finding::Separate(job, why) => {
                    *self.separations.entry(job).or_default() += 1;
                    plan.actions.push(Action::Preempt { job, why });
                }
            }
        }
        plan.wake = self.due.values().copied().filter(|at| *at > view.now && *at < Time::NEVER).min();
        plan
    }

    fn check_device(
        &mut self,
        device: &FreeDevice<'_>,
        set: &InternedSet,
        estimates: Vec<ColocationEstimate>,
        view: &View,
    ) -> Finding {
        let Some(residents) = self.list_residents(device, estimates, view) else { return Finding::NoAction };
        let Some(harmed) = residents.iter().max_by(|a, b| a.excess().total_cmp(&b.excess())) else {
            return Finding::NoAction;
        };
        if harmed.excess() <= TOLERANCE && work_together(&residents) >= 1.0 / TOLERANCE {
            return Finding::NoAction;
        }
        let last = residents.iter().map(|it| it.job.started_at).max().unwrap_or(Time::EPOCH);
        if last + MIN_COLOCATED > view.now {
            return Finding::Recheck(last + MIN_COLOCATED);
        }
        let came_last = |it: &&ColocatedJob<'_>| {
            let number = it.job.id;
            (it.job.started_at, std::cmp::Reverse(it.job.priority), number)
        };
        let Some(leaves) = residents.iter().max_by_key(came_last) else { return Finding::NoAction };
        let spared = self.separations.get(&leaves.job.id).is_some_and(|times| *times >= MAX_SEPARATIONS);
        let lost = view.now.since(leaves.job.started_at).as_secs_f64();
        if spared || self.compute_gain(set, &residents, leaves.job.id) <= lost {
            return Finding::NoAction;
        }
        Finding::Separate(leaves.job.id, explain(harmed, leaves, &residents, &device.view.id.0))
    }

    /// The jobs on a device with their estimates; `None` where one of them is about to stop.
    fn list_residents<'v>(
        &self,
        device: &FreeDevice<'_>,
        estimates: Vec<ColocationEstimate>,
        view: &'v View,
    ) -> Option<Vec<ColocatedJob<'v>>> {
        let resident = |(id, estimates)| {
            let job = view.running.get(&id).filter(|job| job.phase == RunPhase::Running)?;
            Some(ColocatedJob { job, estimates, allowed: job.demand.max_slowdown.or(self.max_slowdown) })
        };
        self.jobs.on(device.view).into_iter().zip(estimates).map(resident).collect()
    }

    /// How many seconds sooner the jobs end, in sum, once one has left and has a device of its own.
    fn compute_gain(&mut self, set: &InternedSet, residents: &[ColocatedJob<'_>], leaves: JobId) -> f64 {
        let stays = |place: &usize| residents[*place].job.id != leaves;
        let staying: Vec<usize> = (0..residents.len()).filter(stays).collect();
        let members = staying.iter().map(|place| set.members[*place].clone()).collect();
        let without = InternedSet { members, ..set.clone() };
        let mut after = self.cache.predict(std::slice::from_ref(&without)).remove(0).into_iter();
        let gain = |resident: &ColocatedJob<'_>| {
            let slowdown = match resident.job.id == leaves {
                true => 1.0,
                false => after.next().map_or(1.0, |estimates| estimates.slowdown),
            };
            let left = self.jobs.ends_in(resident.job.id).unwrap_or(Span::ZERO).as_secs_f64();
            left * (1.0 - slowdown / resident.estimates.slowdown).max(0.0)
        };
        residents.iter().map(gain).sum()
    }
}

impl ColocatedJob<'_> {
    /// The measured slowdown relative to the limit: 1 is exactly the limit; 0 without a measurement.
    fn excess(&self) -> f64 {
        match self.allowed {
            Some(allowed) if self.estimates.measured => self.estimates.slowdown / allowed.as_f64(),
            Some(_) | None => 0.0,
        }
    }
}

/// The work that these jobs do together by their measured slowdowns, in that of one device with one job. One
/// without a measurement counts as not slowed down.
fn work_together(residents: &[ColocatedJob<'_>]) -> f64 {
    let speed = |it: &ColocatedJob<'_>| if it.estimates.measured { 1.0 / it.estimates.slowdown } else { 1.0 };
    residents.iter().map(speed).sum()
}

/// The devices of a node with more than one resident.
fn list_shared_devices(node: &NodeView) -> impl Iterator<Item = FreeDevice<'_>> {
    let crowded = node.devices.iter().filter(|device| device.jobs.len() > 1);
    crowded.map(move |device| FreeDevice { node, view: device })
}

fn explain(
    harmed: &ColocatedJob<'_>,
    leaves: &ColocatedJob<'_>,
    residents: &[ColocatedJob<'_>],
    device: &str,
) -> String {
    let others = residents.iter().filter(|it| it.job.id != harmed.job.id);
    let others: Vec<String> = others.map(|it| it.job.id.to_string()).collect();
    let slowdown = Slowdown::from(harmed.estimates.slowdown);
    let limit = match harmed.allowed {
        Some(allowed) if harmed.excess() > TOLERANCE => format!("{allowed} is allowed"),
        Some(_) | None => "the jobs there do less work together than one after the other".to_owned(),
    };
    let measured = format!(
        "job {} has a measured slowdown of {slowdown} beside job {} on {device}, and {limit}",
        harmed.job.id,
        others.join(" and "),
    );
    match leaves.job.id == harmed.job.id {
        true => format!("{measured}. It started last, so it is queued again"),
        false => format!("{measured}. Job {} started last, so it is queued again", leaves.job.id),
    }
}
