//! Named scenarios: one kind of fault each, and its exact consequences.

use cohabit_types::{
    Array, GpuRequest, JobChange, JobSpec, JobState, Outcome, Signal, Span, StopReason, Time,
};

use super::kit::*;
use crate::machine::Disk;
use crate::program::{SigtermBehaviour, SimProgram, StartBehaviour};
use crate::scenario::{ExternalEvent, Scenario};

#[test]
fn a_head_killed_right_after_accepting_a_job_keeps_it_and_makes_no_duplicate() {
    let scenario = cluster(1)
        .inject(at(50), ExternalEvent::CrashHead { effects_lost: 1, down_for: secs(3) })
        .submit(at(50), work(100));
    let run = held(scenario);
    let job = only(&run);
    assert_eq!((job.id.number, job.state, job.attempts.len()), (1, JobState::Completed, 1));
    assert_eq!(run.counters.ranks, 1);
    assert_eq!(job.submitted_at.since(at(50)).as_micros() / 1_000_000, 0, "the first request made the job");
}

#[test]
fn a_head_that_dies_while_a_job_runs_adopts_it() {
    let scenario = cluster(1)
        .submit(at(50), work(1_000))
        .inject(at(100), ExternalEvent::CrashHead { effects_lost: 0, down_for: secs(60) });
    let run = held(scenario);
    assert_eq!((only(&run).state, only(&run).attempts.len()), (JobState::Completed, 1));
    assert_eq!((run.counters.ranks, seconds(only(&run).started_at, only(&run).ended_at)), (1, 1_000));
}

#[test]
fn ranks_outlive_their_worker_daemon() {
    let scenario = cluster(1)
        .submit(at(50), work(1_000))
        .inject(at(100), ExternalEvent::CrashWorker { node: 0, down_for: secs(60) });
    let run = held(scenario);
    assert_eq!((only(&run).state, only(&run).attempts.len()), (JobState::Completed, 1));
    assert_eq!((run.counters.ranks, seconds(only(&run).started_at, only(&run).ended_at)), (1, 1_000));
}

#[test]
fn a_rank_that_ends_without_its_worker_daemon_has_ended() {
    let scenario = cluster(1)
        .submit(at(50), work(100))
        .inject(at(100), ExternalEvent::CrashWorker { node: 0, down_for: secs(100) });
    let run = held(scenario);
    assert_eq!(
        (only(&run).state, only(&run).attempts.len(), run.counters.ranks),
        (JobState::Completed, 1, 1)
    );
}

#[test]
fn a_long_cut_gives_the_job_to_another_node_exactly_once() {
    let scenario =
        cluster(2).submit(at(50), work(2_000)).inject(at(100), cut(0, 3_000, 0, 0)).quiet(at(20_000));
    let run = held(scenario);
    let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert_eq!((only(&run).state, run.counters.ranks), (JobState::Completed, 2));
    assert_eq!((first.ranks[0].node.as_str(), second.ranks[0].node.as_str()), ("node-0", "node-1"));
    assert_eq!(seconds(Some(at(100)), first.ended_at), 300, "the limit for an unreachable node");
}

#[test]
fn an_orphan_is_stopped_where_it_is_and_runs_again_when_its_node_is_back() {
    let scenario = cluster(1).submit(at(50), work(500)).inject(at(100), cut(0, 250, 0, 0));
    let run = held(scenario);
    let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert_eq!((first.stopped, second.stopped), (Some(StopReason::Orphaned), None));
    assert_eq!(only(&run).state, JobState::Completed);
}

#[test]
fn a_worker_that_joins_again_before_its_loss_was_noticed_keeps_its_ranks() {
    let scenario = cluster(1).submit(at(50), work(1_000)).inject(at(100), cut(0, 0, 40, 0));
    let run = held(scenario);
    assert_eq!(
        (only(&run).state, only(&run).attempts.len(), run.counters.ranks),
        (JobState::Completed, 1, 1)
    );
    assert_eq!(seconds(only(&run).started_at, only(&run).ended_at), 1_000);
}

