//! The lane for jobs that waited too long: how much device time they get before others, and in which order.

use std::collections::BTreeMap;

use cohabit_types::{JobId, Time};
use proptest::prelude::*;

use super::kit::{job, nodes, order, preemptible, seconds, tell_totals, totals, watched};
use crate::gittins::GittinsOrder;
use crate::tests::cluster::{TestCluster, TestJob};
use crate::tests::kit::gpus;
use crate::{Action, FirstFit, Plan, View, ViewChange};

const DEVICES: usize = 10;
const LANE: f64 = 0.2;
const PATIENCE: f64 = 2.0;
const PATIENCE_BASE: f64 = 500.0;

/// What the lane was given so far.
#[derive(Default)]
struct Lane {
    /// When each job becomes overdue if it holds no device until then: its submission and its patience.
    due: BTreeMap<JobId, f64>,
    /// Jobs of the lane that run: their starts.
    running: BTreeMap<JobId, Time>,
    /// Device-seconds of those that ended.
    spent: f64,
    began: Option<Time>,
    starts: usize,
}

impl Lane {
    /// Computes when the jobs that arrive will have waited too long.
    fn learn(&mut self, order: &GittinsOrder<FirstFit>, changes: &[ViewChange]) {
        for change in changes {
            let ViewChange::Pending(job) = change else { continue };
            let typical = order.state.waiting.entry_of(job.id).unwrap().rank.rest.typical;
            let due = seconds(job.submitted_at) + PATIENCE * (PATIENCE_BASE + typical);
            self.due.entry(job.id).or_insert(due);
        }
    }

    fn check(&mut self, view: &View, plan: &Plan, totals: &BTreeMap<JobId, f64>) {
        let began = *self.began.get_or_insert(view.now);
        self.running.retain(|job, started| {
            let runs = view.running.contains_key(job);
            self.spent += if runs { 0.0 } else { totals[job] };
            runs && *started <= view.now
        });
        let running: f64 = self.running.values().map(|at| view.now.since(*at).as_secs_f64()).sum();
        let longest = totals.values().copied().fold(0.0, f64::max);
        let most = LANE * DEVICES as f64 * view.now.since(began).as_secs_f64() + longest;
        let spent = self.spent + running;
        assert!(spent <= most + 1e-3, "the lane got {spent} device-seconds of {most}");
        self.check_order(view, plan);
    }

    /// Checks that of those that waited too long the earliest go first.
    fn check_order(&mut self, view: &View, plan: &Plan) {
        let due = |job: &JobId, view: &View| self.due[job] + view.pending[job].attained.held.as_secs_f64();
        let in_lane = |action: &Action| match action {
            Action::Place { job, why, .. } if why.starts_with("waited too long") => Some(*job),
            Action::Place { .. }
            | Action::Preempt { .. }
            | Action::Reclaim { .. }
            | Action::StopIdle { .. }
            | Action::Allot { .. } => None,
        };
        let started: Vec<JobId> = plan.actions.iter().filter_map(in_lane).collect();
        let times: Vec<f64> = started.iter().map(|job| due(job, view)).collect();
        assert!(times.is_sorted(), "{started:?} are due at {times:?}");
        let placed = |job: &JobId| {
            plan.actions.iter().any(|it| matches!(it, Action::Place { job: it, .. } if it == job))
        };
        let left = view.pending.keys().filter(|job| !placed(job));
        let earliest_left = left.map(|job| due(job, view)).fold(f64::INFINITY, f64::min);
        let last = times.last().copied().unwrap_or(0.0);
        assert!(last <= seconds(view.now) + 1e-3 && last <= earliest_left + 1e-3, "{last}, {earliest_left}");
        self.starts += started.len();
        self.running.extend(started.into_iter().map(|job| (job, view.now)));
    }
}

/// Runs the jobs, whose work times are known; returns how many started in the lane.
fn starts_in_lane(jobs: Vec<TestJob>) -> usize {
    let (known, count) = (totals(&jobs), jobs.len());
    let lane = std::sync::Mutex::new(Lane::default());
    let options =
        format!("lane={LANE},patience={PATIENCE},patience-base={PATIENCE_BASE},quantum=0,stop-ratio=0");
    let mut watched = watched(
        order(&options, FirstFit),
        |order, _, changes| {
            lane.lock().unwrap().learn(order, changes);
            tell_totals(order, changes, &known);
        },
        |view, plan, _| lane.lock().unwrap().check(view, plan, &known),
    );
    let ran = TestCluster::new(nodes(1, DEVICES), jobs, Box::new(FirstFit)).run(&mut watched);
    assert_eq!(ran.len(), count);
    lane.into_inner().unwrap().starts
}

/// A burst of long jobs, and short ones that go before them for long.
fn jobs(long: &[u64], short: &[u64]) -> Vec<TestJob> {
    let long = long.iter().enumerate().map(|(at, length)| (at as f64, *length));
    let short = short.iter().enumerate().map(|(at, length)| (at as f64 * 30.0, *length));
    let all = long.chain(short).zip(1..);
    all.map(|((arrives, length), number)| preemptible(job(number, arrives, gpus(1), length))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_lane_gets_its_part_and_one_job_and_serves_the_longest_overdue_first(
        long in prop::collection::vec(5_000_u64..20_000, 1..40),
        short in prop::collection::vec(100_u64..1_000, 0..150),
    ) {
        starts_in_lane(jobs(&long, &short));
    }
}

#[test]
fn many_jobs_of_a_burst_are_served_in_the_lane() {
    let short: Vec<u64> = (0..400).map(|number| 200 + number % 7 * 50).collect();
    let long: Vec<u64> = (0..30).map(|number| 5_000 + 500 * number).collect();
    assert!(starts_in_lane(jobs(&long, &short)) > 5);
}
