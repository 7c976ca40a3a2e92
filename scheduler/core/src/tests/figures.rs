//! Figures for metrics, and what ranks did with their GPUs.

use cohabit_types::{
    Bytes, DeviceId, DeviceUsage, FeedKind, Figures, GpuTime, HeldRank, HeldRankPhase, JobChange,
    JobEventKind, JobId, JobSpec, LiveJobs, Outcome, RankId, RankUsage, Report, Signal, Span, StopReason,
    Time, UsageCurve, UsageRecord,
};

use super::kit::*;
use crate::head::Head;
use crate::interface::{Config, Effect, Event};

fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

fn device_usage(held: u64, busy: u64, idle: u64) -> DeviceUsage {
    DeviceUsage {
        device: DeviceId("gpu-0".into()),
        held: secs(held),
        measured: secs(held),
        busy: secs(busy),
        idle: secs(idle),
        memory: Some(Bytes(1 << 30)),
        capacity: Bytes(80 << 30),
        energy: None,
        shared: false,
        curve: UsageCurve::default(),
    }
}

fn figures(test: &TestHead) -> Figures {
    test.head.figures(test.now)
}

fn gpu_time(test: &TestHead) -> GpuTime {
    figures(test).users["ada"].gpu_time
}

impl TestHead {
    /// A live rank has done so much so far.
    fn uses(&mut self, rank: RankId, usage: DeviceUsage) {
        self.event(Event::Report(key(1, 1), Report::Usage(vec![RankUsage { rank, devices: vec![usage] }])));
    }

    fn ends_after(&mut self, rank: RankId, usage: DeviceUsage) {
        let (at, outcome) = (self.now, Outcome::Exited(0));
        let ended = Report::Ended { rank, outcome, stopped: None, progress: None, at, usage: vec![usage] };
        self.event(Event::Report(key(1, 1), ended));
        self.planned();
    }
}

fn records(test: &mut TestHead) -> Vec<UsageRecord> {
    let record = |effect| if let Effect::RecordUsage(record) = effect { Some(*record) } else { None };
    test.effects().into_iter().filter_map(record).collect()
}

#[test]
fn jobs_are_counted_by_user_and_state_through_all_their_changes() {
    let mut test = TestHead::with_devices(1);
    let jobs = |test: &TestHead| figures(test).users.get("ada").map_or(LiveJobs::default(), |it| it.jobs);
    let running = test.submit(gpus(1));
    let waiting = test.submit(array(0, 4, None));
    test.submit(JobSpec { held: true, ..gpus(1) });
    assert_eq!(jobs(&test), LiveJobs { pending: 5, held: 1, running: 1, completing: 0 });
    test.change(JobChange::Cancel, running);
    assert_eq!(jobs(&test), LiveJobs { pending: 5, held: 1, running: 0, completing: 1 });
    test.change(JobChange::Cancel, waiting);
    test.ended(rank(1, 1), Outcome::Signalled(Signal::TERM), None);
    assert_eq!(jobs(&test), LiveJobs { held: 1, ..LiveJobs::default() });
}

#[test]
fn the_oldest_wait_is_the_longest_of_those_that_wait_for_room() {
    let mut test = TestHead::with_devices(1);
    let oldest = |test: &TestHead| figures(test).oldest_wait;
    test.submit(gpus(1));
    assert_eq!(oldest(&test), None);
    let held = test.submit(JobSpec { held: true, ..gpus(1) });
    test.after(secs(10));
    assert_eq!(oldest(&test), None, "it waits for its user");
    test.submit(gpus(1));
    test.after(secs(5));
    test.submit(gpus(1));
    assert_eq!(oldest(&test), Some(secs(5)));
    test.change(JobChange::Release, held);
    test.after(secs(1));
    assert_eq!(oldest(&test), Some(secs(6)), "that it was held does not count");
}

#[test]
fn time_on_gpus_grows_with_reports_and_is_counted_once() {
    let mut test = TestHead::with_devices(1);
    test.submit(part(500));
    test.after(secs(60));
    assert_eq!(gpu_time(&test), GpuTime { held: 30.0, ..GpuTime::default() });
    test.uses(rank(1, 1), device_usage(60, 20, 0));
    test.after(secs(60));
    test.uses(rank(1, 1), device_usage(120, 60, 0));
    assert_eq!(gpu_time(&test), GpuTime { held: 60.0, busy: 30.0, idle: 0.0, lost: 0.0 });
    let live = test.head.live_usage(&[JobId::new(1)].into(), test.now);
    assert_eq!((live.len(), live[0].live, live[0].node.as_str()), (1, true, "node1"));
    test.effects();
    test.ends_after(rank(1, 1), device_usage(120, 64, 10));
    assert_eq!(gpu_time(&test), GpuTime { held: 60.0, busy: 32.0, idle: 5.0, lost: 0.0 });
    let kept = records(&mut test);
    assert_eq!((kept.len(), kept[0].user.as_str(), kept[0].live), (1, "ada", false));
    assert_eq!((kept[0].usage.busy, kept[0].share.as_f64()), (secs(64), 0.5));
    assert!(test.head.live_usage(&[JobId::new(1)].into(), test.now).is_empty());
}

#[test]
fn a_daemon_that_begins_again_takes_nothing_back() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.uses(rank(1, 1), device_usage(60, 50, 0));
    test.uses(rank(1, 1), device_usage(10, 8, 0));
    assert_eq!(gpu_time(&test).busy, 58.0);
}

