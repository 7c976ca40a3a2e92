//! Scenarios of suspended and killed processes, and of machines on which nothing can be started or written.

use cohabit_types::{JobState, Outcome, Span, StopReason};

use super::gpus::{lab, sharer};
use super::kit::*;
use crate::program::{SigtermBehaviour, SimProgram};
use crate::scenario::{ExternalEvent, Scenario};
use crate::wall_clock::ClockStep;

/// Ranks may go on for 120 s without the head, and have no grace.
fn suspended(event: ExternalEvent, alone: u64) -> Scenario {
    let mut spec =
        SimProgram { on_term: SigtermBehaviour::Ignores, ..SimProgram::working(secs(alone)) }.job();
    spec.stop.grace = Span::ZERO;
    let mut scenario = cluster(2).submit(at(50), spec).inject(at(100), event);
    scenario.config.lost_after = secs(1);
    scenario
}

#[test]
fn a_watchdog_ends_what_a_kill_by_name_leaves_before_the_job_runs_again() {
    let kill = ExternalEvent::KillByName { node: 0, down_for: secs(1_000) };
    let run = held(suspended(kill, 500));
    let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert_eq!(only(&run).state, JobState::Completed);
    // 120 s of orphan grace and 30 s for the watchdog.
    assert_eq!(seconds(Some(at(100)), first.ended_at), 150);
    assert!(second.started_at >= at(250));
}

#[test]
fn a_daemon_that_is_back_soon_ends_what_a_kill_by_name_leaves() {
    let run = held(suspended(ExternalEvent::KillByName { node: 0, down_for: secs(5) }, 500));
    let first = &only(&run).attempts[0];
    assert_eq!(first.ranks[0].outcome, Some(Outcome::Lost("its executor was killed".into())));
    assert!(seconds(Some(at(100)), first.ended_at) < 30);
}

#[test]
fn a_rank_that_ended_while_its_executor_was_suspended_is_completed_once() {
    for length in [60, 135] {
        // The second is longer than the orphan grace, and shorter than the watchdog waits.
        let suspend = ExternalEvent::SuspendExecutor { node: 0, number: 0, length: secs(length) };
        let run = held(suspended(suspend, 55));
        assert_eq!((only(&run).state, only(&run).attempts.len()), (JobState::Completed, 1));
    }
}

#[test]
fn a_rank_whose_executor_stays_suspended_is_ended_by_its_watchdog_and_runs_again() {
    for daemon_dies in [false, true] {
        let suspend = ExternalEvent::SuspendExecutor { node: 0, number: 0, length: secs(5_000) };
        let crash = ExternalEvent::CrashWorker { node: 0, down_for: secs(600) };
        let scenario = suspended(suspend, 400);
        let run = held(if daemon_dies { scenario.inject(at(101), crash) } else { scenario });
        let job = only(&run);
        assert_eq!((job.state, job.attempts.len()), (JobState::Completed, 2));
        assert!(seconds(Some(at(100)), job.attempts[0].ended_at) <= 155, "{:?}", job.attempts);
    }
}

#[test]
fn a_cancelled_rank_whose_executor_is_suspended_is_killed_by_the_daemon() {
    let suspend = ExternalEvent::SuspendExecutor { node: 0, number: 0, length: secs(5_000) };
    let cancel = ExternalEvent::Change { change: cohabit_types::JobChange::Cancel, back: 0 };
    let run = held(suspended(suspend, 4_000).inject(at(110), cancel));
    let job = only(&run);
    assert_eq!(job.attempts[0].stopped, Some(StopReason::Cancelled));
    assert_eq!(job.state, JobState::Cancelled);
    // SIGKILL was due at once, and the daemon waits 30 s for the executor.
    assert!((30..=45).contains(&seconds(Some(at(110)), job.ended_at)), "{:?}", job.ended_at);
}

#[test]
fn a_job_of_a_machine_that_was_paused_for_long_runs_elsewhere_and_not_there_again() {
    let run = held(suspended(ExternalEvent::PauseMachine { node: 0, length: secs(400) }, 600));
    let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert!(second.started_at >= first.ended_at.expect("it has ended"));
    assert!(second.started_at < at(500), "it ran elsewhere before the machine went on");
    assert_eq!(only(&run).state, JobState::Completed);
}

#[test]
fn a_short_pause_of_a_machine_costs_no_more_than_its_time() {
    let run = held(suspended(ExternalEvent::PauseMachine { node: 0, length: secs(20) }, 500));
    let job = only(&run);
    assert_eq!((job.state, job.attempts.len()), (JobState::Completed, 1));
    assert_eq!(seconds(job.started_at, job.ended_at), 520);
}

#[test]
fn jobs_of_a_worker_whose_program_cannot_be_executed_complete_elsewhere() {
    let broken = ExternalEvent::BreakProgram { node: 0, length: secs(3_000) };
    let mut scenario = cluster(2).inject(at(40), broken);
    scenario.config.node_failures = 0;
    scenario = (0..20).fold(scenario, |scenario, number| scenario.submit(at(50 + number), work(60)));
    let run = held(scenario);
    assert!(run.jobs.iter().all(|job| job.state == JobState::Completed), "{:?}", run.jobs);
    let attempts = run.jobs.iter().map(|job| job.attempts.len()).sum::<usize>();
    assert!((21..50).contains(&attempts), "{attempts} attempts: the node is tried more and more rarely");
    assert!(run.jobs.iter().all(|job| job.ended_at.expect("it has ended") < at(1_000)));
}

#[test]
fn full_disks_of_head_and_worker_and_a_broken_link_stop_no_job() {
    let scenario = cluster(1)
        .submit(at(50), work(1_000))
        .inject(at(90), ExternalEvent::FillJournal { length: secs(600) })
        .inject(at(90), ExternalEvent::FillDisk { node: 0, length: secs(600) })
        .inject(at(100), cut(0, 5, 1, 1))
        .inject(at(300), cut(0, 5, 1, 1));
    let job = &held(scenario).jobs[0];
    assert_eq!((job.state, job.attempts.len()), (JobState::Completed, 1));
    assert_eq!(seconds(job.started_at, job.ended_at), 1_000);
}

#[test]
fn clocks_of_nodes_that_jump_by_days_change_nothing() {
    for step in [ClockStep::Ahead(secs(300 * 86_400)), ClockStep::Back(secs(300 * 86_400))] {
        let scenario = cluster(1).submit(at(50), work(1_000));
        let scenario = scenario.inject(at(100), ExternalEvent::StepClock { node: 0, step });
        let job = &held(scenario.inject(at(101), cut(0, 90, 0, 0))).jobs[0];
        assert_eq!((job.state, job.attempts.len()), (JobState::Completed, 1));
    }
}

/// The job beside it goes on faster, which the machine has to remember.
#[test]
fn a_job_ends_beside_one_that_a_starting_daemon_ends() {
    let mut scenario = lab(1)
        .submit(at(50), sharer(400))
        .submit(at(50), sharer(400))
        .inject(at(100), ExternalEvent::SuspendExecutor { node: 0, number: 0, length: secs(5_000) })
        .inject(at(101), ExternalEvent::CrashWorker { node: 0, down_for: secs(5) });
    scenario.config.node_failures = 0;
    let run = held(scenario);
    let states: Vec<JobState> = run.jobs.iter().map(|job| job.state).collect();
    assert_eq!(states, [JobState::NodeFail, JobState::Completed]);
}
