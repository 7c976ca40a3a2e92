//! A bug of each class, planted around the production cores, is found with every seed.

use cohabit_types::{JobChange, JobState};

use super::kit::*;
use crate::draw::Options;
use crate::failure::{FailureKind, SimFailure};
use crate::planted_bug::PlantedBug;
use crate::recorder::TraceDetail;
use crate::run::run;
use crate::scenario::{ExternalEvent, Scenario};

/// Jobs on two machines, one of which fails twice, while the head crashes and a link breaks briefly.
fn scenario_with_faults() -> Scenario {
    let failing =
        crate::program::SimProgram { failing_attempts: 2, ..crate::program::SimProgram::working(secs(60)) };
    let mut again = failing.job();
    again.retry.limit = 3;
    cluster(2)
        .submit(at(50), work(400))
        .submit(at(50), again)
        .inject(at(150), ExternalEvent::CrashHead { effects_lost: 0, down_for: secs(10) })
        .inject(at(700), cut(0, 0, 0, 0))
        .quiet(at(1_000))
}

/// The failures by which the bug is found, with several seeds.
#[track_caller]
fn caught(plant: PlantedBug) -> Vec<SimFailure> {
    let failure = |seed| {
        let scenario = Scenario { plant: Some(plant), end_timeout: secs(20_000), ..scenario_with_faults() };
        run(seed, scenario, TraceDetail::Nothing)
            .failure
            .unwrap_or_else(|| panic!("seed {seed} held with {plant:?}"))
    };
    (0..10).map(failure).collect()
}

/// Checks that each failure is a violated invariant whose detail contains one of these parts.
#[track_caller]
fn assert_broken(failures: &[SimFailure], parts: &[&str]) {
    for failure in failures {
        assert_eq!(failure.kind, FailureKind::Invariant, "{failure}");
        assert!(parts.iter().any(|part| failure.detail.contains(part)), "{failure}");
    }
}

#[test]
fn without_a_bug_no_check_fails() {
    let run = held(scenario_with_faults());
    assert!(run.jobs.iter().all(|job| job.state == JobState::Completed), "{:?}", run.jobs);
}

#[test]
fn a_lost_report_is_caught() {
    // The head believes that the job is running until its worker comes back without it.
    let parts = ["is recorded as Lost(\"the worker reconnected without it\"), the truth is Ended(Exited("];
    assert_broken(&caught(PlantedBug::LostReport), &parts);
}

#[test]
fn a_lost_report_is_caught_without_a_new_link_too() {
    let scenario = Scenario { plant: Some(PlantedBug::LostReport), ..cluster(1).submit(at(50), work(100)) };
    let failure = failed(Scenario { end_timeout: secs(20_000), ..scenario.quiet(at(1_000)) });
    assert_eq!(failure.kind, FailureKind::NeverEnded);
    assert!(failure.detail.starts_with("job 1 is RUNNING"), "{failure}");
}

#[test]
fn a_doubled_attempt_is_caught() {
    assert_broken(&caught(PlantedBug::DoubledAttempt), &["starts on node", "runs on machines"]);
}

#[test]
fn a_leaked_slot_is_caught() {
    assert_broken(
        &caught(PlantedBug::LeakedSlot),
        &["0 of device node-1-1 is held by {}, recorded are 1 by []"],
    );
}

#[test]
fn a_forgotten_job_is_caught() {
    assert_broken(&caught(PlantedBug::ForgottenJob), &["job 1 was accepted, and is forgotten"]);
}

#[test]
fn an_unfenced_report_is_caught() {
    assert_broken(&caught(PlantedBug::UnfencedReport), &["the truth is Lives"]);
}

#[test]
fn an_unfenced_report_of_a_cancelled_job_is_caught_too() {
    let requeue = ExternalEvent::Change { change: JobChange::Requeue, back: 0 };
    let scenario = cluster(1).submit(at(50), work(400)).inject(at(100), requeue);
    let failure = failed(Scenario { plant: Some(PlantedBug::UnfencedReport), ..scenario });
    assert!(failure.detail.contains("the truth is Lives"), "{failure}");
}

