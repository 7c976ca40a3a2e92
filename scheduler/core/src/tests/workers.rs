//! Workers join, report, disconnect and return.

use cohabit_types::{
    AttemptProgress, Demand, HeldRank, HeldRankPhase, JobChange, JobEventKind, JobSpec, JobState, LaunchMode,
    NodeState, Order, Outcome, Progress, ReasonCode, Report, Span, StartFailure, Stop, StopReason,
};

use super::kit::*;
use crate::{Config, Effect, Event};

fn held(rank: cohabit_types::RankId, phase: HeldRankPhase) -> HeldRank {
    HeldRank { rank, phase }
}

#[test]
fn a_short_break_of_the_link_changes_nothing() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.started(rank(1, 1));
    test.lose(1, 1);
    assert_eq!(test.head.node_records()[0].state, NodeState::Unreachable);
    test.after(Span::from_secs(59));
    test.effects();
    test.rejoin(1, 2, vec![held(rank(1, 1), HeldRankPhase::Running(test.now))]);
    assert_eq!(test.orders(), [], "nothing is started or stopped");
    test.after(Span::from_secs(600));
    assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, 1));
    test.ended_on(key(1, 2), rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.state(id), JobState::Completed);
}

/// A job on an unreachable node counts as running, and says that nobody knows.
#[test]
fn a_job_says_that_nothing_is_heard_of_its_node() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.started(rank(1, 1));
    test.lose(1, 1);
    test.now += Span::from_secs(12);
    let record = test.record(id);
    assert_eq!((record.state, record.reason_code), (JobState::Running, ReasonCode::Running));
    assert_eq!(record.reason, "it is running on node1; nothing has been heard of node node1 for 12 s");
    let explained = test.reader().explain(id).unwrap().sentences.join(" ");
    let goes_on = "Node node1 is unreachable: the job goes on there when the worker is connected again, or given up \
                   after 1 min 0 s without a connection.";
    assert!(explained.contains(goes_on), "{explained}");
    test.rejoin(1, 2, vec![held(rank(1, 1), HeldRankPhase::Running(test.now))]);
    assert_eq!(test.record(id).reason, "it is running on node1");
}

#[test]
fn a_lost_node_gives_its_job_to_another_and_late_reports_are_ignored() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.join(2, 1);
    test.lose(1, 1);
    test.effects();
    test.after(Span::from_secs(60));
    let orders = test.orders();
    assert!(
        matches!(&orders[..], [(to, Order::Run(run))] if *to == key(2, 1) && run.attempt == id.attempt(2))
    );
    test.rejoin(1, 2, vec![held(rank(1, 1), HeldRankPhase::Running(test.now))]);
    let superseded = Order::Stop { attempt: id.attempt(1), why: StopReason::Superseded };
    assert_eq!(test.orders(), [(key(1, 2), superseded)]);
    test.ended_on(key(1, 2), rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.orders(), [(key(1, 2), Order::Acknowledge(rank(1, 1)))]);
    assert_eq!(test.state(id), JobState::Running, "a late report of an old attempt is ignored");
    // Node 1 lost the rank and may say so once; another node has nothing to say about it.
    test.ended_on(key(1, 2), rank(1, 1), Outcome::Exited(0), None);
    test.ended_on(key(2, 1), rank(1, 1), Outcome::Exited(0), None);
    let stale = JobEventKind::StaleReport(rank(1, 1));
    assert_eq!(test.head.job_history(id).iter().filter(|it| it.kind == stale).count(), 1);
}

