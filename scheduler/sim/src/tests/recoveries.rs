//! Scenarios of recovery: whatever dies or is late, no job is lost and none runs twice.

use std::collections::BTreeSet;

use cohabit_types::{GpuRequest, JobRecord, JobState, Outcome, Span, StartFailure, StopReason};

use super::kit::*;
use crate::machine::Disk;
use crate::program::SimProgram;
use crate::recorder::TraceDetail;
use crate::run::run;
use crate::scenario::{ExternalEvent, Scenario};
use crate::wall_clock::ClockStep;

/// Checks that a job ran once from start to end and took this many seconds.
#[track_caller]
fn ran_once(job: &JobRecord, seconds_long: u64) {
    assert_eq!((job.state, job.attempts.len()), (JobState::Completed, 1), "{:?}", job.attempts);
    assert_eq!(seconds(job.started_at, job.ended_at), seconds_long);
}

/// The outcome of the first rank of the first attempt.
fn first_outcome(job: &JobRecord) -> Option<&Outcome> {
    job.attempts.first()?.ranks.first()?.outcome.as_ref()
}

#[test]
fn a_cut_shorter_than_the_orphan_grace_has_no_effect() {
    for length in [1, 30, 90] {
        let run = held(cluster(2).submit(at(50), work(1_000)).inject(at(100), cut(0, length, 0, 0)));
        ran_once(only(&run), 1_000);
    }
}

#[test]
fn head_and_workers_that_restart_together_keep_every_job() {
    let mut scenario = (0..4).fold(cluster(2), |scenario, _| scenario.submit(at(50), work(1_000)));
    scenario = scenario.inject(at(100), ExternalEvent::CrashHead { effects_lost: 0, down_for: secs(20) });
    for node in 0..2 {
        scenario = scenario
            .inject(at(100), ExternalEvent::CrashWorker { node, down_for: secs(5 + 20 * node as u64) });
    }
    let run = held(scenario);
    assert_eq!((run.jobs.len(), run.counters.ranks, run.counters.crashes), (4, 4, 3));
    run.jobs.iter().for_each(|job| ran_once(job, 1_000));
}

#[test]
fn after_a_general_outage_every_job_runs_again() {
    let mut scenario = (0..4).fold(cluster(2), |scenario, _| scenario.submit(at(50), work(1_000)));
    scenario = scenario.inject(at(100), ExternalEvent::CrashHead { effects_lost: 0, down_for: secs(60) });
    for node in 0..2 {
        let crash = ExternalEvent::CrashMachine { node, down_for: Some(secs(60)), disk: Disk::Kept };
        scenario = scenario.inject(at(100), crash);
    }
    let run = held(scenario);
    assert_eq!((run.jobs.len(), run.counters.ranks), (4, 8));
    assert!(run.jobs.iter().all(|job| job.state == JobState::Completed && job.attempts.len() == 2));
}

#[test]
fn a_rank_whose_executor_is_killed_runs_again() {
    let run = held(
        cluster(1)
            .submit(at(50), work(500))
            .inject(at(100), ExternalEvent::KillExecutor { node: 0, number: 0 }),
    );
    let job = only(&run);
    assert_eq!((job.state, job.attempts.len()), (JobState::Completed, 2));
    assert_eq!(first_outcome(job), Some(&Outcome::Lost("its executor was killed".into())));
    assert_eq!(seconds(Some(at(100)), job.attempts[0].ended_at), 0);
}

#[test]
fn a_gang_restarts_completely_when_one_executor_is_killed() {
    let mut spec = work(500);
    spec.demand.nodes = 4;
    let run = held(
        cluster(4).submit(at(50), spec).inject(at(100), ExternalEvent::KillExecutor { node: 2, number: 0 }),
    );
    let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert_eq!((only(&run).state, run.counters.ranks), (JobState::Completed, 8));
    assert!(second.started_at >= first.ended_at.expect("it has ended"), "never half of it");
    assert_eq!(first.stopped, Some(StopReason::GangBroken));
    assert_eq!(seconds(Some(second.started_at), second.ended_at), 500);
}