#[test]
fn a_machine_that_goes_down_loses_its_ranks_and_the_job_runs_again() {
    let crash = ExternalEvent::CrashMachine { node: 0, down_for: Some(secs(30)), disk: Disk::Kept };
    let run = held(cluster(1).submit(at(50), work(500)).inject(at(100), crash));
    assert_eq!((only(&run).state, only(&run).attempts.len()), (JobState::Completed, 2));
}

#[test]
fn a_machine_set_up_anew_is_another_node() {
    let crash = ExternalEvent::CrashMachine { node: 0, down_for: Some(secs(30)), disk: Disk::Wiped };
    let run = held(cluster(1).submit(at(50), work(500)).inject(at(100), crash));
    let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert_ne!(first.ranks[0].node, second.ranks[0].node);
    assert_eq!(only(&run).state, JobState::Completed);
}

#[test]
fn a_job_that_never_starts_holds_its_device_no_longer_than_a_start_may_take() {
    let stuck =
        SimProgram { start: StartBehaviour::Succeeds(SimProgram::ENDLESS), ..SimProgram::working(secs(100)) };
    let limited = JobSpec { time_limit: Some(secs(20)), ..stuck.job() };
    for (spec, state, seconds_long) in
        [(stuck.job(), JobState::Failed, 300), (limited, JobState::Timeout, 30)]
    {
        let run = held(cluster(1).submit(at(50), spec));
        let job = only(&run);
        let attempt = &job.attempts[0];
        assert_eq!((job.state, job.attempts.len()), (state, 1), "{job:?}");
        assert_eq!(seconds(Some(attempt.started_at), attempt.ended_at), seconds_long);
    }
}

#[test]
fn a_job_cancelled_during_its_start_is_stopped_as_soon_as_it_runs() {
    let slow = SimProgram { start: StartBehaviour::Succeeds(secs(10)), ..SimProgram::working(secs(500)) };
    let scenario = cluster(1)
        .submit(at(50), slow.job())
        .inject(at(55), ExternalEvent::Change { change: JobChange::Cancel, back: 0 });
    let run = held(scenario);
    let job = only(&run);
    let outcome = job.attempts[0].ranks[0].outcome.clone();
    assert_eq!((job.state, outcome), (JobState::Cancelled, Some(Outcome::Signalled(Signal::TERM))));
    assert_eq!((run.counters.ranks, seconds(Some(at(50)), job.ended_at)), (1, 10));
}

#[test]
fn a_stubborn_job_is_killed_after_its_grace() {
    let stubborn = SimProgram { on_term: SigtermBehaviour::Ignores, ..SimProgram::working(secs(500)) };
    let mut spec = stubborn.job();
    spec.time_limit = Some(secs(100));
    let run = held(cluster(1).submit(at(50), spec));
    let job = only(&run);
    let outcome = job.attempts[0].ranks[0].outcome.clone();
    assert_eq!((job.state, outcome), (JobState::Timeout, Some(Outcome::Signalled(Signal::KILL))));
    assert_eq!(seconds(job.started_at, job.ended_at), 130);
}

#[test]
fn the_limit_of_running_array_members_holds() {
    let mut spec = work(100);
    spec.array = Some(Array { at_once: Some(2), ..Array::from(0..=7) });
    let run = held(cluster(2).submit(at(50), spec));
    let summary = only(&run).array.clone().unwrap();
    assert_eq!(summary.states, [(JobState::Completed, 8)].into());
    assert_eq!(seconds(Some(at(50)), only(&run).ended_at), 400, "four rounds of two");
}

#[test]
fn a_member_preempted_for_another_of_its_array_lets_it_run() {
    let mut spec = work(3_000);
    spec.demand.gpus = GpuRequest::Whole(2);
    spec.array = Some(Array::from(0..=1));
    spec.preemptible = true;
    let mut aside = work(10);
    aside.demand.gpus = GpuRequest::Whole(0);
    let scenario = cluster(1).submit(at(50), spec).submit(at(60), aside.clone()).submit(at(2_000), aside);
    let run = held(Scenario { policy: "las".into(), ..scenario.quiet(at(9_000)) });
    assert_eq!((run.jobs[0].state, run.counters.ranks), (JobState::Completed, 3 + 2), "one stop in all");
    let first_had_its_hour_of_a_device = 1_800;
    let in_all = first_had_its_hour_of_a_device + 3_000 + 3_000;
    assert_eq!(seconds(Some(at(50)), run.jobs[0].ended_at), in_all);
}