#[test]
fn the_long_grace_of_one_job_keeps_no_other_waiting() {
    let mut test = TestHead::with_devices(2);
    let mut slow = gpus(1);
    slow.stop.grace = Span::from_secs(3_600);
    let (slow, other) = (test.submit(slow), test.submit(gpus(1)));
    test.join(2, 1);
    test.lose(1, 1);
    test.effects();
    test.after(Span::from_secs(60));
    assert_eq!((test.record(other).attempt, test.record(slow).attempt), (2, 1), "it runs on the other node");
    assert_eq!(test.head.node_records()[0].state, NodeState::Unreachable);
    let orphan_grace = inventory(1, 2, Vec::new()).orphan_grace;
    test.after(orphan_grace + Span::from_secs(3_600 + 30 - 61));
    assert_eq!(test.record(slow).state, JobState::Running, "it may still run there");
    test.after(Span::from_secs(1));
    assert_eq!(test.head.node_records()[0].state, NodeState::Lost);
    assert_eq!(test.state(slow), JobState::Pending);
}

#[test]
fn a_clock_that_is_set_forward_does_not_make_a_node_lost() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.join(2, 1);
    test.lose(1, 1);
    test.after(Span::from_secs(20));
    test.effects();
    test.now += Span::from_secs(3_600);
    test.event(Event::ClockSet(Span::from_secs(3_600)));
    test.event(Event::Alarm);
    test.after(Span::from_secs(39));
    assert_eq!((test.orders(), test.head.node_records()[0].state), (vec![], NodeState::Unreachable));
    test.after(Span::from_secs(1));
    assert_eq!((test.record(id).attempt, test.head.node_records()[0].state), (2, NodeState::Lost));
}

#[test]
fn a_restart_of_the_head_waits_anew_for_a_node() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.lose(1, 1);
    test.after(Span::from_secs(50));
    // The worker may have had a link since, of which a full disk kept the journal from knowing.
    test.event(Event::HeadStarted(Config { lost_after: Span::from_secs(60), ..Config::default() }));
    test.after(Span::from_secs(59));
    assert_eq!(test.state(id), JobState::Running);
    test.after(Span::from_secs(1));
    assert_eq!(test.state(id), JobState::Pending);
}

#[test]
fn a_job_that_keeps_losing_its_node_ends_as_node_fail() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    for attempt in 1..=3 {
        assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, attempt));
        test.lose(1, u64::from(attempt));
        test.after(Span::from_secs(60));
        test.rejoin(1, u64::from(attempt) + 1, vec![]);
    }
    assert_eq!((test.state(id), test.record(id).reason_code), (JobState::NodeFail, ReasonCode::ExecutorLost));
}

#[test]
fn a_rank_that_the_worker_does_not_hold_is_started_again() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.effects();
    test.rejoin(1, 2, vec![]);
    let runs = test.runs();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].attempt, id.attempt(2));
}

#[test]
fn an_order_lost_in_a_head_crash_uses_no_retry() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    // More often than a job may lose its node.
    for attempt in 1..=9 {
        test.after(Span::from_secs(1));
        test.event(Event::HeadStarted(Config { node_failures: 2, ..Config::default() }));
        test.rejoin(1, u64::from(attempt) + 1, vec![]);
        let record = test.record(id);
        assert_eq!((record.state, record.attempt), (JobState::Running, attempt + 1));
        let unheard = Outcome::NotStarted(StartFailure::OrderLost);
        assert_eq!(record.attempts[attempt as usize - 1].ranks[0].outcome, Some(unheard));
    }
    let job = &test.head.jobs[&id];
    assert_eq!((job.own_failures, job.node_failures), (0, 0));
}

#[test]
fn a_rank_that_had_started_and_is_gone_after_a_restart_counts_as_lost() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.started(rank(1, 1));
    test.after(Span::from_secs(1));
    test.event(Event::HeadStarted(Config::default()));
    test.rejoin(1, 2, vec![]);
    assert_eq!(test.head.jobs[&id].node_failures, 1);
}

#[test]
fn a_worker_cannot_claim_that_an_order_was_lost_while_the_head_is_up() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.ended(rank(1, 1), Outcome::NotStarted(StartFailure::OrderLost), None);
    assert_eq!((test.state(id), test.record(id).reason_code), (JobState::Failed, ReasonCode::CouldNotStart));
}

