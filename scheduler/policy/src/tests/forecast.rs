//! The replay of the queue, from which users learn when jobs start.

use std::collections::BTreeMap;

use cohabit_types::{JobId, Placement, ReasonCode, Span, Time};

use super::kit::*;
use crate::{PendingReason, QueueForecast, RunningJob, View};

fn reason(number: u64) -> PendingReason {
    PendingReason {
        job: JobId::new(number),
        code: ReasonCode::WaitingForDevices,
        why: String::new(),
        not_before: None,
        runtime: None,
    }
}

/// One device, taken by job 9, and two pending jobs.
fn busy() -> View {
    let mut view = view(vec![node(1, &[0])], vec![job(1, gpus(1)), job(2, gpus(1))]);
    let placed = job(9, gpus(1)).placed(Placement { parts: vec![] }, view.now);
    view.running.insert(placed.id, RunningJob { submitted_at: view.now, ..placed });
    view
}

/// Seconds until each of these jobs starts, in this order, where jobs run for so many seconds more.
fn waits<const N: usize>(view: &View, queue: [PendingReason; N], times: &[(u64, u64)]) -> [Option<u64>; N] {
    let times: BTreeMap<u64, u64> = times.iter().copied().collect();
    let time_left = |job: JobId| times.get(&job.number).copied().map(Span::from_secs);
    let starts = QueueForecast::new(view, queue.to_vec()).replay(view.now, N, time_left);
    let secs = |at: Time| at.since(view.now).as_micros() / 1_000_000;
    starts.into_iter().map(|at| at.map(secs)).collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn jobs_start_one_after_the_other() {
    let times = [(9, 3_500), (2, 60), (1, 10)];
    assert_eq!(waits(&busy(), [reason(2), reason(1)], &times), [Some(3_500), Some(3_560)]);
    assert_eq!(waits(&busy(), [reason(1), reason(2)], &times), [Some(3_500), Some(3_510)]);
}

#[test]
fn what_waits_for_a_job_of_unknown_time_has_no_time() {
    assert_eq!(waits(&busy(), [reason(2), reason(1)], &[(9, 3_500)]), [Some(3_500), None]);
    assert_eq!(waits(&busy(), [reason(2), reason(1)], &[(2, 60)]), [None, None]);
}

#[test]
fn a_job_waits_for_its_own_time_and_others_do_not() {
    let mut later = reason(2);
    later.not_before = Some(busy().now + Span::from_secs(100));
    assert_eq!(waits(&busy(), [later, reason(1)], &[(9, 40), (2, 60)]), [Some(100), Some(160)]);
}

#[test]
fn a_job_that_no_node_could_hold_has_no_time_and_holds_nobody_up() {
    let mut view = busy();
    view.pending.insert(JobId::new(1), job(1, gpus(2)));
    assert_eq!(waits(&view, [reason(1), reason(2)], &[(9, 5)]), [None, Some(5)]);
}

#[test]
fn only_so_many_jobs_are_replayed() {
    let queue = QueueForecast::new(&busy(), vec![reason(1), reason(2)]);
    assert_eq!(queue.replay(busy().now, 1, |_| None).len(), 1);
}
