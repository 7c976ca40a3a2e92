//! Places are taken back for those to whom they are due, under every policy, and not for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_fair_share::RecentUse;
use cohabit_types::{
    Demand, GIVEN_BACK_WITHIN, JobId, Placement, Qos, RankPlacement, Share, ShareProject, ShareTable, Span,
    Time,
};

use crate::tests::kit::{gpus, job, node};
use crate::{
    Action, DeviceAvailability, JobTraits, POLICY_NAMES, PendingJob, Policy, RunPhase, RunningJob,
    SharesChange, View, ViewChange, parse_policy,
};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// A node of these devices and a policy that hears of every change.
struct Cluster {
    view: View,
    policy: Box<dyn Policy>,
}

/// What a job is, besides its size.
#[derive(Clone, Copy)]
struct Kind {
    preemptible: bool,
    qos: Qos,
}

const PREEMPTIBLE: Kind = Kind { preemptible: true, qos: Qos::Normal };
const FIXED: Kind = Kind { preemptible: false, qos: Qos::Normal };
const LOW: Kind = Kind { preemptible: true, qos: Qos::Low };

fn of_user(user: &str, number: u64, demand: Demand, kind: Kind, eligible_at: Time) -> PendingJob {
    let traits = JobTraits {
        user: user.to_owned(),
        preemptible: kind.preemptible,
        qos: kind.qos,
        ..JobTraits::default()
    };
    PendingJob { traits: Arc::new(traits), submitted_at: eligible_at, eligible_at, ..job(number, demand) }
}

impl Cluster {
    fn new(policy: &str, devices: usize, table: ShareTable) -> Cluster {
        let now = Time::EPOCH + Span::from_secs(1_000_000);
        let mut cluster =
            Cluster { view: View { now, ..View::default() }, policy: parse_policy(policy).unwrap() };
        let node = node(1, &vec![1_000; devices]);
        cluster.change(vec![
            ViewChange::Shares(SharesChange::Table(Arc::new(table))),
            ViewChange::Node(crate::NodeView { cpus: 64, cpus_free: 64, ..node }),
        ]);
        cluster
    }

    fn change(&mut self, changes: Vec<ViewChange>) {
        self.view.apply(&changes);
        self.policy.learn(&self.view, &changes);
    }

    fn wait(&mut self, user: &str, number: u64, demand: Demand, kind: Kind) {
        self.change(vec![ViewChange::Pending(of_user(user, number, demand, kind, self.view.now))]);
    }

    /// One that runs on so many devices from the first free one on.
    fn run(&mut self, user: &str, number: u64, count: u32, kind: Kind) {
        let now = self.view.now;
        self.change(vec![ViewChange::Pending(of_user(user, number, gpus(count), kind, now))]);
        let free = self.view.nodes[0].first_devices(&gpus(count), count);
        let part = RankPlacement {
            node: self.view.nodes[0].id,
            devices: free,
            share: Share::WHOLE,
            ranks: Vec::new(),
            host: None,
        };
        self.start(JobId::new(number), Placement { parts: vec![part] });
    }

    fn start(&mut self, id: JobId, placement: Placement) {
        let mut node = self.view.nodes[0].clone();
        let pending = self.view.pending[&id].clone();
        let mut free = crate::FreeNodes::new(&self.view.nodes);
        free.take_as_resident(id, &pending.demand, &placement);
        node.clone_from(free.node(0));
        let running = pending.placed(placement, self.view.now);
        let user = running.traits.user.clone();
        self.change(vec![ViewChange::Running(running), ViewChange::Node(node)]);
        self.tell_held(&user);
    }

    fn end(&mut self, id: JobId) {
        let running = self.view.running[&id].clone();
        let mut free = crate::FreeNodes::new(&self.view.nodes);
        free.remove_resident(id, &running.demand, &running.placement);
        let node = free.node(0).clone();
        self.change(vec![ViewChange::Gone(id), ViewChange::Node(node)]);
        self.tell_held(&running.traits.user);
    }

    fn tell_held(&mut self, user: &str) {
        let own = self.view.running.values().filter(|job| job.traits.user == user);
        let used = RecentUse {
            held: own.map(|job| job.holds).sum(),
            used: 0,
            at: self.view.now,
            ..RecentUse::default()
        };
        self.change(vec![ViewChange::Shares(SharesChange::Used(user.to_owned(), used))]);
    }

    fn later(&mut self, seconds: u64) {
        self.view.now += Span::from_secs(seconds);
    }

