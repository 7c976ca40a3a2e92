//! Failures of devices: whose fault they are, whether the job runs again, and what people see.

use cohabit_types::{
    Bytes, Condition, Demand, DeviceId, DeviceSharing, DeviceTelemetry, Enforcement, EnforcementRequirement,
    GpuReading, Health, JobEventKind, JobId, JobSpec, JobState, LaunchMode, NodeState, Outcome, Principal,
    ReasonCode, Refusal, RefusalCode, Reply, Report, Request, RetryPolicy, Role, Signal, Span, StartFailure,
    StopReason, Submit,
};

use super::kit::*;
use crate::{Event, Head};

const GIB: u64 = 1 << 30;

fn device(number: u32) -> DeviceId {
    DeviceId(format!("gpu-{number}").into())
}

fn report(test: &mut TestHead, report: Report) {
    test.event(Event::Report(key(1, 1), report));
    test.planned();
}

fn condition(test: &mut TestHead, number: u32, condition: Condition) {
    report(test, Report::Condition { device: device(number), condition });
}

fn healthy(health: Health) -> Condition {
    Condition { health, ..Condition::default() }
}

fn enforced() -> Condition {
    Condition { sharing: DeviceSharing::Enforced, ..Condition::default() }
}

/// A running job with this many retries and no pauses between them.
fn running_with(test: &mut TestHead, retries: u32) -> JobId {
    let retry = RetryPolicy { limit: retries, backoff: Span::ZERO, backoff_cap: Span::ZERO };
    test.submit(JobSpec { retry, ..part(500) })
}

fn sentences(test: &TestHead, job: JobId) -> String {
    test.reader().sentences(job).unwrap().join(" ")
}

fn killed() -> Outcome {
    Outcome::Signalled(Signal::KILL)
}

#[test]
fn a_victim_of_a_neighbors_fault_uses_no_retry_but_is_not_repeated_forever() {
    let mut test = TestHead::with_devices(1);
    let id = running_with(&mut test, 1);
    for attempt in 1..=2 {
        test.ended(rank(1, attempt), killed(), Some(StopReason::MpsFaultVictim));
        assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, attempt + 1));
        let explanation = sentences(&test, id);
        let cause = "was stopped because another job's fault broke the MPS server of their GPU";
        assert!(
            explanation.contains(&format!("Attempt {attempt} {cause}; that used none of its retries.")),
            "{explanation}"
        );
    }
    test.ended(rank(1, 3), killed(), Some(StopReason::MpsFaultVictim));
    let record = test.record(id);
    assert_eq!((record.state, record.reason_code), (JobState::NodeFail, ReasonCode::MpsFaultVictim));
    assert!(record.reason.starts_with("another job's fault broke the MPS server of their GPU: it was ended"));
    assert!(record.reason.ends_with("0 of 1 retries were used"), "{}", record.reason);
}

#[test]
fn a_victim_that_exited_with_success_is_repeated_too() {
    let mut test = TestHead::with_devices(1);
    let id = running_with(&mut test, 0);
    test.ended(rank(1, 1), Outcome::Exited(0), Some(StopReason::MpsFaultVictim));
    assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, 2));
}

#[test]
fn a_job_that_causes_a_fault_uses_a_retry_and_then_fails() {
    let mut test = TestHead::with_devices(1);
    let id = running_with(&mut test, 1);
    test.ended(rank(1, 1), Outcome::Exited(1), Some(StopReason::MpsFault));
    assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, 2));
    let explanation = sentences(&test, id);
    assert!(
        explanation.contains("its fault on the GPU broke the MPS server; that used one of its retries"),
        "{explanation}"
    );
    test.ended(rank(1, 2), Outcome::Exited(1), Some(StopReason::MpsFault));
    let record = test.record(id);
    assert_eq!((record.state, record.reason_code), (JobState::Failed, ReasonCode::MpsFault));
    assert_eq!(record.shell_code(), Some(1));
    assert!(record.reason.starts_with("its fault on the GPU broke the MPS server: it exited with code 1"));
}

#[test]
fn a_job_that_finds_no_gpu_memory_ends_as_out_of_memory_with_its_own_code() {
    let mut test = TestHead::with_devices(1);
    let id = running_with(&mut test, 1);
    let oom = || Outcome::OutOfGpuMemory { code: 3, message: "CUDA out of memory".into() };
    test.ended(rank(1, 1), oom(), None);
    assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, 2), "a retry was left");
    test.ended(rank(1, 2), oom(), None);
    let record = test.record(id);
    assert_eq!((record.state, record.reason_code), (JobState::OutOfMemory, ReasonCode::GpuOom));
    assert_eq!((record.exit_code, record.shell_code()), (Some(3), Some(3)));
    assert!(record.reason.contains("CUDA out of memory"), "{}", record.reason);
}

