//! The checkers find what they are there to find.

use cohabit_types::{
    AttemptId, AttemptRecord, Bytes, Cause, JobEvent, JobEventKind, JobId, Span, StopReason, Time,
};

use super::kit::*;
use crate::checks::attempt_charged_wrongly;
use crate::failure::FailureKind;
use crate::scenario::ExternalEvent;

#[test]
fn a_wrong_orphan_grace_is_found() {
    let mut scenario = cluster(2).submit(at(50), work(2_000)).inject(at(100), cut(0, 3_000, 0, 0));
    scenario.config.lost_after = secs(60);
    scenario.announced_grace = Some(Span::ZERO);
    let failure = failed(scenario);
    assert_eq!(failure.kind, FailureKind::Invariant);
    let given_up = "Lost(\"node node-0 was unreachable for 1 min 0 s\"), the truth is Lives";
    assert!(failure.detail.ends_with(given_up), "{failure}");
}

#[test]
fn a_job_that_does_not_end_is_named_with_its_reason() {
    let mut scenario = cluster(1).submit(at(50), work(100_000)).quiet(at(60));
    scenario.end_timeout = Span::from_secs(1_000);
    let failure = failed(scenario);
    assert_eq!(failure.kind, FailureKind::NeverEnded);
    assert!(failure.detail.starts_with("job 1 is RUNNING: "), "{}", failure.detail);
}

#[test]
#[should_panic(expected = "there is no policy 'tea leaves'")]
fn an_unknown_policy_is_refused() {
    let mut scenario = cluster(1);
    scenario.policy = "tea leaves".into();
    failed(scenario);
}

#[test]
fn a_machine_detects_its_overload() {
    let mut machine = super::machine::machine();
    let mut spec = work_on(600, 10);
    spec.demand.gpu_memory = Some(Bytes(10 << 30));
    super::machine::spawn(&mut machine, start(1, spec.clone(), &["node-0"]));
    assert_eq!(machine.overload(at(0)), None);
    super::machine::spawn(&mut machine, start(2, spec, &["node-0"]));
    let overload = machine.overload(at(0)).expect("it holds too much");
    assert_eq!(overload, "1.2 and 20 GiB of device node-0 are taken by 2 ranks");
}

#[test]
fn a_change_without_jobs_does_nothing() {
    let cancel = ExternalEvent::Change { change: cohabit_types::JobChange::Cancel, back: 3 };
    let run = held(cluster(1).inject(at(10), cancel));
    assert_eq!((run.jobs.len(), run.counters.ranks), (0, 0));
}

#[test]
fn a_wrongly_charged_attempt_is_found_in_a_truncated_history() {
    let attempt = |attempt| AttemptId { job: JobId::new(8), attempt };
    let ended = |number, stopped| AttemptRecord {
        attempt: number,
        started_at: Time::from_micros(0),
        ended_at: Some(Time::from_micros(0)),
        stopped,
        ranks: Vec::new(),
        host: Vec::new(),
        idle: None,
    };
    let attempts = [ended(1, None), ended(2, Some(StopReason::DeviceLost)), ended(3, None)];
    let history = |failures: &[(u32, u32)]| -> Vec<JobEvent> {
        let requeued = |&(number, failures)| JobEventKind::Requeued {
            attempt: attempt(number),
            pause: Span::ZERO,
            failures,
            limit: 3,
            why: None,
        };
        let event = |kind| JobEvent { at: Time::from_micros(0), cause: Cause::Clock, kind };
        failures.iter().map(requeued).map(event).collect()
    };
    assert_eq!(attempt_charged_wrongly(&history(&[(1, 1), (2, 1), (3, 2)]), &attempts), None);
    assert_eq!(attempt_charged_wrongly(&history(&[(1, 1), (2, 2)]), &attempts), Some(attempt(2)));
    // Its first attempt was charged, and no event is left of that.
    assert_eq!(attempt_charged_wrongly(&history(&[(2, 1), (3, 2)]), &attempts), None);
}