#[test]
fn two_jobs_on_one_device_slow_each_other_by_the_law() {
    let crowded = cluster(1).submit(at(50), work_on(500, 100)).submit(at(50), work_on(500, 200));
    let run = held(crowded);
    let ran: Vec<u64> = run.jobs.iter().map(|job| seconds(job.started_at, job.ended_at)).collect();
    // Two jobs that keep 0.9 of a device busy share its capacity of 0.95: each takes 1.895 times as long.
    assert_eq!(ran, [189, 289]);
}

#[test]
fn a_gang_on_two_nodes_loses_its_node_as_one() {
    let mut spec = work(500);
    spec.demand.nodes = 2;
    let crash = ExternalEvent::CrashMachine { node: 1, down_for: Some(secs(30)), disk: Disk::Kept };
    let run = held(cluster(2).submit(at(50), spec).inject(at(100), crash));
    let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert_eq!((only(&run).state, run.counters.ranks), (JobState::Completed, 4));
    assert_eq!(first.stopped, Some(StopReason::GangBroken));
    assert_eq!(seconds(Some(second.started_at), second.ended_at), 500);
    assert!(seconds(Some(at(100)), first.ended_at) < 60, "as soon as the node is back without its rank");
}

#[test]
fn a_kill_reaches_a_stubborn_rank_whose_worker_was_away() {
    let change = |change| ExternalEvent::Change { change, back: 0 };
    let mut spec =
        SimProgram { on_term: SigtermBehaviour::Ignores, ..SimProgram::working(secs(50_000)) }.job();
    spec.stop.grace = secs(3_600);
    let cancelled = || cluster(1).submit(at(50), spec.clone()).inject(at(100), change(JobChange::Cancel));
    let run = held(cancelled());
    assert_eq!(seconds(Some(at(100)), only(&run).ended_at), 3_600, "after its grace");
    let killed = cancelled()
        .inject(at(120), ExternalEvent::CrashWorker { node: 0, down_for: secs(60) })
        .inject(at(130), change(JobChange::Kill));
    let run = held(killed);
    assert_eq!(
        (only(&run).state, only(&run).attempts[0].stopped),
        (JobState::Cancelled, Some(StopReason::Killed))
    );
    assert!(seconds(Some(at(180)), only(&run).ended_at) < 30, "as soon as the worker is back");
}

#[test]
fn work_in_a_checkpoint_is_not_repeated() {
    let requeue = ExternalEvent::Change { change: JobChange::Requeue, back: 0 };
    let run_with = |on_term| {
        let program = SimProgram { on_term, ..SimProgram::working(secs(1_000)) };
        held(cluster(1).submit(at(50), program.job()).inject(at(450), requeue.clone()))
    };
    let saving = run_with(SigtermBehaviour::Checkpoints(secs(5)));
    let [first, second] = only(&saving).attempts.as_slice() else { panic!("{:?}", only(&saving).attempts) };
    assert_eq!(first.stopped, Some(StopReason::Requeued));
    assert_eq!(seconds(Some(first.started_at), first.ended_at), 405);
    assert_eq!(seconds(Some(second.started_at), second.ended_at), 600);
    let dying = run_with(SigtermBehaviour::Exits(secs(5)));
    assert_eq!(seconds(Some(only(&dying).attempts[1].started_at), only(&dying).ended_at), 1_000);
}

#[test]
fn a_late_plan_still_starts_the_job() {
    let mut scenario = cluster(1).submit(at(50), work(100)).inject(at(60), cut(0, 0, 0, 0));
    (scenario.planning, scenario.planning_limit) = ((secs(60), secs(60)), secs(90));
    let run = held(scenario);
    assert_eq!(only(&run).state, JobState::Completed);
    assert!(only(&run).started_at.unwrap() >= Time::EPOCH + Span::from_secs(110));
}