#[test]
fn a_job_that_holds_more_gpu_memory_than_it_demanded_is_out_of_memory() {
    let mut test = TestHead::with_devices(1);
    let id = running_with(&mut test, 0);
    test.ended(rank(1, 1), killed(), Some(StopReason::GpuMemory));
    let record = test.record(id);
    assert_eq!((record.state, record.reason_code), (JobState::OutOfMemory, ReasonCode::GpuOom));
    assert_eq!(record.shell_code(), Some(137));
}

#[test]
fn a_node_on_which_ranks_cannot_start_is_paused_and_the_job_uses_no_retry() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(part(500));
    let full = || Outcome::NotStarted(StartFailure::NodeProblem("its disk is full".into()));
    for (attempt, pause) in (1..=20).zip([1, 2, 4, 8, 16, 32].into_iter().chain(std::iter::repeat(60))) {
        test.ended(rank(1, attempt), full(), None);
        let record = test.record(id);
        assert_eq!((record.state, record.attempt), (JobState::Pending, attempt), "{}", record.reason);
        let pause_ends = Span::from_secs(pause);
        let why =
            format!("could not start a rank (its disk is full) and will be tried again in {pause_ends}");
        assert!(record.reason.ends_with(&why), "{}", record.reason);
        assert_eq!(test.head.node_records()[0].state, NodeState::Paused);
        test.after(Span::from_secs(pause));
        assert_eq!(test.state(id), JobState::Running);
        assert_eq!(test.head.node_records()[0].problem.as_deref(), Some("its disk is full"));
    }
    test.started(rank(1, 21));
    assert_eq!(test.head.node_records()[0].problem, None);
}

#[test]
fn a_device_failure_is_not_the_fault_of_the_job_on_it() {
    let fenced = Outcome::NotStarted(StartFailure::DeviceFenced("it fell off the bus".into()));
    let refused = Outcome::NotStarted(StartFailure::Unenforced("MPS does not start".into()));
    for (outcome, stopped, reason) in [
        (killed(), Some(StopReason::DeviceLost), ReasonCode::DeviceLost),
        (fenced, None, ReasonCode::DeviceLost),
        (killed(), Some(StopReason::Unenforced), ReasonCode::SharingUnenforced),
        (refused, None, ReasonCode::SharingUnenforced),
    ] {
        let mut test = TestHead::with_devices(1);
        let id = running_with(&mut test, 0);
        for attempt in 1..=2 {
            test.ended(rank(1, attempt), outcome.clone(), stopped);
            assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, attempt + 1));
        }
        test.ended(rank(1, 3), outcome, stopped);
        assert_eq!((test.state(id), test.record(id).reason_code), (JobState::NodeFail, reason));
    }
}

#[test]
fn a_gang_that_breaks_because_of_a_device_uses_no_retry() {
    let mut test = TestHead::with_devices(2);
    let id = test.submit(JobSpec { launch: LaunchMode::PerGpu, ..gpus(2) });
    test.ended(rank(1, 1), killed(), Some(StopReason::DeviceLost));
    assert_eq!(test.state(id), JobState::Completing);
    test.ended(id.attempt(1).rank(1), Outcome::Signalled(Signal::TERM), Some(StopReason::GangBroken));
    assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, 2), "it had no retries");
    assert_eq!(test.record(id).attempts[0].stopped, Some(StopReason::DeviceLost));
}

#[test]
fn a_cancelled_job_is_cancelled_even_if_its_device_failed_meanwhile() {
    let mut test = TestHead::with_devices(1);
    let id = running_with(&mut test, 0);
    test.change(cohabit_types::JobChange::Cancel, id);
    test.ended(rank(1, 1), killed(), Some(StopReason::MpsFaultVictim));
    assert_eq!(test.state(id), JobState::Cancelled);
}

