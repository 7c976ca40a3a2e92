//! Shares follow sensitivity, who starts has its rightful share, and nothing is given before it is free.

use std::sync::Arc;

use cohabit_types::{Bytes, Demand, GpuRequest, HostShare, JobId, Span, Time};
use proptest::prelude::*;

use crate::tests::cluster::{TestJob, run};
use crate::tests::kit::{gpus, job, node};
use crate::{
    Action, FreeNodes, JobTraits, NodeView, PendingJob, Policy, RunningJob, SensitivityProfiles,
    SensitivityTable, View, ViewChange, parse_policy,
};

const GB: u64 = 1_000_000_000;

/// Speeds at 1, 2, 3, 4, 5, 6, 9, 12 and 24 cores of a model that needs cores.
const IMAGES: [f64; 9] = [0.37, 0.72, 1.0, 1.3, 1.53, 1.75, 2.4, 2.4, 2.4];

const fn host(cpus: u32, gb: u64) -> HostShare {
    HostShare { cpus, memory: Bytes(gb * GB) }
}

/// A server with 8 GPUs, 24 cores and 500 GB.
fn server() -> NodeView {
    let (cpus, memory) = (24, Bytes(500 * GB));
    NodeView { cpus, cpus_free: cpus, memory, memory_free: memory, ..node(1, &[1_000; 8]) }
}

/// A job with one GPU that takes 1 to 24 cores and 20 to 500 GB.
fn ranged(number: u64, model: &str) -> PendingJob {
    let least = host(1, 20);
    let demand =
        Demand { cpus: least.cpus, memory: least.memory, up_to: Some(host(24, 500)), ..Demand::default() };
    let job = job(number, demand);
    let traits = JobTraits { group: Some(model.to_owned()), ..JobTraits::clone(&job.traits) };
    PendingJob { traits: Arc::new(traits), ..job }
}

fn profiles() -> Arc<SensitivityProfiles> {
    let levels = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0];
    let table = |speeds: [f64; 9]| {
        let rows: Vec<Vec<f64>> = speeds.iter().map(|speed| vec![*speed; 2]).collect();
        let memory = [20, 62].map(|gb| Bytes(gb * GB));
        Arc::new(SensitivityTable::new(levels.to_vec(), &memory, &rows).unwrap())
    };
    let mut profiles = SensitivityProfiles::default();
    profiles.insert("images", table(IMAGES));
    profiles.insert("text", table([1.0; 9]));
    Arc::new(profiles)
}

/// A cluster that a tuned policy plans, and whose workers answer when they are told to.
struct Board {
    view: View,
    policy: Box<dyn Policy>,
    changes: Vec<ViewChange>,
}

impl Board {
    fn new(nodes: Vec<NodeView>) -> Board {
        let mut policy = parse_policy("fifo-greedy:tune=on").unwrap();
        policy.set_sensitivity(&profiles());
        let view = View { now: Time::EPOCH, nodes, ..View::default() };
        Board { changes: view.as_changes(), view, policy }
    }

    fn change(&mut self, change: ViewChange) {
        self.view.apply(std::slice::from_ref(&change));
        self.changes.push(change);
    }

    fn submit(&mut self, jobs: impl IntoIterator<Item = PendingJob>) {
        jobs.into_iter().for_each(|job| self.change(ViewChange::Pending(job)));
    }

    /// Plans, and carries the plan out as the head does. Returns the changes of running jobs.
    fn plan(&mut self) -> Vec<(u64, HostShare)> {
        self.policy.learn(&self.view, &std::mem::take(&mut self.changes));
        let plan = self.policy.plan(&self.view);
        let mut allotted = Vec::new();
        for action in plan.actions {
            match action {
                Action::Place { job, placement, .. } => {
                    let pending = self.view.pending[&job].clone();
                    crate::tests::kit::fits(&FreeNodes::new(&self.view.nodes), &pending.demand, &placement)
                        .unwrap();
                    let running = pending.placed(placement, self.view.now);
                    self.book(|free| free.take_as_resident(job, &running.demand, &running.placement));
                    self.change(ViewChange::Running(running));
                }
                Action::Allot { job, host, .. } => {
                    let running = self.view.running[&job].clone();
                    assert!(running.allotting.is_none(), "job {job} is being changed");
                    let held = running.host_share();
                    let free = self.view.nodes[0].host_free();
                    assert!(
                        host.saturating_sub(held).is_within(free),
                        "{host} for job {job}, {free} is free"
                    );
                    self.hold(running, held.at_least(host), Some(host));
                    allotted.push((job.number, host));
                }
                Action::Preempt { .. } | Action::Reclaim { .. } | Action::StopIdle { .. } => {
                    panic!("no job is stopped")
                }
            }
        }
        allotted
    }