    /// Carries out a plan: what it reclaims is stopping afterwards. Returns what it starts and reclaims.
    fn plan(&mut self) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let plan = self.policy.plan(&self.view);
        let (mut starts, mut stops) = (BTreeSet::new(), BTreeSet::new());
        for action in plan.actions {
            match action {
                Action::Place { job, placement, .. } => {
                    starts.insert(job.number);
                    self.start(job, placement);
                }
                Action::Reclaim { job, .. } | Action::StopIdle { job, .. } => {
                    stops.insert(job.number);
                    let stopping =
                        RunningJob { phase: RunPhase::Stopping, ..self.view.running[&job].clone() };
                    self.change(vec![ViewChange::Running(stopping)]);
                }
                Action::Preempt { .. } => panic!("the policy stops a job by itself"),
                Action::Allot { .. } => {}
            }
        }
        (starts, stops)
    }

    fn held(&self) -> BTreeMap<&str, usize> {
        let mut held = BTreeMap::new();
        for job in self.view.running.values() {
            *held.entry(job.traits.user.as_str()).or_default() += job.placement.parts[0].devices.len();
        }
        held
    }
}

fn numbers(numbers: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
    numbers.into_iter().collect()
}

/// Ada runs one job on each of 16 devices, and more of hers wait.
fn flooded(policy: &str) -> Cluster {
    let mut cluster = Cluster::new(policy, 16, ShareTable::default());
    (1..=16).for_each(|number| cluster.run("ada", number, 1, PREEMPTIBLE));
    (100..120).for_each(|number| cluster.wait("ada", number, gpus(1), PREEMPTIBLE));
    cluster
}

#[test]
fn room_is_made_for_a_wide_job_and_kept_until_it_starts_under_every_policy() {
    // These stop jobs by themselves, and agents start what they like.
    let own_stops = ["las", "las-tuned", "srtf-oracle", "maifs"];
    for policy in POLICY_NAMES.into_iter().filter(|name| !own_stops.contains(name)) {
        let mut cluster = flooded(policy);
        cluster.later(HOUR);
        cluster.wait("ben", 50, gpus(8), PREEMPTIBLE);
        assert_eq!(cluster.plan().1, numbers([]), "{policy}: it has not waited");
        cluster.later(10 * MINUTE);
        let (_, stops) = cluster.plan();
        assert_eq!(stops.len(), 8, "{policy}: {stops:?}");
        // They end one after the other, and nobody else gets their places.
        for victim in stops {
            cluster.later(1);
            cluster.end(JobId::new(victim));
            let (starts, stops) = cluster.plan();
            assert!(stops.is_empty() && starts.iter().all(|it| *it == 50), "{policy}: {starts:?} {stops:?}");
        }
        assert_eq!(cluster.held(), BTreeMap::from([("ada", 8), ("ben", 8)]), "{policy}");
        // Nobody is owed anything now.
        cluster.later(2 * HOUR);
        assert_eq!(cluster.plan().1, numbers([]), "{policy}");
    }
}

#[test]
fn nothing_is_reclaimed_that_is_fixed_young_or_due_to_its_side() {
    let mut cluster = Cluster::new("fifo", 4, ShareTable::default());
    (1..=2).for_each(|number| cluster.run("ada", number, 1, FIXED));
    cluster.later(2 * HOUR);
    (3..=4).for_each(|number| cluster.run("ada", number, 1, PREEMPTIBLE));
    cluster.wait("ben", 50, gpus(2), FIXED);
    cluster.later(30 * MINUTE);
    assert_eq!(cluster.plan().1, numbers([]), "the two that may be stopped run for half an hour");
    assert_eq!(
        cluster.policy.plan(&cluster.view).wake,
        Some(cluster.view.now + Span::from_secs(30 * MINUTE))
    );
    cluster.later(30 * MINUTE);
    assert_eq!(cluster.plan().1, numbers([3, 4]));

    let mut even = Cluster::new("fifo", 4, ShareTable::default());
    (1..=2).for_each(|number| even.run("ada", number, 1, PREEMPTIBLE));
    (3..=4).for_each(|number| even.run("ben", number, 1, PREEMPTIBLE));
    even.wait("ada", 5, gpus(1), PREEMPTIBLE);
    even.wait("ben", 6, gpus(1), PREEMPTIBLE);
    even.later(5 * HOUR);
    assert_eq!(even.plan().1, numbers([]));
}

#[test]
fn a_job_beyond_the_part_of_its_user_reclaims_nothing() {
    let mut cluster = flooded("hybrid");
    // He used nothing and she everything, so 16 devices are divided as 2 to 1/2.
    cluster.wait("ben", 50, gpus(13), PREEMPTIBLE);
    cluster.later(2 * HOUR);
    assert_eq!(cluster.plan().1, numbers([]));
}