#[test]
fn the_swarm_finds_bugs_of_watchdogs_leases_and_executors_within_a_few_seeds() {
    let overlap = "of one job run at once";
    let unhindered = "is stopped as an orphan, but nothing was in the way";
    let bugs: [(PlantedBug, &[&str]); 8] = [
        (PlantedBug::NoWatchdog, &["the truth is Lives", overlap]),
        (PlantedBug::UndatedLeases, &["the truth is Lives", overlap]),
        (PlantedBug::SparedExecutor, &["after its daemon sent SIGKILL"]),
        (PlantedBug::LateReap, &["had ended by itself, but is recorded as stopped"]),
        (PlantedBug::BlamedJob, &["the truth is Ended(NotStarted(NodeProblem("]),
        (PlantedBug::LinkNeedsDisk, &[unhindered]),
        (PlantedBug::WelcomeNeedsJournal, &[unhindered]),
        (PlantedBug::WallClockLeases, &[unhindered, "the truth is Lives", overlap]),
    ];
    for (plant, parts) in bugs {
        let (seed, failure) = first_found(plant);
        assert!(parts.iter().any(|part| failure.detail.contains(part)), "{plant:?}, seed {seed}: {failure}");
    }
}

/// The first seed of the swarm with which the bug is found, and how.
#[track_caller]
fn first_found(plant: PlantedBug) -> (u64, SimFailure) {
    let failure = |seed| {
        let drawn = Scenario::draw(seed, &Options::default());
        run(seed, Scenario { plant: Some(plant), ..drawn }, TraceDetail::Nothing).failure
    };
    let mut found = (0..400).filter_map(|seed| Some((seed, failure(seed)?)));
    found.next().unwrap_or_else(|| panic!("no seed finds {plant:?}"))
}

#[test]
fn the_swarm_finds_every_bug_of_the_order_permissions_the_archive_or_code_within_a_few_seeds() {
    let bugs: [(PlantedBug, &[&str]); 19] = [
        (PlantedBug::ImpatientWorker, &["is overloaded"]),
        (PlantedBug::KeptPrefetch, &["is PENDING", "is RUNNING", "None is recorded"]),
        (PlantedBug::UnaskedSuccession, &["not by a plan, and no member of its array has just succeeded"]),
        (PlantedBug::GrantBeforeShrink, &["is overloaded", "recorded is"]),
        (PlantedBug::UnfetchedCode, &["starts without its code"]),
        (PlantedBug::KeptCopies, &["keeps a copy of the code"]),
        (PlantedBug::StaleArchive, &["was accepted, and is forgotten"]),
        (PlantedBug::BelievedImpostor, &["the truth is Lives"]),
        (PlantedBug::TrustedEverybody, &["granted a hostile request"]),
        (PlantedBug::UnwillingVictim, &["for another, but it may not be stopped"]),
        (PlantedBug::LaneVictim, &["for another, but it had waited too long before it started"]),
        (PlantedBug::IgnoredQuantum, &["before its quantum"]),
        (PlantedBug::VictimBelowPart, &["is left with less than is due to them"]),
        (PlantedBug::DoubleCharge, &["thousandths of a GPU, but"]),
        (PlantedBug::ForgottenReservation, &["reserved for others"]),
        (PlantedBug::StoppedWork, &["is stopped as idle, but it works"]),
        (PlantedBug::BelievedIdle, &["idle"]),
        // A job of several devices waits for ever, and beside no idle one that fits.
        (PlantedBug::LostVictim, &["waits although it fits an idle device", "is PENDING"]),
        (PlantedBug::ForgottenWake, &["jobs wait beside running ones, and the policy is not asked again"]),
    ];
    for (plant, parts) in bugs {
        let (seed, failure) = first_found(plant);
        assert!(parts.iter().any(|part| failure.detail.contains(part)), "{plant:?}, seed {seed}: {failure}");
    }
}
