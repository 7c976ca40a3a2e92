//! Every single stop keeps the rules: who may be stopped, for whom, and for which place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use cohabit_types::{Demand, JobId, LaunchMode, ModelDescription, PipelineStage, Span, Time};
use proptest::prelude::*;

use super::kit::{drawn, job, nodes, order, preemptible, watched};
use crate::gittins::GittinsOrder;
use crate::mapping::MapperOptions;
use crate::tests::cluster::{TestCluster, TestJob};
use crate::tests::kit::{anywhere, gpus};
use crate::{Action, FreeNodes, LinkDefaults, MappedPlacer, Placer, Plan, RunPhase, RunningJob, View};

const MARGIN: f64 = 0.5;
const THETA: f64 = 1.2;
const QUANTUM: f64 = 200.0;
const STOP_RATIO: f64 = 10.0;
const OPTIONS: &str =
    "margin=0.5,theta=1.2,quantum=200,stop-ratio=10,drain=0,lane=0.2,patience=1,patience-base=3000";

fn placer() -> MappedPlacer {
    MappedPlacer::new(MapperOptions::default(), LinkDefaults::default())
}

/// A stop for the sake of rank: the ranks of the stopped job and of the one for which it was stopped.
#[derive(Debug, Clone, Copy)]
struct Stop {
    victim: (JobId, f64),
    newcomer: (JobId, f64),
}

/// What was seen of all stops.
#[derive(Default)]
struct Stops {
    seen: Vec<Stop>,
    /// Jobs of the lane that run, with their starts.
    in_lane: BTreeMap<JobId, Time>,
    starts_in_lane: BTreeSet<JobId>,
    counter_stops: usize,
    good_places: usize,
    /// How long jobs were stopping, and had run before.
    stopping: f64,
    ran: f64,
}

