//! Invariants of the order that stops jobs for others: whom a plan may stop, that it leaves no device idle
//! beside a job that fits it, and that the policy is asked again while jobs wait.
//!
//! A plan is checked against the view for which it was made, so that late plans and crashes excuse nothing.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_policy::{Action, FreeNodes, NodeView, PendingJob, Plan, RunPhase, RunningJob, View};
use cohabit_types::{HeldFor, JobId, Span, Time};

use crate::reclaim_checks::ReclaimChecks;

/// How a plan says that it stops a job for another, and that a job had waited too long.
const FOR_ANOTHER: &str = "makes room for job";
const OVERDUE: &str = "waited too long";

/// The quantum where the policy's text states none.
const DEFAULT_QUANTUM: Span = Span::from_secs(600);

/// The order asks for its next plan within 300 s; requests may be delayed.
const LONGEST_PAUSE: Span = Span::from_secs(360);

/// A pause that is too long is a violation if nobody notices it for this long.
const LATENESS: Span = Span::from_secs(60);

/// A job gives something up only this long after the last change.
const PAUSE_OF_CHANGES: Span = Span::from_secs(2);

/// How long a job on several devices waits before room is kept for it where its user is next.
const NEXT_GANG_WAITS: Span = Span::from_secs(30 * 60);

/// Only gangs of at most this part of all devices are kept room while they wait.
const LARGEST_DRAIN: usize = 16;

/// What is known of the plans so far.
#[derive(Debug)]
pub(crate) struct OrderChecks {
    /// How long a job runs before it may be stopped; `None` where another order plans.
    quantum: Option<Span>,
    /// Jobs that the last plan started because they had waited too long.
    overdue_starts: BTreeSet<JobId>,
    /// Those that run, with their starts.
    in_lane: BTreeMap<JobId, Time>,
    /// Whether the plan that comes next is the policy's.
    is_by_policy: bool,
    asked: Asked,
    reclaims: ReclaimChecks,
}

/// Whether the policy has to be asked again by and by.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    /// It plans, or nothing waits for its plans.
    Enough,
    /// It has planned, and what it left waits.
    Waits(Moment),
    /// It was found not to have been asked for too long.
    Late(Moment),
}

/// One moment, by the true clock and by that of the head: after a jump of one, the other still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at: Time,
    pub(crate) by_head: Time,
}

impl Moment {
    fn is_longer_ago(self, than: Span, now: Moment) -> bool {
        now.at.since(self.at).min(now.by_head.since(self.by_head)) > than
    }
}

impl OrderChecks {
    /// The checks for the policy with this text.
    pub(crate) fn of(policy: &str) -> OrderChecks {
        let (name, options) = policy.split_once(':').unwrap_or((policy, ""));
        let stated = options.split(',').find_map(|it| it.strip_prefix("quantum=")?.parse().ok());
        let quantum = stated.map_or(DEFAULT_QUANTUM, Span::from_secs_f64);
        OrderChecks {
            quantum: matches!(name, "a-srpt" | "hybrid").then_some(quantum),
            overdue_starts: BTreeSet::new(),
            in_lane: BTreeMap::new(),
            is_by_policy: false,
            asked: Asked::Enough,
            reclaims: ReclaimChecks::default(),
        }
    }

    /// A new policy plans from now on: it knows nothing of the plans before.
    pub(crate) fn restart(&mut self) {
        self.overdue_starts.clear();
        self.in_lane.clear();
        self.reclaims = ReclaimChecks::default();
        self.asked = Asked::Enough;
    }

    /// Checks a plan against the view for which the policy made it.
    ///
    /// # Errors
    /// With the first rule that it breaks.
    pub(crate) fn check_plan(&mut self, view: &View, plan: &Plan) -> Result<(), String> {
        self.follow_lane(view);
        for action in &plan.actions {
            match action {
                Action::Preempt { job, why } if why.starts_with(FOR_ANOTHER) => {
                    let job = view.running.get(job).ok_or("a plan stops a job that does not run")?;
                    self.check_victim(view.now, job)?;
                }
                Action::Place { job, why, .. } if why.starts_with(OVERDUE) => {
                    self.overdue_starts.insert(*job);
                }
                Action::Preempt { .. }
                | Action::Reclaim { .. }
                | Action::StopIdle { .. }
                | Action::Place { .. }
                | Action::Allot { .. } => {}
            }
        }
        self.reclaims.check_plan(view, plan)?;
        match self.quantum {
            Some(_) if !self.reclaims.keep_room() => check_idle(view, plan),
            Some(_) | None => Ok(()),
        }
    }

    /// A job that started because it had waited too long stays in the lane as long as it runs.
    fn follow_lane(&mut self, view: &View) {
        self.in_lane.retain(|job, started| view.running.get(job).is_some_and(|it| it.started_at == *started));
        for job in std::mem::take(&mut self.overdue_starts) {
            if let Some(running) = view.running.get(&job) {
                self.in_lane.insert(job, running.started_at);
            }
        }
    }

    fn check_victim(&self, now: Time, job: &RunningJob) -> Result<(), String> {
        let ran = now.since(job.started_at);
        let why_not = match () {
            () if !job.traits.preemptible => "it may not be stopped".to_owned(),
            () if job.phase == RunPhase::Stopping => "it was told to stop before".to_owned(),
            () if self.in_lane.contains_key(&job.id) => "it had waited too long before it started".to_owned(),
            () if self.quantum.is_some_and(|quantum| ran < quantum) => {
                format!("it has only run for {ran}, before its quantum")
            }
            () => return Ok(()),
        };
        Err(format!("a plan stops job {} for another, but {why_not}", job.id))
    }