#[test]
fn a_gang_restarts_completely_when_one_rank_dies() {
    let mut spec = SimProgram { failing_attempts: 1, ..SimProgram::working(secs(100)) }.job();
    (spec.demand.nodes, spec.retry.limit) = (4, 1);
    let run = held(cluster(4).submit(at(50), spec));
    let ranks: Vec<usize> = only(&run).attempts.iter().map(|attempt| attempt.ranks.len()).collect();
    assert_eq!((only(&run).state, ranks), (JobState::Completed, vec![4, 4]));
}

#[test]
fn a_device_is_free_only_when_leftover_processes_are_gone() {
    let leaving = |span| SimProgram { leftover_duration: span, ..SimProgram::working(secs(100)) }.job();
    for (leftover_duration, cleared_after) in [(Span::from_secs(1), 1), (Span::from_secs(600), 2)] {
        let mut first = leaving(leftover_duration);
        first.demand.gpus = GpuRequest::Whole(2);
        let mut second = work(100);
        second.demand.gpus = GpuRequest::Whole(2);
        let run = held(cluster(1).submit(at(50), first).submit(at(51), second));
        ran_once(&run.jobs[0], 100 + cleared_after);
        assert!(run.jobs[1].started_at >= run.jobs[0].ended_at);
    }
}

#[test]
fn results_delayed_by_a_slow_disk_arrive() {
    let slow = ExternalEvent::SlowDisk { node: 0, length: secs(1_000), write: secs(20) };
    let run = held(cluster(1).submit(at(50), work(100)).inject(at(60), slow));
    ran_once(only(&run), 120);
}

#[test]
fn a_machine_with_a_full_disk_is_avoided_and_costs_no_job_anything() {
    let full = ExternalEvent::FillDisk { node: 0, length: secs(1_000) };
    let mut scenario = cluster(1).inject(at(40), full.clone());
    scenario.config.node_failures = 0;
    scenario = scenario.submit(at(50), work(100)).submit(at(51), work(100));
    let run = held(scenario);
    for job in &run.jobs {
        assert_eq!(job.state, JobState::Completed, "{}", job.reason);
    }
    let starts = run.jobs.iter().map(|job| job.attempts.len()).sum::<usize>();
    assert!((10..50).contains(&starts), "{starts} attempts: the pauses grow, up to a minute");
    // With another machine beside it, no job waits.
    let run = held(cluster(2).inject(at(40), full).submit(at(50), work(100)));
    let job = only(&run);
    assert_eq!((job.state, job.attempts.len() <= 2), (JobState::Completed, true));
    assert!(job.ended_at.expect("it has ended") < at(170));
}

#[test]
fn only_a_power_cut_right_after_the_end_may_cost_a_result() {
    let attempts = |cut_at: Span| -> BTreeSet<usize> {
        let crash = ExternalEvent::CrashMachine { node: 0, down_for: Some(secs(30)), disk: Disk::Kept };
        // The head is down, and the worker has not noticed it yet.
        let gone = ExternalEvent::CrashHead { effects_lost: 0, down_for: secs(60) };
        let scenario = cluster(1).submit(at(50), work(100)).inject(at(156), gone);
        let scenario = Scenario { delay: (secs(3), secs(3)), ..scenario };
        let attempts = |seed| {
            let run = run(seed, scenario.clone().inject(at(0) + cut_at, crash.clone()), TraceDetail::Nothing);
            assert_eq!(run.failure, None);
            assert_eq!(only(&run).state, JobState::Completed);
            only(&run).attempts.len()
        };
        (0..20).map(attempts).collect()
    };
    let ended = Span::from_millis(50_000 + 3_000 + 5 + 3_000 + 200 + 100_000);
    assert_eq!(attempts(ended + Span::from_millis(500)), [1, 2].into(), "not yet flushed");
    assert_eq!(attempts(ended + Span::from_millis(1_100)), [1].into(), "flushed");
}