#[test]
fn what_is_guaranteed_is_reclaimed_after_half_a_minute() {
    let project = |guaranteed, user: &str| ShareProject {
        guaranteed,
        users: [user.to_owned()].into(),
        ..ShareProject::default()
    };
    let projects = [("vision".to_owned(), project(4_000, "ben")), ("speech".to_owned(), project(0, "ada"))];
    let mut cluster =
        Cluster::new("fifo", 8, ShareTable { projects: projects.into(), ..ShareTable::default() });
    (1..=8).for_each(|number| cluster.run("ada", number, 1, PREEMPTIBLE));
    cluster.later(2 * HOUR);
    cluster.wait("ben", 50, gpus(4), PREEMPTIBLE);
    cluster.later(29);
    assert_eq!(cluster.plan().1, numbers([]));
    cluster.later(1);
    assert_eq!(cluster.plan().1.len(), 4);
}

#[test]
fn jobs_of_low_quality_of_service_give_their_place_to_any_other() {
    let mut cluster = Cluster::new("hybrid", 2, ShareTable::default());
    cluster.run("ada", 1, 1, LOW);
    cluster.run("ada", 2, 1, FIXED);
    cluster.wait("ada", 3, gpus(1), FIXED);
    cluster.later(29);
    assert_eq!(cluster.plan().1, numbers([]));
    cluster.later(1);
    assert_eq!(cluster.plan().1, numbers([1]));
    cluster.end(JobId::new(1));
    assert_eq!(cluster.plan().0, numbers([3]));
    // And stop nobody themselves.
    cluster.wait("ben", 4, gpus(1), LOW);
    cluster.later(5 * HOUR);
    assert_eq!(cluster.plan().1, numbers([]));
}

#[test]
fn a_job_that_does_nothing_gives_its_place_to_any_that_waits_and_keeps_it_otherwise() {
    let mut cluster = Cluster::new("hybrid", 2, ShareTable::default());
    (1..=2).for_each(|number| cluster.run("ada", number, 1, FIXED));
    let idle_from = Some(cluster.view.now + Span::from_secs(10 * MINUTE));
    let idle = cluster.view.running[&JobId::new(1)].clone();
    cluster.change(vec![ViewChange::Running(RunningJob { idle_from, ..idle.clone() })]);
    cluster.later(20 * MINUTE);
    assert_eq!(cluster.plan().1, numbers([]), "nobody waits");
    // Too wide for its place, so that stopping it would help nobody.
    cluster.wait("ada", 3, gpus(2), FIXED);
    cluster.later(HOUR);
    assert_eq!(cluster.plan().1, numbers([]));
    cluster.wait("ada", 4, gpus(1), FIXED);
    cluster.later(29);
    assert_eq!(cluster.plan().1, numbers([]));
    cluster.later(1);
    let plan = cluster.policy.plan(&cluster.view);
    let stop = |action: &Action| matches!(action, Action::StopIdle { job, .. } if *job == idle.id);
    assert!(plan.actions.iter().any(stop), "{plan:?}");
}

#[test]
fn a_job_that_does_something_again_is_not_stopped() {
    let mut cluster = Cluster::new("fifo", 1, ShareTable::default());
    cluster.run("ada", 1, 1, FIXED);
    let active = cluster.view.running[&JobId::new(1)].clone();
    let idle_from = Some(cluster.view.now + Span::from_secs(10 * MINUTE));
    cluster.change(vec![ViewChange::Running(RunningJob { idle_from, ..active.clone() })]);
    cluster.wait("ben", 2, gpus(1), FIXED);
    cluster.later(9 * MINUTE);
    assert_eq!(cluster.plan().1, numbers([]));
    // It is looked again when it may be stopped, although nothing else changes.
    assert!(cluster.policy.plan(&cluster.view).wake.is_some_and(|at| Some(at) <= idle_from));
    cluster.change(vec![ViewChange::Running(active)]);
    cluster.later(HOUR);
    assert_eq!(cluster.plan().1, numbers([]));
}

#[test]
fn a_stop_that_was_no_longer_possible_keeps_no_room() {
    let mut cluster = Cluster::new("fifo", 1, ShareTable::default());
    cluster.run("ada", 1, 1, FIXED);
    let idle =
        RunningJob { idle_from: Some(cluster.view.now), ..cluster.view.running[&JobId::new(1)].clone() };
    cluster.change(vec![ViewChange::Running(idle.clone())]);
    cluster.wait("ben", 2, gpus(1), FIXED);
    cluster.later(MINUTE);
    assert_eq!(cluster.policy.plan(&cluster.view).actions.len(), 1);
    // It was dropped, because the job did something meanwhile. Now it does nothing again.
    cluster.later(MINUTE);
    cluster.change(vec![ViewChange::Running(idle)]);
    assert_eq!(cluster.plan().1, numbers([1]));
}