    /// A plan is asked for: the policy answers, or another one in its place.
    pub(crate) const fn asks(&mut self, is_answered_by_policy: bool) {
        self.is_by_policy = is_answered_by_policy;
        self.asked = Asked::Enough;
    }

    /// The head carries out a plan; a policy makes it for this view.
    pub(crate) fn carried_out(&mut self, view: &View, plan: &Plan, now: Moment) {
        let placed = |job: &&JobId| plan.actions.iter().any(|it| starts(it, **job));
        let starts = view.pending.keys().filter(placed).count();
        let is_waited_for = starts < view.pending.len() && (starts > 0 || !view.running.is_empty());
        if self.quantum.is_some() && self.is_by_policy && is_waited_for {
            self.asked = Asked::Waits(now);
        }
    }

    /// The head lost what it wanted: it asks again after its restart.
    pub(crate) const fn expects_nothing(&mut self) {
        self.asked = Asked::Enough;
    }

    /// Checks that the policy is asked often enough. `waits` says whether jobs wait beside running ones.
    ///
    /// # Errors
    /// If it was not asked for too long.
    pub(crate) fn check_pause(&mut self, now: Moment, waits: impl FnOnce() -> bool) -> Result<(), String> {
        match self.asked {
            Asked::Waits(since) if since.is_longer_ago(LONGEST_PAUSE, now) => {
                self.asked = if waits() { Asked::Late(now) } else { Asked::Enough };
                Ok(())
            }
            Asked::Late(since) if since.is_longer_ago(LATENESS, now) => {
                Err("jobs wait beside running ones, and the policy is not asked again".to_owned())
            }
            Asked::Enough | Asked::Waits(_) | Asked::Late(_) => Ok(()),
        }
    }
}

/// How many jobs a plan stops for others, and how many it starts because they had waited too long.
pub(crate) fn count_stops(plan: &Plan) -> (u64, u64) {
    let stops = |it: &&Action| matches!(it, Action::Preempt { why, .. } if why.starts_with(FOR_ANOTHER));
    let overdue = |it: &&Action| matches!(it, Action::Place { why, .. } if why.starts_with(OVERDUE));
    let count = |is: &dyn Fn(&&Action) -> bool| plan.actions.iter().filter(is).count() as u64;
    (count(&stops), count(&overdue))
}

fn starts(action: &Action, job: JobId) -> bool {
    matches!(action, Action::Place { job: placed, .. } if *placed == job)
}

/// Checks that no job is left waiting that fits a device without jobs, unless room is kept.
fn check_idle(view: &View, plan: &Plan) -> Result<(), String> {
    let mut free = FreeNodes::new(&view.nodes);
    for action in &plan.actions {
        match action {
            Action::Place { job, placement, .. } => {
                free.take_as_resident(*job, &view.pending[job].demand, placement);
            }
            // What is free may be kept together with what a stopped job, or a smaller one, leaves.
            Action::Preempt { .. }
            | Action::Reclaim { .. }
            | Action::StopIdle { .. }
            | Action::Allot { .. } => return Ok(()),
        }
    }
    if keeps_room(view) {
        return Ok(());
    }
    // What is lent only to jobs that can be given back may be idle beside others.
    let may_wait = |job: &&PendingJob| job.demand.held_for == HeldFor::Unlimited;
    let waiting = view.pending.values().filter(|job| !plan.actions.iter().any(|it| starts(it, job.id)));
    let waiting = waiting.filter(|job| !may_wait(job));
    let mut idle = waiting.filter(|job| free.nodes().any(|node| has_idle_device(node, job)));
    idle.next().map_or(Ok(()), |job| Err(format!("job {} waits although it fits an idle device", job.id)))
}

/// Whether free devices may be kept: for what stopping jobs, or smaller ones, leave, or for a gang.
fn keeps_room(view: &View) -> bool {
    let all: usize = view.nodes.iter().map(|node| node.devices.len()).sum();
    let is_small_gang =
        |job: &PendingJob| (2..=all / LARGEST_DRAIN).contains(&(job.demand.total_devices() as usize));
    // Where users take turns, room may be kept for a larger one, too, once it has waited.
    let is_next_gang = |job: &PendingJob| {
        let has_waited = view.now.since(job.eligible_at) >= NEXT_GANG_WAITS;
        view.fair_shares.is_some() && job.demand.total_devices() > 1 && has_waited
    };
    let gives_up = |job: &RunningJob| {
        let changed = view.now.since(job.allotted_at) < PAUSE_OF_CHANGES && job.demand.is_fungible();
        job.allotting.is_some() || changed
    };
    view.running.values().any(|job| job.phase == RunPhase::Stopping || gives_up(job))
        || view.pending.values().any(|job| is_small_gang(job) || is_next_gang(job))
}

/// Whether a job with one device, for which all places are alike, fits a device that runs nothing.
fn has_idle_device(node: &NodeView, job: &PendingJob) -> bool {
    let fitting = || node.first_devices(&job.demand, u32::MAX);
    let is_idle = |id| node.devices.iter().any(|device| device.id == id && device.jobs.is_empty());
    job.demand.total_devices() == 1
        && node.roomy_devices(&job.demand).is_some()
        && fitting().into_iter().any(is_idle)
}