#[test]
fn a_slow_journal_delays_everything_and_loses_nothing() {
    let slow = ExternalEvent::SlowJournal { length: secs(600), commit: secs(7) };
    let run = held(cluster(1).inject(at(40), slow).submit(at(50), work(1_000)).submit(at(51), work(1_000)));
    run.jobs.iter().for_each(|job| assert_eq!((job.state, job.attempts.len()), (JobState::Completed, 1)));
    let waited = seconds(Some(at(50)), run.jobs[0].started_at);
    assert!(
        (7..30).contains(&waited),
        "{waited} s: a commit for the job, and the plan counts from when it came"
    );
}

#[test]
fn while_the_journal_disk_is_full_jobs_go_on_and_none_is_accepted() {
    let full = ExternalEvent::FillJournal { length: secs(600) };
    let run = held(cluster(1).submit(at(50), work(1_000)).inject(at(100), full).submit(at(150), work(100)));
    let [running, refused] = run.jobs.as_slice() else { panic!("{} jobs", run.jobs.len()) };
    ran_once(running, 1_000);
    ran_once(refused, 100);
    let accepted_after = seconds(Some(at(100)), Some(refused.submitted_at));
    assert!((600..640).contains(&accepted_after), "{accepted_after} s");
}

#[test]
fn an_end_while_the_journal_disk_is_full_counts_later() {
    let full = ExternalEvent::FillJournal { length: secs(600) };
    let run = held(cluster(1).submit(at(50), work(100)).inject(at(100), full));
    assert_eq!(
        (only(&run).state, only(&run).attempts.len(), run.counters.ranks),
        (JobState::Completed, 1, 1)
    );
}

#[test]
fn a_head_that_dies_after_writing_an_event_carries_it_out() {
    let scenario = cluster(1)
        .inject(at(40), ExternalEvent::SlowJournal { length: secs(600), commit: secs(5) })
        .submit(at(50), work(100))
        .inject(at(53), ExternalEvent::CrashHead { effects_lost: 0, down_for: secs(10) });
    for seed in 0..10 {
        let run = run(seed, scenario.clone(), TraceDetail::Last(60));
        assert_eq!(run.failure, None, "{}", run.trace.join("\n"));
        let job = only(&run);
        assert_eq!((job.state, job.attempts.len(), run.counters.ranks), (JobState::Completed, 1, 1));
    }
}

#[test]
fn an_order_lost_with_the_head_costs_its_job_nothing() {
    let mut scenario = cluster(1)
        .inject(at(40), ExternalEvent::SlowJournal { length: secs(600), commit: secs(5) })
        .submit(at(50), work(100))
        .inject(at(57), ExternalEvent::CrashHead { effects_lost: 0, down_for: secs(10) });
    scenario.config.node_failures = 0;
    // Whether the plan is durable when the head dies depends on the seed.
    let first_outcome_of = |seed| {
        let run = run(seed, scenario.clone(), TraceDetail::Last(60));
        assert_eq!(run.failure, None, "{}", run.trace.join("\n"));
        assert_eq!((only(&run).state, run.counters.ranks), (JobState::Completed, 1));
        first_outcome(only(&run)).cloned()
    };
    let outcomes: Vec<_> = (0..10).map(first_outcome_of).collect();
    assert!(outcomes.contains(&Some(Outcome::NotStarted(StartFailure::OrderLost))), "{outcomes:?}");
    assert!(outcomes.contains(&Some(Outcome::Exited(0))), "{outcomes:?}");
}

#[test]
fn hellos_in_any_order_leave_one_link_and_every_rank() {
    let redial = ExternalEvent::Redial { node: 0, times: 5, lag: secs(10) };
    for seed in 0..20 {
        let scenario = cluster(2).submit(at(50), work(1_000)).inject(at(100), redial.clone());
        let run = run(seed, scenario.inject(at(104), redial.clone()), TraceDetail::Last(60));
        assert_eq!(run.failure, None, "{}", run.trace.join("\n"));
        ran_once(only(&run), 1_000);
    }
}

#[test]
fn fifo_plans_for_a_stalled_policy() {
    let mut scenario = cluster(1).inject(at(40), ExternalEvent::StallPolicy { length: secs(1_000) });
    scenario.policy = "a-srpt".into();
    let run = held(scenario.submit(at(50), work(100)));
    ran_once(only(&run), 100);
    assert_eq!(seconds(Some(at(50)), only(&run).started_at), 30, "the limit of the policy's time");
}