#[test]
fn a_job_that_was_reclaimed_three_times_is_left_alone() {
    let mut cluster = Cluster::new("fifo", 2, ShareTable::default());
    (1..=2).for_each(|number| cluster.run("ada", number, 1, PREEMPTIBLE));
    for number in [1, 2] {
        let job = cluster.view.running[&JobId::new(number)].clone();
        let reclaimable_from = cluster.view.now + Span::from_secs(10 * HOUR);
        cluster.change(vec![ViewChange::Running(RunningJob { reclaimable_from, ..job })]);
    }
    cluster.wait("ben", 50, gpus(1), PREEMPTIBLE);
    cluster.later(9 * HOUR);
    assert_eq!(cluster.plan().1, numbers([]));
    cluster.later(HOUR);
    assert_eq!(cluster.plan().1.len(), 1);
}

#[test]
fn room_goes_to_others_at_once_when_nobody_waits_for_it() {
    let mut cluster = flooded("fifo");
    cluster.later(HOUR);
    cluster.wait("ben", 50, gpus(8), PREEMPTIBLE);
    cluster.later(10 * MINUTE);
    let (_, stops) = cluster.plan();
    let hold = |cluster: &mut Cluster| cluster.change(vec![ViewChange::Gone(JobId::new(50))]);
    stops.into_iter().for_each(|victim| cluster.end(JobId::new(victim)));
    // Its user takes the job back: others get the room at once.
    hold(&mut cluster);
    assert_eq!(cluster.plan().0.len(), 8);
}

#[test]
fn room_is_kept_for_five_minutes_although_a_stopped_job_runs_again() {
    let mut cluster = flooded("fifo-greedy");
    cluster.later(HOUR);
    cluster.wait("ben", 50, gpus(8), PREEMPTIBLE);
    cluster.later(10 * MINUTE);
    let (_, stops) = cluster.plan();
    assert_eq!(cluster.plan(), (numbers([]), numbers([])), "they are stopping");
    let first = JobId::new(*stops.first().unwrap());
    let other = JobId::new((1..=16).find(|number| !stops.contains(number)).unwrap());
    let elsewhere = cluster.view.running[&other].placement.clone();
    let failed = cluster.view.running[&first].placement.parts[0].devices[0].clone();
    // The first one runs again, in the place of another job, before the others have ended.
    [other, first].into_iter().for_each(|job| cluster.end(job));
    cluster.wait("ada", first.number, gpus(1), PREEMPTIBLE);
    cluster.start(first, elsewhere);
    stops.into_iter().filter(|number| *number != first.number).for_each(|it| cluster.end(JobId::new(it)));
    let mut node = cluster.view.nodes[0].clone();
    let device = node.devices.iter_mut().find(|device| device.id == failed).unwrap();
    device.availability = DeviceAvailability::Closed;
    cluster.change(vec![ViewChange::Node(node)]);
    assert_eq!(cluster.plan().0, numbers([]), "seven of eight devices are kept");
    cluster.later(5 * MINUTE);
    assert_eq!(cluster.plan().0.len(), 7);
}

#[test]
fn two_users_who_want_everything_do_not_stop_each_other_for_ever() {
    let mut cluster = flooded("fifo");
    (200..300).for_each(|number| cluster.wait("ben", number, gpus(1), PREEMPTIBLE));
    let mut stops: BTreeMap<u64, usize> = BTreeMap::new();
    for _ in 0..(48 * 4) {
        cluster.later(15 * MINUTE);
        let (_, stopped) = cluster.plan();
        for number in stopped {
            *stops.entry(number).or_default() += 1;
            let job = cluster.view.running[&JobId::new(number)].clone();
            cluster.end(job.id);
            let user = job.traits.user.clone();
            cluster.wait(&user, number, job.demand, PREEMPTIBLE);
        }
        cluster.plan();
    }
    assert_eq!(cluster.held(), BTreeMap::from([("ada", 8), ("ben", 8)]));
    assert_eq!(stops.values().sum::<usize>(), 8, "{stops:?}");
}

#[test]
fn the_guide_says_the_times() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SHARING.md");
    let guide = std::fs::read_to_string(path).unwrap().replace('\n', " ");
    let minutes = |span: Span| format!("{} min", span.as_micros() / 60_000_000);
    let seconds = |span: Span| format!("{} s", span.as_micros() / 1_000_000);
    let hours = |span: Span| format!("{} h", span.as_micros() / 3_600_000_000);
    let expected = [
        format!("and waited for {};", minutes(super::reclaim_draft::WAITED)),
        format!("for {} if it lets the", seconds(super::reclaim_draft::WAITED_AT_ONCE)),
        format!("has run for {} (`keep-for`)", hours(ShareTable::default().keep_for)),
        format!("is kept for the waiting job for {}", minutes(super::claims::KEPT_AFTERWARDS)),
        format!("`--time {}h` or less", GIVEN_BACK_WITHIN.as_micros() / 3_600_000_000),
        format!("{} GPU hours a week (`high-gpu-hours`)", ShareTable::default().user.high_gpu_hours),
    ];
    for sentence in expected {
        assert!(guide.contains(&sentence), "{sentence}");
    }
}