#[test]
fn a_newer_link_replaces_a_half_open_one_and_the_older_is_dropped() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.effects();
    test.rejoin(1, 2, vec![held(rank(1, 1), HeldRankPhase::Running(test.now))]);
    let closed = |effects: Vec<Effect>| {
        let closed = |it| if let Effect::Close(key, _) = it { Some(key) } else { None };
        effects.into_iter().filter_map(closed).collect::<Vec<_>>()
    };
    assert_eq!(closed(test.effects()), [key(1, 1)]);
    test.lose(1, 1);
    assert_eq!(test.head.node_records()[0].state, NodeState::Up, "the older link's end is not the newer's");
    test.rejoin(1, 1, vec![]);
    assert_eq!(closed(test.effects()), [key(1, 1)]);
}

#[test]
fn a_cancellation_reaches_a_worker_that_was_disconnected() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.lose(1, 1);
    test.change(JobChange::Cancel, id);
    test.effects();
    test.rejoin(1, 2, vec![held(rank(1, 1), HeldRankPhase::Running(test.now))]);
    let stop = Order::Stop { attempt: id.attempt(1), why: StopReason::Cancelled };
    assert_eq!(test.orders(), [(key(1, 2), stop)]);
}

#[test]
fn a_repeated_report_is_acknowledged_again_and_changes_nothing() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    let chapters = test.head.job_history(id).len();
    test.effects();
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.effects(), [Effect::SendOrder(key(1, 1), Order::Acknowledge(rank(1, 1)))]);
    assert_eq!(test.head.job_history(id).len(), chapters);
}

#[test]
fn two_workers_with_one_name_get_different_names() {
    let mut test = TestHead::with_devices(1);
    let mut twin = inventory(2, 1, vec![]);
    twin.name = "node1".into();
    test.event(Event::Joined(key(2, 1), twin));
    let names: Vec<String> = test.head.node_records().into_iter().map(|node| node.name).collect();
    assert_eq!(names, ["node1", "node1-2"]);
}

#[test]
fn a_gang_starts_as_a_whole_and_is_stopped_as_a_whole() {
    let mut test = TestHead::with_devices(1);
    let demand = Demand { nodes: 2, ..Demand::default() };
    test.join(2, 1);
    let blocker = test.submit(gpus(1));
    let gang = test.submit(JobSpec { demand, ..command() });
    assert_eq!(test.state(gang), JobState::Pending);
    assert!(test.record(gang).reason.starts_with("needs 2 nodes at the same time; 1 node has enough free"));
    test.effects();
    test.ended(blocker.attempt(1).rank(0), Outcome::Exited(0), None);
    let runs = test.runs();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1].nodes, ["10.0.0.1", "10.0.0.2"]);
    assert_eq!((runs[1].ranks[0].rank, runs[1].ranks[0].node_rank, runs[1].world_size), (1, 1, 2));
    test.ended(gang.attempt(1).rank(0), Outcome::Exited(1), None);
    let stop = Order::Stop { attempt: gang.attempt(1), why: StopReason::GangBroken };
    assert!(test.orders().contains(&(key(2, 1), stop)));
    let second = gang.attempt(1).rank(1);
    test.ended_on(key(2, 1), second, Outcome::Exited(0), Some(StopReason::GangBroken));
    assert_eq!((test.state(gang), test.record(gang).exit_code), (JobState::Failed, Some(1)));
}

#[test]
fn a_lost_node_is_not_forgotten_while_another_rank_of_its_gang_runs() {
    let mut test = TestHead::with_devices(1);
    test.join(2, 1);
    let demand = Demand { nodes: 2, ..Demand::default() };
    let gang = test.submit(JobSpec { demand, ..command() });
    test.lose(1, 1);
    test.after(Span::from_secs(60 * 101));
    // Each event checks the invariants.
    test.event(Event::Alarm);
    assert_eq!((test.state(gang), test.head.node_records().len()), (JobState::Completing, 2));
    let second = gang.attempt(1).rank(1);
    test.ended_on(key(2, 1), second, Outcome::Exited(0), Some(StopReason::GangBroken));
    assert_eq!(test.state(gang), JobState::Pending);
    test.event(Event::Alarm);
    assert_eq!(test.head.node_records().len(), 1);
}