#[test]
fn a_device_out_of_service_gets_no_jobs_until_it_recovers() {
    for health in
        [Health::Fenced("it fell off the bus".into()), Health::Recovering("MPS is restarted".into())]
    {
        let mut test = TestHead::with_devices(1);
        condition(&mut test, 0, healthy(health.clone()));
        let id = test.submit(gpus(1));
        let record = test.record(id);
        assert_eq!((record.state, record.reason_code), (JobState::Pending, ReasonCode::WaitingForDevices));
        assert!(record.reason.contains("1 GPU there is out of service"), "{}", record.reason);
        assert_eq!(test.head.node_records()[0].devices[0].device.condition.health, health);
        condition(&mut test, 0, healthy(Health::Well));
        assert_eq!(test.state(id), JobState::Running);
    }
}

#[test]
fn a_condition_survives_a_restart_and_an_older_link_cannot_change_it() {
    let mut test = TestHead::with_devices(1);
    let fenced = || healthy(Health::Fenced("it fell off the bus".into()));
    condition(&mut test, 0, fenced());
    let mut restarted = Head::new();
    for (at, event) in test.events.clone() {
        restarted.handle(at, event, &mut Vec::new());
    }
    assert_eq!(restarted.node_records()[0].devices[0].device.condition, fenced());
    test.rejoin(1, 2, vec![]);
    condition(&mut test, 0, fenced());
    assert_eq!(test.head.node_records()[0].devices[0].device.condition, Condition::default());
}

#[test]
fn at_most_three_jobs_share_a_device_and_the_fourth_says_why_it_waits() {
    let mut test = TestHead::with_devices(1);
    let jobs: Vec<JobId> = (0..4).map(|_| test.submit(part(100))).collect();
    assert_eq!(test.record(jobs[0]).sharing_with, jobs[1..3]);
    let record = test.record(jobs[3]);
    let sentence =
        "needs a GPU with room for one more rank; each already runs 3, the limit. First in the queue";
    assert_eq!((record.reason_code, record.reason.as_str()), (ReasonCode::WaitingForDevices, sentence));
}

#[test]
fn a_share_of_a_device_without_a_memory_demand_runs_alone() {
    let mut test = TestHead::with_devices(1);
    let alone = JobSpec { demand: Demand { gpu_memory: None, ..part(500).demand }, ..part(500) };
    let (first, second) = (test.submit(alone), test.submit(part(500)));
    assert_eq!((test.state(first), test.state(second)), (JobState::Running, JobState::Pending));
    assert_eq!(test.record(first).attempts[0].ranks[0].share, cohabit_types::Share::WHOLE);
}

fn refusal(reply: Reply) -> String {
    let Reply::Refused(Refusal { code: RefusalCode::Unsatisfiable, message }) = reply else {
        panic!("{reply:?}")
    };
    message
}

#[test]
fn a_job_that_requires_enforced_limits_is_refused_where_nothing_enforces_them() {
    let insisting = || {
        let demand = Demand { limits: EnforcementRequirement::Enforced, ..part(500).demand };
        JobSpec { demand, ..part(500) }
    };
    let mut test = TestHead::with_devices(3);
    let without_mps = DeviceSharing::Unenforced("nvidia-cuda-mps-control is not on the PATH".into());
    condition(&mut test, 2, Condition { sharing: without_mps, ..Condition::default() });
    assert_eq!(
        refusal(test.try_submit(insisting())),
        "no node can ever run this job: it requires enforced limits on a shared GPU, and no GPU that is large \
         enough enforces them: nothing limits its ranks (gpu-0 of node1 and 1 more); nvidia-cuda-mps-control \
         is not on the PATH (gpu-2 of node1)"
    );
    condition(&mut test, 2, enforced());
    let id = test.submit(insisting());
    assert_eq!(test.record(id).devices(), [device(2)]);
}

#[test]
fn the_largest_share_leaves_the_reserve() {
    let mut test = TestHead::with_devices(1);
    let demand = Demand { gpu_memory: Some(Bytes(80 * GIB)), ..part(500).demand };
    assert_eq!(
        refusal(test.try_submit(JobSpec { demand, ..part(500) })),
        "no node can ever run this job: it needs 80 GiB of memory on each device plus a reserve of 1 GiB; \
         the largest device is on node1 with 80 GiB"
    );
}