/// The job for which a plan stops another, by its reason.
fn newcomer_of(why: &str) -> JobId {
    let number = why.strip_prefix("makes room for job ").and_then(|rest| rest.split([',', ' ']).next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{why}"))
}

impl Stops {
    fn check(&mut self, view: &View, plan: &Plan, order: &GittinsOrder<MappedPlacer>) {
        let in_lane = |(job, started): (&JobId, &mut Time)| {
            view.running.get(job).is_some_and(|it| it.started_at == *started)
        };
        self.in_lane.retain(|job, started| in_lane((job, started)));
        for job in std::mem::take(&mut self.starts_in_lane) {
            self.in_lane.extend(view.running.get(&job).map(|it| (job, it.started_at)));
        }
        for action in &plan.actions {
            match action {
                Action::Preempt { job, why } => self.check_stop(view, &view.running[job], why, order),
                Action::Place { job, why, .. } if why.starts_with("waited too long") => {
                    self.starts_in_lane.insert(*job);
                }
                Action::Reclaim { .. }
                | Action::StopIdle { .. }
                | Action::Place { .. }
                | Action::Allot { .. } => {}
            }
        }
        self.check_place(view, plan);
    }

    fn check_stop(
        &mut self,
        view: &View,
        victim: &RunningJob,
        why: &str,
        order: &GittinsOrder<MappedPlacer>,
    ) {
        let entry = order.state.running.get(victim.id).unwrap();
        let cost = order.state.stop_costs.of(entry.job.contexts.kind());
        let ran = view.now.since(victim.started_at).as_secs_f64();
        assert!(victim.traits.preemptible && victim.phase == RunPhase::Running, "{victim:?}");
        assert!(!self.in_lane.contains_key(&victim.id), "{} is in the lane", victim.id);
        assert!(ran >= QUANTUM.max(STOP_RATIO * cost), "it ran {ran} s, a stop costs {cost} s");
        self.ran += ran;
        if why.contains("which waited too long") {
            return;
        }
        let newcomer = newcomer_of(why);
        let devices = view.pending[&newcomer].demand.total_milli() as f64 / 1_000.0;
        let rank = order.state.waiting.entry_of(newcomer).unwrap().rank.value;
        let (contexts, estimated) = (&entry.job.contexts, entry.job.estimated);
        let fresh = order.state.beliefs.rest(contexts, estimated, entry.age(view.now), entry.limit());
        assert_eq!(entry.rank, entry.job.rank(fresh), "the rank of a running job is that of its present age");
        let price = (1.0 + MARGIN) * (rank + cost * devices);
        assert!(entry.rank.value > price, "{} is not above {price}", entry.rank.value);
        self.note(Stop { victim: (victim.id, entry.rank.value), newcomer: (newcomer, rank) });
    }

    /// If two jobs stop each other in turn, their ranks changed by the square of the margin meanwhile.
    fn note(&mut self, stop: Stop) {
        let pair = |it: &&Stop| [it.victim.0, it.newcomer.0].into_iter().collect::<BTreeSet<_>>();
        let last = self.seen.iter().rev().find(|it| pair(it) == pair(&&stop)).copied();
        if let Some(last) = last.filter(|it| it.victim.0 == stop.newcomer.0) {
            let change = stop.victim.1 / last.newcomer.1 * last.victim.1 / stop.newcomer.1;
            assert!(change > (1.0 + MARGIN).powi(2), "{last:?}, {stop:?}");
            self.counter_stops += 1;
        }
        self.seen.push(stop);
    }

    /// The first job for which a plan stops others gets a good place without them. Further ones may have
    /// been kept other room before.
    fn check_place(&mut self, view: &View, plan: &Plan) {
        if view.running.values().any(|job| job.phase == RunPhase::Stopping) {
            return;
        }
        let first = plan.actions.iter().position(|it| matches!(it, Action::Preempt { .. }));
        let Some(Action::Preempt { why, .. }) = first.map(|first| &plan.actions[first]) else { return };
        let newcomer = newcomer_of(why);
        let mut free = FreeNodes::new(&view.nodes);
        for (position, action) in plan.actions.iter().enumerate() {
            match action {
                Action::Place { job, placement, .. } if Some(position) < first => {
                    free.take_as_resident(*job, &view.pending[job].demand, placement);
                }
                Action::Preempt { job, why } if newcomer_of(why) == newcomer => {
                    let victim = &view.running[job];
                    free.give_back(&victim.demand, &victim.placement);
                }
                Action::Place { .. }
                | Action::Preempt { .. }
                | Action::Reclaim { .. }
                | Action::StopIdle { .. }
                | Action::Allot { .. } => {}
            }
        }
        let (mut placer, job) = (placer(), &view.pending[&newcomer]);
        placer.prepare(view);
        let profile = placer.profile(&job.demand, &job.traits);
        let place = placer.place(job, &profile, &free).map(|it| it.slowdown);
        assert!(place.as_ref().is_ok_and(|slowdown| *slowdown <= THETA), "{newcomer}: {place:?}");
        self.good_places += usize::from(job.demand.total_devices() > 1);
    }
}

/// A job that trains data-parallel, so that it suffers on several nodes.
fn training(mut job: TestJob) -> TestJob {
    let replicas = job.pending.demand.total_devices();
    let stage = PipelineStage {
        replicas,
        compute_seconds: 0.1,
        compute_seconds_on: BTreeMap::new(),
        activation_bytes: 0.0,
        gradient_bytes: 5e8,
    };
    Arc::make_mut(&mut job.pending.traits).launch = LaunchMode::PerGpu;
    job.iterations *= 5;
    job.training(ModelDescription { stages: vec![stage], ..ModelDescription::default() })
}

fn demands() -> impl Strategy<Value = Demand> {
    prop_oneof![4 => (1_u32..3).prop_map(gpus), 1 => (2_u32..6).prop_map(anywhere)]
}

fn workloads() -> impl Strategy<Value = Vec<TestJob>> {
    let length = prop_oneof![3 => 20_u64..600, 1 => 3_000_u64..20_000];
    let drawn = (0_u64..30_000, demands(), length, 0_u32..10, -1_i32..2);
    prop::collection::vec(drawn, 5..30).prop_map(|drawn| {
        let each = drawn.into_iter().zip(1..);
        each.map(|((arrives, demand, length, willing, priority), number)| {
            let mut it = job(number, arrives as f64, demand, length);
            it.pending.priority = priority / 2;
            let it = if demand.total_devices() > 1 { training(it) } else { it };
            if willing < 8 { preemptible(it) } else { it }
        })
        .collect()
    })
}

#[test]
fn every_stop_is_allowed_pays_and_makes_a_good_place() {
    let seen = Mutex::new(Stops::default());
    for (run, jobs) in drawn(workloads(), 150).enumerate() {
        let count = jobs.len();
        let mut cluster = TestCluster::new(nodes(2, 4), jobs, Box::new(placer()));
        // As long as the order assumes at most, with a start of the next attempt.
        cluster.stopping_takes = Span::from_secs(run as u64 % 16);
        let mut watched = watched(
            order(OPTIONS, placer()),
            |_, _, _| {},
            |view, plan, order| seen.lock().unwrap().check(view, plan, order),
        );
        let ran = cluster.run(&mut watched);
        assert_eq!(ran.len(), count, "run {run}");
        let mut seen = seen.lock().unwrap();
        let stops: u32 = ran.iter().map(|it| it.attempts - 1).sum();
        seen.stopping += f64::from(stops) * cluster.stopping_takes.as_secs_f64();
        seen.seen.clear();
        seen.in_lane.clear();
    }
    let seen = seen.into_inner().unwrap();
    assert!(seen.stopping <= seen.ran / 10.0, "{} s of {} s", seen.stopping, seen.ran);
    assert!(seen.good_places > 50 && seen.counter_stops > 10, "{} {}", seen.good_places, seen.counter_stops);
}
