//! Predicted memory lets a job share a GPU, until the first failure that the prediction may have caused.

use cohabit_types::{
    Array, Bytes, Demand, Estimate, GpuRequest, HeldRank, HeldRankPhase, IndexRange, JobChange, JobId,
    JobSpec, JobState, Outcome, Reply, Request, RetryPolicy, Share, Sharing, Signal, Span, StartFailure,
    StopReason, Submit,
};

use super::kit::*;

const GIB: u64 = 1 << 30;

/// Half a device, without a demand for memory.
fn silent() -> JobSpec {
    let demand = Demand { gpus: GpuRequest::Part(Share(500)), ..Demand::default() };
    let retry = RetryPolicy { limit: 0, ..RetryPolicy::default() };
    JobSpec { demand, retry, ..command() }
}

fn submit(test: &mut TestHead, spec: JobSpec, gibibytes: u64) -> JobId {
    let estimate = Estimate { gpu_memory: Some(Bytes(gibibytes * GIB)), ..Estimate::default() };
    let submit = Submit { spec, idempotency_key: None, estimate: Some(estimate) };
    match test.request(ada(), Request::Submit(Box::new(submit))) {
        Reply::Accepted { job, .. } => job,
        other => panic!("not accepted: {other:?}"),
    }
}

fn history(test: &TestHead, job: JobId) -> Vec<String> {
    test.head.job_history(job).into_iter().map(|event| event.kind.to_string()).collect()
}

fn predicted(test: &TestHead, job: JobId) -> Option<Bytes> {
    test.record(job).predicted.and_then(|it| it.gpu_memory)
}

#[test]
fn jobs_share_a_device_because_of_their_predicted_memory() {
    let mut test = TestHead::with_devices(1);
    let (first, second) = (submit(&mut test, silent(), 6), submit(&mut test, silent(), 7));
    let orders: Vec<Option<Bytes>> = test.runs().iter().map(|run| run.spec.demand.gpu_memory).collect();
    assert_eq!(orders, [Some(Bytes(6 * GIB)), Some(Bytes(7 * GIB))], "workers use it");
    let record = test.record(first);
    assert_eq!((record.state, record.sharing_with), (JobState::Running, vec![second]));
    assert_eq!(record.demand.gpu_memory, None, "what its user said");
    assert_eq!(predicted(&test, first), Some(Bytes(6 * GIB)));
    let unknown = test.submit(silent());
    assert_eq!(test.state(unknown), JobState::Pending, "nobody knows how much memory it needs");
}

#[test]
fn a_prediction_changes_nothing_for_jobs_that_demand_memory_or_a_whole_gpu() {
    let mut test = TestHead::with_devices(3);
    let said = Demand { gpu_memory: Some(Bytes(3 * GIB)), ..silent().demand };
    let exclusive = Demand { sharing: Sharing::Exclusive, ..silent().demand };
    for demand in [said, exclusive, gpus(1).demand] {
        submit(&mut test, JobSpec { demand, ..silent() }, 6);
        assert_eq!(test.runs()[0].spec.demand, demand);
    }
}

#[test]
fn the_first_failure_under_a_prediction_is_attributed_to_it_and_uses_no_retry() {
    let failures = [
        (Outcome::Exited(1), None),
        (Outcome::Signalled(Signal::KILL), None),
        (Outcome::OutOfGpuMemory { code: 1, message: "CUDA out of memory".into() }, None),
        (Outcome::Exited(0), Some(StopReason::GpuMemory)),
        (Outcome::Signalled(Signal::KILL), Some(StopReason::GpuMemory)),
    ];
    for (outcome, stopped) in failures {
        let mut test = TestHead::with_devices(1);
        let id = submit(&mut test, silent(), 6);
        test.runs();
        test.ended(rank(1, 1), outcome.clone(), stopped);
        assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, 2), "{outcome:?}");
        assert_eq!(test.runs()[0].spec.demand.gpu_memory, None, "its limit is gone");
        assert_eq!(predicted(&test, id), None);
        let sentence = "attempt 2 will have a GPU to itself because its GPU memory (6 GiB) was only predicted, and \
                    attempt 1 may have failed because of that";
        assert_eq!(
            history(&test, id).iter().filter(|it| *it == sentence).count(),
            1,
            "{:?}",
            history(&test, id)
        );
        test.ended(rank(1, 2), Outcome::Exited(1), None);
        assert_eq!(test.state(id), JobState::Failed, "the second failure is its own");
    }
}

#[test]
fn a_job_whose_prediction_was_dropped_waits_for_a_gpu_of_its_own() {
    let mut test = TestHead::with_devices(1);
    let (id, neighbor) = (submit(&mut test, silent(), 6), submit(&mut test, silent(), 6));
    test.ended(rank(1, 1), Outcome::Signalled(Signal::KILL), Some(StopReason::GpuMemory));
    assert_eq!((test.state(id), test.state(neighbor)), (JobState::Pending, JobState::Running));
    let explanation = test.reader().sentences(id).unwrap().join(" ");
    for sentence in [
        "; that used none of its retries.",
        "The GPU memory predicted for it (6 GiB) is no longer used: from attempt 2 on, it has a GPU to itself.",
    ] {
        assert!(explanation.contains(sentence), "{explanation}");
    }
    test.ended(rank(2, 1), Outcome::Exited(0), None);
    assert_eq!(test.state(id), JobState::Running);
    let late = submit(&mut test, silent(), 6);
    assert_eq!(test.state(late), JobState::Pending, "nobody joins it");
}

