//! The bounds that promised turns keep, on random instances with estimated iterations: for each job, for the
//! sum, and for the lane at each moment. All jobs may be stopped, at once and at no cost.
//!
//! The optimum of an instance is unknown; a lower bound stands in, which makes the claim stronger.

use std::collections::BTreeMap;

use cohabit_types::{JobId, Time};

use crate::a_srpt::tests::bounds::{Numbers, at_most};
use crate::a_srpt::tests::instances::{Draws, Instance, Shape, completion, place};
use crate::gittins::{GittinsOrder, OrderOptions};
use crate::tests::cluster::Ran;
use crate::{
    Action, FreeNodes, MappedPlacer, PendingJob, PendingReason, Plan, Policy, Profile, Proposal, RunPhase,
    Shortage, View, ViewChange,
};

/// The lane looks at most this long after a due time, in seconds.
const WAKES_AFTER: f64 = 1.0;

/// The order with promised turns, and what it promised.
struct Watched {
    order: GittinsOrder<MappedPlacer>,
    /// The devices of the lane where no job needs more.
    lane: u64,
    due: BTreeMap<JobId, Time>,
}

fn devices(job: &cohabit_types::Demand) -> u64 {
    u64::from(job.total_devices())
}

impl Watched {
    fn new(place: &MappedPlacer, all: u64, factor: f64, lane: f64) -> Watched {
        let mut options = OrderOptions::default();
        let pairs = [
            ("promise", "turn"),
            ("promise-factor", &factor.to_string()),
            ("lane", &lane.to_string()),
            ("quantum", "0"),
            ("stop-ratio", "0"),
        ];
        pairs.iter().for_each(|(key, value)| options.set(key, value).unwrap());
        let order = GittinsOrder::new(options, place.clone());
        Watched { order, lane: (lane * all as f64).ceil() as u64, due: BTreeMap::new() }
    }

    fn note_due_times(&mut self, view: &View) {
        for job in view.pending.keys().chain(view.running.keys()) {
            self.due.extend(self.order.due_at(*job).map(|due_at| (*job, due_at)));
        }
    }

    /// The lane holds the jobs that were due first, as many as there is room for.
    fn check_lane(&self, view: &View, plan: &Plan) {
        let in_lane = |job: &JobId| self.order.is_in_lane(*job);
        let stops = |action: &Action| matches!(action, Action::Preempt { .. });
        for action in &plan.actions {
            if let Action::Preempt { job, why } = action {
                assert!(!in_lane(job), "job {job} of the lane is stopped: {why}");
            }
        }
        let stopping = view.running.values().any(|job| job.phase == RunPhase::Stopping);
        if stopping || plan.actions.iter().any(stops) {
            return;
        }
        let live: BTreeMap<JobId, u64> = view
            .pending
            .values()
            .map(|job| (job.id, devices(&job.demand)))
            .chain(view.running.values().map(|job| (job.id, devices(&job.demand))))
            .collect();
        let overdue = |job: &&JobId| self.due.get(job).is_some_and(|due_at| *due_at <= view.now);
        let outside = live.keys().filter(overdue).filter(|job| !in_lane(job));
        let Some(first) = outside.min_by_key(|job| (self.due[job], **job)) else { return };
        let lane: Vec<&JobId> = live.keys().filter(|job| in_lane(job)).collect();
        for member in &lane {
            assert!(self.due.get(member) <= self.due.get(first), "{member} is due after {first}");
        }
        let used: u64 = lane.iter().map(|job| live[job]).sum();
        assert!(used + live[first] > self.lane.max(live[first]), "{first} finds room: {used}");
    }
}

impl Policy for Watched {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.order.learn(view, changes);
        self.note_due_times(view);
    }

    fn plan(&mut self, view: &View) -> Plan {
        let plan = self.order.plan(view);
        self.note_due_times(view);
        self.check_lane(view, &plan);
        plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        self.order.explain_pending(view)
    }

    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        self.order.dry_run_on(view, job, free)
    }
}