    fn hold(&mut self, mut job: RunningJob, share: HostShare, allotting: Option<HostShare>) {
        let (node, before) = (job.placement.parts[0].node, job.host_share());
        self.book(|free| free.change_host_share(node, before, share));
        job.placement.parts[0].host = Some(share);
        self.change(ViewChange::Running(RunningJob { allotting, ..job }));
    }

    fn book(&mut self, change: impl FnOnce(&mut FreeNodes<'_>)) {
        let mut free = FreeNodes::new(&self.view.nodes);
        change(&mut free);
        let nodes: Vec<NodeView> = free.nodes().cloned().collect();
        nodes.into_iter().for_each(|node| self.change(ViewChange::Node(node)));
    }

    /// The workers have done what they were told, or leave jobs at least so much memory.
    fn answer(&mut self, at_least: HostShare) {
        for job in self.view.running.values().cloned().collect::<Vec<_>>() {
            if let Some(told) = job.allotting {
                let in_force = told.at_least(at_least).at_most(job.host_share());
                self.hold(RunningJob { allotted_at: self.view.now, ..job }, in_force, None);
            }
        }
    }

    fn end(&mut self, number: u64) {
        let job = self.view.running[&JobId::new(number)].clone();
        self.book(|free| free.remove_resident(job.id, &job.demand, &job.placement));
        self.change(ViewChange::Gone(job.id));
    }

    fn later(&mut self, secs: u64) {
        self.view.now += Span::from_secs(secs);
    }

    fn cores(&self) -> Vec<(u64, u32)> {
        self.view.running.values().map(|job| (job.id.number, job.host_share().cpus)).collect()
    }

    /// Plans until nothing changes any more.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.later(31);
            let changed = self.plan();
            self.answer(HostShare::default());
            if changed.is_empty() && self.changes.is_empty() {
                return;
            }
        }
        panic!("shares change for ever: {:?}", self.cores());
    }
}

#[test]
fn a_full_server_ends_with_the_best_hand_out() {
    let mut board = Board::new(vec![server()]);
    board.submit((1..=8).map(|number| ranged(number, if number <= 4 { "images" } else { "text" })));
    board.settle();
    let expected = (1..=8).map(|number| (number, if number <= 4 { 5 } else { 1 })).collect::<Vec<_>>();
    assert_eq!(board.cores(), expected);
}

#[test]
fn what_is_free_goes_to_those_who_gain() {
    let mut board = Board::new(vec![server()]);
    board.submit([ranged(1, "images"), ranged(2, "text")]);
    board.settle();
    assert_eq!(board.cores(), [(1, 9), (2, 3)], "more than 9 cores are worth nothing, and nobody needs more");
}

#[test]
fn a_job_that_starts_gets_its_rightful_share_from_those_who_hold_more() {
    let mut board = Board::new(vec![server()]);
    board.submit((1..=3).map(|number| ranged(number, "images")));
    board.settle();
    assert_eq!(board.cores(), [(1, 9), (2, 9), (3, 6)]);
    board.submit([ranged(4, "images")]);
    let taken = board.plan();
    assert_eq!(taken, [(1, host(6, 20)), (2, host(6, 20)), (3, host(6, 20))]);
    assert!(board.view.pending.contains_key(&JobId::new(4)), "nothing is free yet");
    assert_eq!(board.plan(), [], "and nobody is asked again");
    board.answer(HostShare::default());
    board.plan();
    assert_eq!(board.cores(), [(1, 6), (2, 6), (3, 6), (4, 6)]);
}

#[test]
fn a_job_that_claims_a_fixed_amount_gets_it_too() {
    let mut board = Board::new(vec![server()]);
    board.submit((1..=3).map(|number| ranged(number, "images")));
    board.settle();
    board.later(60);
    board.submit([job(4, Demand { cpus: 10, ..Demand::default() })]);
    board.plan();
    board.answer(HostShare::default());
    board.plan();
    assert_eq!(board.cores()[3], (4, 10));
}

#[test]
fn what_a_worker_cannot_take_is_not_asked_for_again_and_not_counted_on() {
    let mut board = Board::new(vec![server()]);
    board.submit([ranged(1, "images")]);
    board.settle();
    let all = board.view.running[&JobId::new(1)].host_share();
    let grown = HostShare { memory: Bytes(480 * GB), ..all };
    let first = board.view.running[&JobId::new(1)].clone();
    board.hold(first, grown, None);
    board.later(60);
    board.submit([job(2, Demand { memory: Bytes(100 * GB), ..gpus(1) })]);
    assert_eq!(board.plan().len(), 1, "the first job has more than it has any use for");
    board.answer(HostShare { memory: Bytes(450 * GB), ..HostShare::default() });
    for _ in 0..5 {
        board.later(40);
        assert_eq!(board.plan(), [], "its processes hold that memory");
    }
    board.later(600);
    assert_eq!(board.plan().len(), 1, "perhaps they do not any more");
    board.answer(HostShare::default());
    board.plan();
    assert!(board.view.running.contains_key(&JobId::new(2)));
}

