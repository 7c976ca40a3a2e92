//! The forecasts of starts and ends that users see.

use cohabit_types::{ReasonCode, Span};

use super::kit::*;
use crate::{PendingReason, RunPhase, RunningJob, View, forecast};

fn reason(number: u64, runtime: Option<u64>) -> PendingReason {
    PendingReason {
        job: cohabit_types::JobId::new(number),
        code: ReasonCode::WaitingForDevices,
        why: String::new(),
        not_before: None,
        runtime: runtime.map(Span::from_secs),
    }
}

/// One device, taken 100 seconds ago by a job that is expected to run for an hour, and two pending jobs.
fn busy() -> View {
    let mut view = view(vec![node(1, &[0])], vec![job(1, gpus(1)), job(2, gpus(1))]);
    view.now += Span::from_secs(100);
    let since = view.now - Span::from_secs(100);
    let placed = job(9, gpus(1)).placed(cohabit_types::Placement { parts: vec![] }, since);
    let ends_at = Some(view.now + Span::from_secs(3_500));
    let running = RunningJob { submitted_at: since, ends_at, ..placed };
    view.running.insert(running.id, running);
    view
}

/// Seconds until each job starts and ends, where known.
fn waits(view: &View, reasons: Vec<PendingReason>) -> Vec<(Option<u64>, Option<u64>)> {
    let secs = |at: Option<cohabit_types::Time>| at.map(|at| at.since(view.now).as_micros() / 1_000_000);
    forecast(view, reasons).iter().map(|it| (secs(it.starts_at), secs(it.ends_at))).collect()
}

#[test]
fn jobs_start_one_after_the_other_and_run_as_long_as_the_policy_expects() {
    let reasons = vec![reason(2, Some(60)), reason(1, Some(10))];
    let expected = [(Some(3_500), Some(3_560)), (Some(3_560), Some(3_570))];
    assert_eq!(waits(&busy(), reasons), expected);
}

#[test]
fn a_forecast_has_no_time_without_an_estimate() {
    let reasons = vec![reason(2, None), reason(1, Some(10))];
    assert_eq!(waits(&busy(), reasons), [(Some(3_500), None), (None, None)]);
    let mut unknown = busy();
    unknown.running.values_mut().for_each(|job| job.ends_at = None);
    assert_eq!(waits(&unknown, vec![reason(1, Some(10))]), [(None, None)]);
}

#[test]
fn what_waits_for_an_overdue_job_has_no_time() {
    let mut view = busy();
    view.now += Span::from_secs(4_900);
    assert_eq!(waits(&view, vec![reason(1, Some(1))]), [(None, None)]);
}

#[test]
fn a_job_that_is_being_stopped_ends_soon() {
    let mut view = busy();
    view.running.values_mut().for_each(|job| job.phase = RunPhase::Stopping);
    assert_eq!(waits(&view, vec![reason(1, Some(1))]), [(Some(1), Some(2))]);
}

#[test]
fn a_job_that_no_node_could_hold_has_no_forecast() {
    let mut view = busy();
    view.pending.insert(cohabit_types::JobId::new(1), job(1, gpus(2)));
    let expectation = &forecast(&view, vec![reason(1, None)])[0];
    assert_eq!((expectation.starts_at, expectation.ends_at), (None, None));
}