/// Few devices and many jobs, so that nearly all wait beyond their due times.
fn shape(seed: u64) -> Shape {
    let (nodes, devices) = [(2, 4), (3, 3), (4, 2), (1, 8), (6, 2)][seed as usize % 5];
    Shape { nodes, devices, jobs: 14, error: [0.0, 0.8, 2.0][seed as usize % 3] }
}

/// The time of all attempts of a job with its devices is at most this, in seconds.
fn longest(instance: &Instance, profiles: &[Profile], at: usize) -> f64 {
    instance.jobs[at].iterations as f64 * profiles[at].bounds.unwrap().slowest
}

/// Each job ends in time: by the work of those that were due before, and by the due time alone.
fn check_jobs(
    seed: u64,
    instance: &Instance,
    profiles: &[Profile],
    numbers: &Numbers,
    watched: &Watched,
    ran: &[Ran],
) -> usize {
    let mut checked = 0;
    let crowd = (watched.lane.max(numbers.largest) - numbers.largest + 1) as f64;
    let due: Vec<Option<Time>> = ran.iter().map(|it| watched.due.get(&it.job).copied()).collect();
    for (at, it) in ran.iter().enumerate() {
        let Some(due_at) = due[at].map(Time::as_secs_f64) else { continue };
        let earlier = |other: &usize| *other != at && due[*other].is_some_and(|it| Some(it) <= due[at]);
        let work = |other: usize| longest(instance, profiles, other) * profiles[other].milli as f64 / 1_000.0;
        let ahead: f64 = (0..ran.len()).filter(earlier).map(work).sum();
        let own = longest(instance, profiles, at) + WAKES_AFTER;
        let ended = it.ended_at.as_secs_f64();
        assert!(at_most(ended, due_at + ahead / crowd + own), "seed {seed}: {:?} {due_at} {ended}", it.job);
        let factor = numbers.nu * numbers.rho * numbers.devices as f64 / crowd;
        assert!(at_most(ended, due_at * (1.0 + factor) + own), "seed {seed}: {:?} {due_at} {ended}", it.job);
        checked += 1;
    }
    checked
}

/// Runs instances; returns how many jobs were due before they ended.
fn check(seeds: std::ops::Range<u64>) -> usize {
    let mut place = place();
    let mut checked = 0;
    for seed in seeds {
        let draws = &mut Draws::new(seed ^ 0x5eed);
        let factor = [1.0, 1.5, 4.0][draws.below(3)];
        let lane = [0.0, 0.05, 0.3, 0.6, 1.0][draws.below(5)];
        let instance = Instance::draw(shape(seed), seed);
        let profiles = instance.profiles(&mut place);
        let numbers = Numbers::of(&instance, &profiles, &mut place);
        let mut watched = Watched::new(&place, numbers.devices, factor, lane);
        let ran = instance.run_policy(&mut watched, &place);
        checked += check_jobs(seed, &instance, &profiles, &numbers, &watched, &ran);
        let crowd = (watched.lane.max(numbers.largest) - numbers.largest + 1) as f64;
        let in_lane = 1.0 + numbers.nu * numbers.rho * numbers.devices as f64 / crowd;
        let ratio = numbers.mu * factor * in_lane + numbers.rho;
        assert!(at_most(completion(&ran), ratio * numbers.least), "seed {seed}");
    }
    checked
}

#[test]
fn promised_turns_keep_the_bounds_of_each_job_and_of_the_sum() {
    let checked = check(0..300);
    assert!(checked > 1_000, "only {checked} jobs were due before they ended");
}

#[test]
#[ignore = "takes minutes"]
fn promised_turns_keep_the_bounds_on_many_more_instances() {
    let checked = check(1_000..20_000);
    assert!(checked > 50_000, "only {checked} jobs were due before they ended");
}