#[test]
fn enforcement_is_recorded_once_and_again_when_it_changes() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(part(500));
    assert_eq!(test.record(id).sharing(), None);
    let count_sharing = |test: &TestHead| {
        let shares = |it: &cohabit_types::JobEvent| matches!(it.kind, JobEventKind::Shares { .. });
        test.head.job_history(id).iter().filter(|it| shares(it)).count()
    };
    let say = |test: &mut TestHead, enforcement: &Enforcement| {
        report(test, Report::Sharing { rank: rank(1, 1), enforcement: enforcement.clone() });
    };
    let unenforced = Enforcement::Unenforced("its process 77 uses the GPU outside of MPS".into());
    for enforcement in [&Enforcement::Enforced, &Enforcement::Enforced, &unenforced] {
        say(&mut test, enforcement);
        assert_eq!(test.record(id).sharing(), Some(enforcement));
    }
    assert_eq!(count_sharing(&test), 2);
    let sentence = "Its limits on the shared GPU are not enforced: its process 77";
    assert!(sentences(&test, id).contains(sentence), "{}", sentences(&test, id));
    say(&mut test, &Enforcement::Enforced);
    assert!(sentences(&test, id).contains("Its limits on the shared GPU are enforced."));
}

#[test]
fn telemetry_shows_the_memory_of_live_ranks_while_the_link_is_up() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(part(500));
    let reading = GpuReading { utilization: Some(0.5), ..GpuReading::default() };
    let ranks = vec![(rank(1, 1), Bytes(7 * GIB)), (rank(9, 1), Bytes(GIB))];
    let telemetry = DeviceTelemetry { device: device(0), at: test.now, reading, ranks };
    report(&mut test, Report::Telemetry(vec![telemetry.clone()]));
    let held = |test: &TestHead| test.record(id).attempts[0].ranks[0].gpu_memory;
    let shown = |test: &TestHead| test.head.node_records()[0].devices[0].telemetry.clone();
    assert_eq!((held(&test), shown(&test)), (Some(Bytes(7 * GIB)), Some(telemetry)));
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(held(&test), None);
    test.lose(1, 1);
    assert_eq!(shown(&test), None);
}

fn of_one_user() -> Condition {
    Condition { sharing: DeviceSharing::OneUser("the driver is old".into()), ..Condition::default() }
}

#[test]
fn jobs_of_two_users_do_not_share_a_device_that_serves_one_at_a_time() {
    let mut test = TestHead::with_devices(1);
    condition(&mut test, 0, of_one_user());
    let submit = |test: &mut TestHead, user: &str| {
        let submit = Submit { spec: part(300), idempotency_key: None, estimate: None };
        match test.request(Principal::new(user, Role::User), Request::Submit(Box::new(submit))) {
            Reply::Accepted { job, .. } => job,
            other => panic!("not accepted: {other:?}"),
        }
    };
    let (first, second, beas) =
        (submit(&mut test, "ada"), submit(&mut test, "ada"), submit(&mut test, "bea"));
    let states = [first, second, beas].map(|job| test.state(job));
    assert_eq!(states, [JobState::Running, JobState::Running, JobState::Pending]);
    let why = test.record(beas).reason;
    assert!(why.contains("no other user shares"), "{why}");
    for job in [first, second] {
        test.ended(job.attempt(1).rank(0), Outcome::Exited(0), None);
    }
    assert_eq!(test.state(beas), JobState::Running);
    let mut again = submit(&mut test, "ada");
    assert_eq!(test.state(again), JobState::Pending);
    condition(&mut test, 0, enforced());
    assert_eq!(test.state(again), JobState::Running, "a new driver serves several users");
    again = submit(&mut test, "eve");
    assert_eq!(test.state(again), JobState::Running);
}

#[test]
fn a_part_of_a_gpu_without_its_memory_says_that_it_takes_a_whole_one() {
    let mut test = TestHead::with_devices(1);
    let mut unstated = part(500);
    unstated.demand.gpu_memory = None;
    let notes = |test: &mut TestHead, spec: &JobSpec| match test.try_submit(spec.clone()) {
        Reply::Accepted { notes, .. } => notes.join(" "),
        other => panic!("not accepted: {other:?}"),
    };
    assert!(notes(&mut test, &unstated).contains("asks for 0.5 of a GPU and gets a whole one"));
    assert!(notes(&mut test, &unstated).contains("--gpu-mem 20G"));
    let why = [1, 2].map(|number| test.record(JobId::new(number)).reason);
    assert!(
        why[0].ends_with("it has a whole GPU instead of 0.5 of one, because it states no --gpu-mem"),
        "{why:?}"
    );
    assert!(
        why[1].ends_with("it needs a whole GPU instead of 0.5 of one, because it states no --gpu-mem"),
        "{why:?}"
    );
    assert_eq!(notes(&mut test, &part(500)), "");
    assert_eq!(test.record(JobId::new(3)).reason.matches("whole GPU").count(), 0);
}