#[test]
fn per_gpu_launch_gives_each_device_a_rank() {
    let mut test = TestHead::with_devices(2);
    test.submit(JobSpec { launch: LaunchMode::PerGpu, ..gpus(2) });
    let runs = test.runs();
    let devices: Vec<_> =
        runs[0].ranks.iter().map(|rank| (rank.rank, rank.local_rank, rank.devices[0].0.clone())).collect();
    assert_eq!(devices, [(0, 0, "gpu-0".into()), (1, 1, "gpu-1".into())]);
}

#[test]
fn progress_is_kept_only_from_the_node_of_the_attempt() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    let progress =
        Progress { step: 5, total: Some(10), rate: Some(1.0), at: test.now, ..Progress::default() };
    let of = |attempt| Report::Progress(vec![AttemptProgress { attempt, progress: progress.clone() }]);
    test.event(Event::Report(key(1, 1), of(id.attempt(2))));
    assert_eq!(test.record(id).progress, None);
    test.event(Event::Report(key(1, 1), of(id.attempt(1))));
    let record = test.record(id);
    assert_eq!(record.progress.unwrap().step, 5);
    assert_eq!(record.predicted.unwrap().ends_at, Some(test.now + Span::from_secs(5)));
    let last = Some(Progress { step: 10, ..progress.clone() });
    let ended = Report::Ended {
        rank: rank(1, 1),
        outcome: Outcome::Exited(0),
        stopped: None,
        progress: last,
        at: test.now,
        usage: Vec::new(),
    };
    test.event(Event::Report(key(1, 1), ended));
    assert_eq!(test.record(id).progress.unwrap().step, 10, "the last progress outlives the attempt");
}

#[test]
fn a_node_is_not_given_up_while_ranks_may_still_run_there() {
    let mut test = TestHead::with_devices(1);
    let mut patient = inventory(1, 1, vec![]);
    patient.orphan_grace = Span::from_secs(100);
    test.event(Event::Joined(key(1, 2), patient));
    let stop = Stop { grace: Span::from_secs(50), ..Stop::default() };
    let id = test.submit(JobSpec { stop, ..gpus(1) });
    test.lose(1, 2);
    test.after(Span::from_secs(179));
    assert_eq!(test.state(id), JobState::Running, "100 s of grace, 50 s to stop, 30 s to notice");
    test.after(Span::from_secs(1));
    assert_eq!(test.state(id), JobState::Pending);
}

#[test]
fn messages_of_an_older_link_are_dropped() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.rejoin(1, 2, vec![held(rank(1, 1), HeldRankPhase::Running(test.now))]);
    test.effects();
    test.ended_on(key(1, 1), rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.effects(), [], "not even an acknowledgement");
    assert_eq!(test.state(id), JobState::Running);
}

/// A gang that is given up on one node may take long to end on another, and another job may have a longer
/// grace: the head looked for the first one again and again, within one event.
#[test]
fn a_gang_that_is_given_up_on_one_node_does_not_keep_its_alarm_due() {
    let mut test = TestHead::new();
    test.join(1, 2);
    test.join(2, 1);
    let long = JobSpec { stop: Stop { grace: Span::from_secs(900), ..Stop::default() }, ..gpus(1) };
    let patient = test.submit(long);
    let gang = test.submit(JobSpec { demand: Demand { nodes: 2, ..gpus(1).demand }, ..command() });
    assert_eq!((test.state(patient), test.state(gang)), (JobState::Running, JobState::Running));
    assert!(test.head.nodes[&node(1)].jobs.contains(&patient));
    test.lose(1, 1);
    test.after(Span::from_secs(100));
    assert_eq!((test.state(patient), test.state(gang)), (JobState::Running, JobState::Completing));
    test.after(Span::from_secs(900));
    assert_eq!(test.state(patient), JobState::Pending);
}