#[test]
fn a_worker_is_believed_within_what_its_ranks_hold() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.after(secs(40));
    let foreign = DeviceUsage { device: DeviceId("gpu-7".into()), ..device_usage(40, 40, 0) };
    let endless = device_usage(u64::MAX / 2_000_000, u64::MAX / 2_000_000, 0);
    let devices = vec![foreign, endless.clone(), endless];
    test.event(Event::Report(key(1, 1), Report::Usage(vec![RankUsage { rank: rank(1, 1), devices }])));
    assert_eq!(gpu_time(&test).busy, 100.0, "the time that it has run, and a minute for clocks that differ");
}

#[test]
fn usage_of_ranks_that_are_not_there_is_nobodys() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    for stranger in [rank(1, 2), rank(9, 1), JobId::new(1).attempt(1).rank(7)] {
        test.uses(stranger, device_usage(60, 50, 0));
    }
    test.event(Event::Report(
        key(1, 9),
        Report::Usage(vec![RankUsage { rank: rank(1, 1), devices: vec![device_usage(60, 50, 0)] }]),
    ));
    assert_eq!(gpu_time(&test).busy, 0.0);
}

#[test]
fn attempts_are_counted_by_how_they_ended() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.after(secs(8));
    test.ended(rank(1, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::DeviceLost));
    test.after(secs(100));
    test.ended(rank(1, 2), Outcome::Exited(0), None);
    test.submit(gpus(1));
    test.ended(rank(2, 1), Outcome::Exited(3), None);
    let figures = figures(&test);
    let attempts: Vec<_> = figures.attempts.iter().map(|(how, count)| (how.as_str(), *count)).collect();
    assert_eq!(attempts, [("completed", 1), ("device_lost", 1), ("exit_code", 1)]);
    assert_eq!((figures.run.count(), figures.run.sum), (3, 108.0));
    assert_eq!((figures.wait.count(), figures.wait.sum), (3, 0.0));
    assert_eq!((figures.slowdown.count(), figures.slowdown.sum), (1, 1.08));
    assert_eq!(gpu_time(&test).lost, 8.0);
    assert_eq!((figures.nodes["node1"].links, figures.links), (1, 1));
}

#[test]
fn a_fault_of_mps_counts_for_the_node_of_whom_caused_it() {
    let mut test = TestHead::with_devices(1);
    test.submit(part(300));
    test.submit(part(300));
    test.ended(rank(1, 1), Outcome::Exited(1), Some(StopReason::MpsFault));
    test.ended(rank(2, 1), Outcome::Exited(1), Some(StopReason::MpsFaultVictim));
    assert_eq!(figures(&test).nodes["node1"].mps_faults, 1);
}

#[test]
fn who_holds_what_is_listed() {
    let mut test = TestHead::with_devices(2);
    test.submit(part(250));
    let holders = figures(&test).holders;
    let holder = (holders[0].node.as_str(), holders[0].user.as_str(), holders[0].share.as_f64());
    assert_eq!((holders.len(), holder, holders[0].job), (1, ("node1", "ada", 0.25), JobId::new(1)));
}

#[test]
fn counters_begin_with_the_start_of_the_head() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    test.event(Event::HeadStarted(Config::default()));
    let figures = figures(&test);
    assert_eq!((figures.attempts.len(), figures.run.count(), figures.since), (0, 0, test.now));
    assert_eq!((figures.links, figures.users.len()), (0, 0));
}

#[test]
fn time_before_the_start_of_the_head_is_no_part_of_its_counters() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.after(secs(1_000));
    test.uses(rank(1, 1), device_usage(1_000, 900, 0));
    test.event(Event::HeadStarted(Config::default()));
    let held = HeldRank { rank: rank(1, 1), phase: HeldRankPhase::Running(Time::from_micros(1_000_000)) };
    test.rejoin(1, 2, vec![held]);
    test.after(secs(60));
    let key = key(1, 2);
    let mut uses = |usage: DeviceUsage| {
        let usage = RankUsage { rank: rank(1, 1), devices: vec![usage] };
        test.event(Event::Report(key, Report::Usage(vec![usage])));
        gpu_time(&test)
    };
    assert_eq!(uses(device_usage(1_060, 950, 0)), GpuTime { held: 60.0, ..GpuTime::default() });
    assert_eq!(uses(device_usage(1_060, 955, 0)).busy, 5.0);
    test.after(secs(40));
    test.ended_on(key, rank(1, 1), Outcome::Exited(0), None);
    assert_eq!((gpu_time(&test).held, figures(&test).run.sum), (100.0, 1_100.0));
}

#[test]
fn what_was_measured_changes_nothing_that_a_replay_has_to_find() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.uses(rank(1, 1), device_usage(60, 50, 0));
    test.ends_after(rank(1, 1), device_usage(60, 50, 0));
    let mut replayed = Head::new();
    let is_journaled = |event: &Event| !matches!(event, Event::Report(_, Report::Usage(_)));
    for (at, event) in test.events.iter().filter(|(_, event)| is_journaled(event)) {
        replayed.handle(*at, event.clone(), &mut Vec::new());
    }
    assert_eq!(replayed, test.head);
}

#[test]
fn a_job_that_leaves_its_gpus_idle_is_told_once_for_each_stretch() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    let mut idle = |since: u64| {
        let (since, quiet_for) = (Time::from_micros(since), secs(1_800));
        test.event(Event::Report(key(1, 1), Report::Idle { attempt: id.attempt(1), since, quiet_for }));
    };
    idle(5);
    idle(5);
    idle(9);
    let told: Vec<_> = test.feed().into_iter().filter(|it| it.kind == FeedKind::Idle).collect();
    assert_eq!((told.len(), told[0].text.as_str()), (2, "attempt 1 has done nothing for 30 min 0 s"));
    let history = test.head.job_history(id);
    assert_eq!(history.iter().filter(|it| matches!(it.kind, JobEventKind::Idle { .. })).count(), 2);
}