#[test]
fn a_late_plan_is_ignored() {
    let mut scenario = cluster(1).submit(at(50), work(100));
    (scenario.planning, scenario.planning_limit) = ((secs(60), secs(60)), secs(10));
    assert_eq!(seconds(Some(at(50)), only(&held(scenario)).started_at), 10);
}

#[test]
fn a_clock_change_costs_no_job() {
    for step in [ClockStep::Ahead(secs(3_600)), ClockStep::Back(secs(3_600)), ClockStep::Back(secs(10))] {
        let set = ExternalEvent::StepClock { node: 0, step };
        let restart = ExternalEvent::CrashMachine { node: 0, down_for: Some(secs(10)), disk: Disk::Kept };
        let mut spec = work(1_000);
        spec.time_limit = Some(secs(1_500));
        let run = held(cluster(1).submit(at(50), spec).inject(at(100), set).inject(at(200), restart));
        let job = only(&run);
        assert_eq!((job.state, job.attempts.len()), (JobState::Completed, 2), "{:?}", job.attempts);
        assert_eq!(seconds(job.started_at, job.ended_at), 1_000);
    }
}

#[test]
fn a_clock_jump_makes_the_head_give_up_no_node_early() {
    let leap = ExternalEvent::StepHeadClock(ClockStep::Ahead(secs(3_600)));
    let scenario =
        cluster(2).submit(at(50), work(1_000)).inject(at(100), cut(0, 60, 0, 0)).inject(at(130), leap);
    let run = held(scenario);
    let job = only(&run);
    assert_eq!((job.state, job.attempts.len(), run.counters.ranks), (JobState::Completed, 1, 1));
    assert_eq!(seconds(job.started_at, job.ended_at), 4_600, "by the head's clock");
}

#[test]
fn a_clock_jump_while_the_head_is_down_gives_up_no_node_early() {
    let gone = ExternalEvent::CrashHead { effects_lost: 0, down_for: secs(20) };
    let leap = ExternalEvent::StepHeadClock(ClockStep::Ahead(secs(3_600)));
    let scenario = cluster(2).submit(at(50), work(1_000)).inject(at(100), cut(0, 60, 0, 0));
    let run = held(scenario.inject(at(110), gone).inject(at(120), leap));
    assert_eq!((only(&run).state, run.counters.ranks), (JobState::Completed, 1));
}

#[test]
fn a_head_whose_clock_is_set_back_runs_slowly_and_gives_up_no_node_early() {
    let back = ExternalEvent::StepHeadClock(ClockStep::Back(secs(3_600)));
    let gone = ExternalEvent::CrashHead { effects_lost: 0, down_for: secs(5) };
    let scenario = cluster(2).submit(at(50), work(1_000)).inject(at(60), back.clone());
    let run = held(scenario.clone().inject(at(100), cut(0, 60, 0, 0)).inject(at(200), gone));
    let job = only(&run);
    assert_eq!((job.state, job.attempts.len(), run.counters.ranks), (JobState::Completed, 1, 1));
    let counted = seconds(job.started_at, job.ended_at);
    assert!((480..550).contains(&counted), "{counted} s by the head's clock");
    // A node that does not come back is given up all the same.
    let run = held(scenario.inject(at(100), cut(0, 3_000, 0, 0)).quiet(at(20_000)));
    assert_eq!((only(&run).state, only(&run).attempts.len()), (JobState::Completed, 2));
}

#[test]
fn orphans_are_stopped_in_time_whatever_the_wall_clock_shows() {
    for step in [ClockStep::Ahead(secs(3_600)), ClockStep::Back(secs(3_600))] {
        let set = ExternalEvent::StepClock { node: 0, step };
        let scenario = cluster(2).submit(at(50), work(2_000)).inject(at(100), cut(0, 3_000, 0, 0));
        let run = held(scenario.inject(at(110), set).quiet(at(20_000)));
        let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
        assert_eq!((first.ranks[0].node.as_str(), second.ranks[0].node.as_str()), ("node-0", "node-1"));
        assert_eq!(only(&run).state, JobState::Completed);
    }
}