#[test]
fn a_failure_unrelated_to_memory_is_the_jobs_own() {
    let failures = [
        (Outcome::NotStarted(StartFailure::CommandNotFound("train".into())), None),
        (Outcome::Signalled(Signal::KILL), Some(StopReason::MpsFault)),
    ];
    for (outcome, stopped) in failures {
        let mut test = TestHead::with_devices(1);
        let id = submit(&mut test, silent(), 6);
        test.ended(rank(1, 1), outcome, stopped);
        assert_eq!(test.state(id), JobState::Failed);
    }
    let mut test = TestHead::with_devices(1);
    let id = submit(&mut test, silent(), 6);
    test.change(JobChange::Requeue, id);
    test.ended(rank(1, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Requeued));
    assert_eq!((test.state(id), predicted(&test, id)), (JobState::Running, Some(Bytes(6 * GIB))));
}

#[test]
fn predictions_are_dropped_for_each_member_of_an_array_separately() {
    let mut test = TestHead::with_devices(2);
    let ranges = vec![IndexRange { first: 0, last: 2, step: 1 }];
    let spec = JobSpec { array: Some(Array { ranges, at_once: None }), ..silent() };
    let number = submit(&mut test, spec, 6).number;
    let member = |index| JobId::member(number, index);
    test.ended(member(0).attempt(1).rank(0), Outcome::Exited(1), None);
    assert_eq!(predicted(&test, member(0)), None);
    for other in [1, 2] {
        assert_eq!(predicted(&test, member(other)), Some(Bytes(6 * GIB)));
    }
    assert_eq!(test.state(member(0)), JobState::Pending, "both devices are held by the others");
}

#[test]
fn a_prediction_larger_than_any_gpu_is_dropped() {
    let mut test = TestHead::with_devices(1);
    let id = submit(&mut test, silent(), 81);
    assert_eq!(test.state(id), JobState::Running);
    assert_eq!(test.runs()[0].spec.demand.gpu_memory, None);
}

#[test]
fn predictions_are_checked_again_when_the_first_node_joins_or_one_returns_smaller() {
    let mut test = TestHead::new();
    let [large, small] = [100, 70].map(|gibibytes| submit(&mut test, silent(), gibibytes));
    test.join(1, 1);
    assert_eq!([predicted(&test, large), predicted(&test, small)], [None, Some(Bytes(70 * GIB))]);
    assert_eq!([test.state(large), test.state(small)], [JobState::Running, JobState::Pending]);
    let held = HeldRank { rank: rank(1, 1), phase: HeldRankPhase::Running(test.now) };
    let mut shrunk = inventory(1, 1, vec![held]);
    shrunk.devices[0].memory = Some(Bytes(40 * GIB));
    test.event(crate::Event::Joined(key(1, 2), shrunk));
    test.planned();
    assert_eq!(predicted(&test, small), None);
}

#[test]
fn a_prediction_is_dropped_when_the_large_gpus_are_lost() {
    let mut test = TestHead::with_devices(1);
    let mut small = inventory(2, 1, vec![]);
    small.devices[0].memory = Some(Bytes(16 * GIB));
    test.event(crate::Event::Joined(key(2, 1), small));
    test.planned();
    let ids: Vec<JobId> = (0..4).map(|_| submit(&mut test, silent(), 20)).collect();
    let states = |test: &TestHead| ids.iter().map(|id| test.state(*id)).collect::<Vec<_>>();
    let (running, pending) = (JobState::Running, JobState::Pending);
    assert_eq!(states(&test), [running, running, pending, pending]);
    test.lose(1, 1);
    test.after(Span::from_secs(61));
    assert_eq!(states(&test).iter().filter(|state| **state == running).count(), 1, "on the small one, alone");
    for id in ids {
        assert_eq!(predicted(&test, id), None);
        let last = history(&test, id).into_iter().find(|it| it.contains("a GPU to itself")).unwrap();
        assert!(
            last.ends_with("because no GPU has the 20 GiB of memory that were predicted for it"),
            "{last}"
        );
    }
}

#[test]
fn a_replay_drops_the_same_predictions() {
    let mut test = TestHead::with_devices(1);
    submit(&mut test, silent(), 6);
    test.ended(rank(1, 1), Outcome::Exited(1), None);
    let mut replayed = crate::Head::new();
    for (at, event) in &test.events {
        replayed.handle(*at, event.clone(), &mut Vec::new());
    }
    assert_eq!(replayed, test.head);
    assert!(replayed.jobs.values().any(|job| job.exclusive_from_attempt == Some(2)));
}
