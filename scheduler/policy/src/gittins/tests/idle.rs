//! No device idles while a job waits that fits it well, but for room that is kept for a gang or for what
//! stopped jobs leave; and the order asks to plan again while that may change.

use std::sync::Mutex;

use cohabit_types::{Demand, Span, Time};
use proptest::prelude::*;

use super::kit::{drawn, job, nodes, of, order, policy, preemptible, watched};
use crate::gittins::GittinsOrder;
use crate::tests::cluster::{TestCluster, TestJob, run};
use crate::tests::kit::{anywhere, gpus, part};
use crate::{Action, FirstFit, FreeNodes, Placer, Plan, Profile, RunPhase, View};

/// A twentieth of the default, so that what gangs would like to have is more.
const DRAIN: f64 = 0.001;
/// The longest time between two plans while jobs wait.
const LONGEST_PAUSE: f64 = 300.0;

/// What was kept idle so far.
#[derive(Default)]
struct Idle {
    began: Option<Time>,
    last: Option<(Time, u64)>,
    drained: f64,
    plans: usize,
}

impl Idle {
    fn check(&mut self, view: &View, plan: &Plan, drained: u64) {
        self.check_pause(view);
        self.last = Some((view.now, drained));
        let all: usize = view.nodes.iter().map(|node| node.devices.len()).sum();
        let so_far = view.now.since(*self.began.get_or_insert(view.now)).as_secs_f64();
        let one_drain = LONGEST_PAUSE * view.nodes[0].devices.len() as f64;
        let most = DRAIN * all as f64 * so_far + one_drain;
        assert!(self.drained <= most, "{} device-seconds were kept of {most}", self.drained);
        let is_stopped = |it: &Action| matches!(it, Action::Preempt { .. });
        let is_stopping = view.running.values().any(|job| job.phase == RunPhase::Stopping);
        if !is_stopping && !plan.actions.iter().any(is_stopped) {
            check_none_fits(view, plan, drained);
            self.plans += 1;
        }
    }

    fn check_pause(&mut self, view: &View) {
        let Some((at, drained)) = self.last else { return };
        let pause = view.now.since(at).as_secs_f64();
        self.drained += drained as f64 * pause;
        let waited_beside_running = !view.pending.is_empty() && !view.running.is_empty();
        let arrived_since = view.pending.values().all(|job| job.eligible_at > at);
        assert!(
            !waited_beside_running || arrived_since || pause <= LONGEST_PAUSE,
            "{pause} s without a plan"
        );
    }
}

/// Checks that no job fits what the plan leaves free, but for this many devices.
fn check_none_fits(view: &View, plan: &Plan, kept: u64) {
    let mut free = FreeNodes::new(&view.nodes);
    let mut waiting = view.pending.clone();
    for action in &plan.actions {
        let Action::Place { job, placement, .. } = action else { continue };
        free.take(&waiting.remove(job).unwrap().demand, placement);
    }
    let whole: u64 = free.nodes().map(|node| u64::from(node.roomy_devices(&gpus(1)).unwrap_or(0))).sum();
    for job in waiting.values() {
        let profile = Profile::flat(&job.demand, &job.traits);
        let fits = FirstFit.place(job, &profile, &free).is_ok();
        assert!(!fits || whole <= kept && kept > 0, "{} waits beside {whole} devices, {kept} kept", job.id);
    }
}

fn demands() -> impl Strategy<Value = Demand> {
    prop_oneof![
        5 => (1_u32..3).prop_map(gpus),
        2 => (2_u32..7).prop_map(anywhere),
        2 => (100_u32..900).prop_map(part),
        1 => Just(gpus(0)),
    ]
}

fn workloads(most: usize, within: u64) -> impl Strategy<Value = Vec<TestJob>> {
    let length = prop_oneof![3 => 1_u64..600, 1 => 3_000_u64..20_000];
    let drawn = (0..within, demands(), length, any::<bool>());
    prop::collection::vec(drawn, 5..most).prop_map(|drawn| {
        let each = drawn.into_iter().zip(1..);
        each.map(|((arrives, demand, length, willing), number)| {
            let it = job(number, arrives as f64, demand, length);
            if willing { preemptible(it) } else { it }
        })
        .collect()
    })
}

/// Runs the jobs, checks each plan, and returns the device-seconds that were kept idle.
fn kept_idle(servers: u8, jobs: Vec<TestJob>) -> f64 {
    let count = jobs.len();
    let idle = Mutex::new(Idle::default());
    let planned = |view: &View, plan: &Plan, order: &GittinsOrder<FirstFit>| {
        idle.lock().unwrap().check(view, plan, order.drained);
    };
    let options = format!("quantum=100,stop-ratio=1,drain={DRAIN},lane=0.1,patience=1,patience-base=5000");
    let mut watched = watched(order(&options, FirstFit), |_, _, _| {}, planned);
    let mut cluster = TestCluster::new(nodes(servers, 4), jobs, Box::new(FirstFit));
    cluster.stopping_takes = Span::from_secs(20);
    assert_eq!(cluster.run(&mut watched).len(), count);
    let idle = idle.into_inner().unwrap();
    assert!(idle.plans > count, "{} plans were checked", idle.plans);
    idle.drained
}

#[test]
fn no_device_idles_beside_a_job_that_fits_it_well() {
    for jobs in drawn(workloads(40, 30_000), 60) {
        assert_eq!(kept_idle(2, jobs), 0.0, "no gang is small enough to be kept room");
    }
}

#[test]
fn no_more_is_kept_idle_for_gangs_than_the_drain_allows() {
    let kept: f64 = drawn(workloads(150, 20_000), 12).map(|jobs| kept_idle(8, jobs)).sum();
    assert!(kept > 0.0, "nothing was ever kept");
}

#[test]
fn a_job_that_arrives_together_with_a_long_one_takes_its_place_after_the_quantum() {
    // Nothing happens between the start of the first and its end.
    let jobs = vec![preemptible(job(1, 0.0, gpus(1), 10_000)), job(2, 0.0, gpus(1), 100)];
    let ran = run(policy("a-srpt").as_mut(), nodes(1, 1), jobs);
    let first = of(&ran, 2).started_at.min(of(&ran, 1).started_at);
    assert_eq!(first, Time::EPOCH);
    assert!(of(&ran, 2).ended_at < Time::EPOCH + Span::from_secs(2_000), "{:?}", of(&ran, 2));
}