#[test]
fn a_node_that_cannot_change_shares_keeps_those_of_the_start() {
    let mut board = Board::new(vec![NodeView { changes_host_shares: false, ..server() }]);
    board.submit([ranged(1, "images")]);
    board.plan();
    assert_eq!(board.cores(), [(1, 3)], "more could not be taken from it again");
    board.submit((2..=8).map(|number| ranged(number, "images")));
    board.settle();
    assert_eq!(board.cores(), (1..=8).map(|number| (number, 3)).collect::<Vec<_>>());
}

#[test]
fn shares_are_learned_while_jobs_run() {
    let mut board = Board::new(vec![server()]);
    board.submit([ranged(1, "unknown"), ranged(2, "unknown too"), ranged(3, "unknown")]);
    let truth = |job: &RunningJob| {
        let cores = f64::from(job.host_share().cpus);
        if job.id.number == 2 { 30.0 } else { cores.min(12.0) * 10.0 }
    };
    let mut steps = [0.0; 4];
    for _ in 0..400 {
        board.plan();
        board.answer(HostShare::default());
        board.later(10);
        for job in board.view.running.values().cloned().collect::<Vec<_>>() {
            let done = &mut steps[job.id.number as usize];
            *done += 10.0 * truth(&job);
            let steps = Some((*done as u64, board.view.now));
            board.change(ViewChange::Running(RunningJob { steps, ..job }));
        }
    }
    let [(_, first), (_, flat), (_, second)] = board.cores()[..] else { panic!() };
    assert!(first + second >= 21, "they are faster with up to 12 cores and have {first} and {second}");
    assert!(flat <= 3, "it is never faster and has {flat}");
}

#[test]
fn the_end_of_a_job_is_used_by_the_others() {
    let mut board = Board::new(vec![server()]);
    board.submit((1..=4).map(|number| ranged(number, "images")));
    board.settle();
    assert!(board.cores().iter().all(|(_, cores)| *cores == 6));
    board.end(4);
    board.later(31);
    board.plan();
    assert_eq!(board.cores(), [(1, 9), (2, 9), (3, 6)]);
}

fn model() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["images", "text", "unknown"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The cluster checks every placement and every change against what is free.
    #[test]
    fn every_job_ends_and_nothing_is_given_twice(
        policy in prop::sample::select(vec!["fifo", "spd", "a-srpt", "hybrid", "easy-backfill", "las"]),
        jobs in prop::collection::vec((0.0..500.0f64, model(), 0..5u32, 0..6u32, 0..20u32, 1..400u64), 1..40),
    ) {
        let jobs: Vec<TestJob> = jobs
            .into_iter()
            .zip(1..)
            .map(|((at, model, devices, least, range, iterations), number)| {
                let most = HostShare { cpus: least + range, memory: Bytes::ZERO };
                let demand = Demand {
                    gpus: GpuRequest::Whole(devices),
                    cpus: least,
                    up_to: (least > 0 && range > 0).then_some(most),
                    ..Demand::default()
                };
                let test = TestJob::new(number, at, demand, iterations);
                let known = JobTraits::clone(&test.pending.traits);
                let traits = JobTraits { group: Some(model.into()), ..known };
                TestJob { pending: PendingJob { traits: Arc::new(traits), ..test.pending }, ..test }
            })
            .collect();
        let count = jobs.len();
        let mut policy = parse_policy(&format!("{policy}:tune=on")).unwrap();
        policy.set_sensitivity(&profiles());
        let ended = run(policy.as_mut(), vec![server(), node(2, &[1_000; 4])], jobs);
        prop_assert_eq!(ended.len(), count);
    }
}

#[test]
fn the_switch_is_on_or_off() {
    assert!(parse_policy("hybrid:tune=off").is_ok());
    let why = parse_policy("fifo:tune=yes").err().unwrap().to_string();
    assert!(why.contains("tune is 'yes': use on or off"), "{why}");
}

#[test]
fn a_node_that_went_and_came_back_as_it_was_is_planned_for() {
    let mut board = Board::new(vec![server()]);
    assert_eq!(board.plan(), []);
    board.change(ViewChange::NodeGone(server().id));
    board.change(ViewChange::Node(server()));
    board.submit([ranged(1, "text")]);
    board.plan();
    assert!(board.view.running.contains_key(&JobId::new(1)));
}
