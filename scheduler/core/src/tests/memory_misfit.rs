//! Which ends of ranks say that jobs did not fit into a GPU's memory together.

use cohabit_types::{
    Condition, DeviceId, DeviceSharing, Enforcement, JobChange, JobId, Outcome, RankId, Report,
    SharingStrategy, Signal, StopReason, Time,
};

use super::kit::*;
use crate::{Effect, Event, Head, MemoryMisfit};

fn oom() -> Outcome {
    Outcome::OutOfGpuMemory { code: 1, message: "CUDA out of memory".into() }
}

/// Jobs that run on one device.
fn running(count: u64) -> TestHead {
    let mut test = TestHead::with_devices(1);
    for number in 1..=count {
        test.submit(part(300));
        test.started(rank(number, 1));
    }
    test.effects();
    test
}

fn report(test: &mut TestHead, report: Report) {
    test.event(Event::Report(key(1, 1), report));
    test.planned();
}

fn with_condition(sharing: DeviceSharing) -> Report {
    let condition = Condition { sharing, ..Condition::default() };
    Report::Condition { device: DeviceId("gpu-0".into()), condition }
}

fn misfits(test: &mut TestHead) -> Vec<MemoryMisfit> {
    let misfit = |effect| if let Effect::RecordMisfit(misfit) = effect { Some(misfit) } else { None };
    test.effects().into_iter().filter_map(misfit).collect()
}

fn misfit(rank: RankId, sharing: SharingStrategy, neighbors: &[JobId], at: Time) -> MemoryMisfit {
    let (device, gpu) = (DeviceId("gpu-0".into()), "test GPU".into());
    MemoryMisfit { rank, device, gpu, sharing, neighbors: neighbors.to_vec(), at }
}

#[test]
fn a_job_that_finds_no_memory_beside_others_names_them() {
    let mut test = running(3);
    test.ended(rank(2, 1), oom(), None);
    let expected = misfit(rank(2, 1), SharingStrategy::TimeSliced, &[job(1), job(3)], test.now);
    assert_eq!(misfits(&mut test), [expected]);
}

#[test]
fn a_misfit_is_recorded_before_a_plan_is_requested() {
    let mut test = running(2);
    test.submit(gpus(1));
    test.effects();
    let report = Report::Ended {
        rank: rank(2, 1),
        outcome: oom(),
        stopped: None,
        progress: None,
        at: test.now,
        usage: Vec::new(),
    };
    test.event(Event::Report(key(1, 1), report));
    let effects = test.effects();
    let place = |wanted: fn(&Effect) -> bool| effects.iter().position(wanted);
    let recorded = place(|it| matches!(it, Effect::RecordMisfit(_)));
    assert!(recorded.is_some() && recorded < place(|it| matches!(it, Effect::Plan(_))), "{effects:?}");
}

#[test]
fn a_job_that_fails_alone_has_no_neighbors_to_blame() {
    let mut test = running(1);
    test.ended(rank(1, 1), oom(), None);
    let alone = misfit(rank(1, 1), SharingStrategy::TimeSliced, &[], test.now);
    assert_eq!(misfits(&mut test), [alone]);
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.ended(rank(1, 1), oom(), None);
    let alone = misfit(rank(1, 1), SharingStrategy::Exclusive, &[], test.now);
    assert_eq!(misfits(&mut test), [alone]);
}

#[test]
fn a_limit_of_its_own_says_nothing_about_the_neighbors() {
    let enforced = Report::Sharing { rank: rank(2, 1), enforcement: Enforcement::Enforced };
    for limit in [enforced, with_condition(DeviceSharing::Enforced)] {
        let mut test = running(2);
        report(&mut test, limit.clone());
        test.ended(rank(2, 1), oom(), None);
        assert_eq!(misfits(&mut test), [], "{limit:?}");
    }
    let mut test = running(2);
    report(&mut test, with_condition(DeviceSharing::Enforced));
    let enforcement = Enforcement::Unenforced("it is no client of the server".into());
    report(&mut test, Report::Sharing { rank: rank(2, 1), enforcement });
    test.ended(rank(2, 1), oom(), None);
    let expected = misfit(rank(2, 1), SharingStrategy::Mps, &[job(1)], test.now);
    assert_eq!(misfits(&mut test), [expected]);
}

#[test]
fn other_ends_say_nothing_about_the_neighbors() {
    let killed = Outcome::Signalled(Signal::KILL);
    let ends = [
        (killed, Some(StopReason::GpuMemory)),
        (oom(), Some(StopReason::GpuMemory)),
        (Outcome::Exited(1), None),
    ];
    for (outcome, stopped) in ends {
        let mut test = running(2);
        test.ended(rank(2, 1), outcome.clone(), stopped);
        assert_eq!(misfits(&mut test), [], "{outcome:?} {stopped:?}");
    }
    let mut test = running(2);
    test.change(JobChange::Cancel, job(2));
    test.ended(rank(2, 1), oom(), None);
    assert_eq!(misfits(&mut test), [], "it was being stopped");
}

#[test]
fn nothing_is_said_of_several_devices_or_of_jobs_that_have_not_started() {
    let mut test = TestHead::with_devices(2);
    test.submit(gpus(2));
    test.ended(rank(1, 1), oom(), None);
    assert_eq!(misfits(&mut test), [], "either device may have been full");
    let mut test = running(1);
    test.submit(part(300));
    test.ended(rank(1, 1), oom(), None);
    assert_eq!(misfits(&mut test), [], "the other job may hold memory already");
}

#[test]
fn a_repeated_report_and_a_replay_tell_of_the_same_misfit() {
    let mut test = running(2);
    test.ended(rank(2, 1), oom(), None);
    let first = misfits(&mut test);
    assert_eq!(first.len(), 1);
    test.ended(rank(2, 1), oom(), None);
    assert_eq!(misfits(&mut test), [], "the head knows of the end");
    let (mut replayed, mut effects) = (Head::new(), Vec::new());
    for (at, event) in &test.events {
        replayed.handle(*at, event.clone(), &mut effects);
    }
    let again: Vec<_> = effects.into_iter().filter(|it| matches!(it, Effect::RecordMisfit(_))).collect();
    assert_eq!(again, first.into_iter().map(Effect::RecordMisfit).collect::<Vec<_>>());
}
