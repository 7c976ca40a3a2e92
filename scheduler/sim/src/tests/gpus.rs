//! GPUs under MPS: faults, lost GPUs, dead worker daemons, and the checks of the machine.

use cohabit_types::{Bytes, DeviceId, EnforcementRequirement, JobRecord, JobSpec, JobState, StopReason};
use cohabit_worker_core::{GpuAccess, MpsEvent, MpsLimits, MpsOrder, RankStart, WorkerEvent};

use super::kit::*;
use crate::machine::{FaultAttribution, FaultChance, Hardware, ObservedMemory, Outbox, SimMachine};
use crate::machine_spec::MachineSpec;
use crate::process::StartConditions;
use crate::program::{MpsAttachment, SigtermBehaviour, SimProgram};
use crate::scenario::{ExternalEvent, Scenario};

const GIB: u64 = 1 << 30;

/// This many machines with one 24 GiB GPU each under MPS.
pub(super) fn lab(machines: u32) -> Scenario {
    let mut scenario = cluster(machines);
    scenario.shapes =
        (0..machines).map(|it| MachineSpec::new(&format!("node-{it}"), 1).under_mps()).collect();
    scenario
}

/// A job on a quarter of a GPU, with memory that leaves room for two more.
pub(super) fn sharer(alone: u64) -> JobSpec {
    let mut spec = work_on(250, alone);
    spec.demand.gpu_memory = Some(Bytes(6 * GIB));
    spec
}

fn stops(job: &JobRecord) -> Vec<Option<StopReason>> {
    job.attempts.iter().map(|attempt| attempt.stopped).collect()
}

pub(super) fn break_mps(attribution: FaultAttribution) -> ExternalEvent {
    ExternalEvent::BreakMps { node: 0, number: 0, attribution }
}

#[test]
fn three_jobs_share_a_gpu_as_clients_and_a_fourth_waits() {
    let run = held((0..4).fold(lab(1), |scenario, _| scenario.submit(at(50), sharer(100))));
    let began: Vec<u64> = run.jobs.iter().map(|job| seconds(Some(at(50)), job.started_at)).collect();
    assert_eq!((run.counters.ranks, run.counters.clients), (4, 4));
    assert_eq!(began.iter().filter(|began| **began < 20).count(), 3, "{began:?}");
    assert!(run.jobs.iter().all(|job| job.state == JobState::Completed));
}

#[test]
fn a_fault_costs_the_culprit_its_job_and_the_victim_nothing() {
    let scenario = lab(1)
        .submit(at(50), sharer(1_000))
        .submit(at(50), sharer(1_000))
        .inject(at(200), break_mps(FaultAttribution::Culprit));
    let run = held(scenario);
    let [culprit, victim] = run.jobs.as_slice() else { panic!("{} jobs", run.jobs.len()) };
    assert_eq!((culprit.state, stops(culprit)), (JobState::Failed, vec![Some(StopReason::MpsFault)]));
    assert_eq!(
        (victim.state, stops(victim)),
        (JobState::Completed, vec![Some(StopReason::MpsFaultVictim), None])
    );
}

#[test]
fn a_fault_without_a_culprit_costs_no_job_anything() {
    let scenario = lab(1).submit(at(50), sharer(1_000)).inject(at(200), break_mps(FaultAttribution::Unknown));
    let run = held(scenario);
    let job = only(&run);
    assert_eq!((job.state, stops(job)), (JobState::Completed, vec![Some(StopReason::MpsFaultVictim), None]));
}

#[test]
fn clients_outlive_their_worker_daemon_and_share_with_later_ones() {
    let scenario = lab(1)
        .submit(at(50), sharer(1_000))
        .inject(at(100), ExternalEvent::CrashWorker { node: 0, down_for: secs(30) })
        .submit(at(200), sharer(100));
    let run = held(scenario);
    assert!(run.jobs.iter().all(|job| (job.state, job.attempts.len()) == (JobState::Completed, 1)));
    assert_eq!(run.counters.clients, 2);
}

#[test]
fn stop_reasons_outlive_the_worker_daemon() {
    let slow = SimProgram { on_term: SigtermBehaviour::Exits(secs(5)), ..SimProgram::working(secs(1_000)) };
    let spec = JobSpec { demand: sharer(1_000).demand, ..slow.job() };
    let scenario = lab(1)
        .submit(at(50), spec.clone())
        .submit(at(50), spec)
        .inject(at(200), break_mps(FaultAttribution::Culprit))
        .inject(at(200), ExternalEvent::CrashWorker { node: 0, down_for: secs(30) });
    let run = held(scenario);
    let [culprit, victim] = run.jobs.as_slice() else { panic!("{} jobs", run.jobs.len()) };
    assert_eq!((culprit.state, stops(culprit)), (JobState::Failed, vec![Some(StopReason::MpsFault)]));
    assert_eq!(
        (victim.state, stops(victim)),
        (JobState::Completed, vec![Some(StopReason::MpsFaultVictim), None])
    );
}

#[test]
fn a_server_that_breaks_without_a_worker_daemon_ends_its_clients() {
    let scenario = lab(1)
        .submit(at(50), sharer(1_000))
        .inject(at(100), ExternalEvent::CrashWorker { node: 0, down_for: secs(30) })
        .inject(at(110), break_mps(FaultAttribution::Culprit));
    let run = held(scenario);
    let job = only(&run);
    assert_eq!(job.state, JobState::Completed);
    assert_eq!(stops(job), [Some(StopReason::MpsFaultVictim), None]);
}

#[test]
fn a_job_of_a_lost_gpu_moves_to_another_machine() {
    let lose = ExternalEvent::LoseGpu { node: 0, number: 0 };
    for spec in [sharer(500), work(500)] {
        let run = held(lab(2).submit(at(50), spec).inject(at(200), lose.clone()));
        let job = only(&run);
        assert_eq!((job.state, stops(job)), (JobState::Completed, vec![Some(StopReason::DeviceLost), None]));
        let nodes: Vec<&str> = job.attempts.iter().map(|it| it.ranks[0].node.as_str()).collect();
        assert_eq!(nodes, ["node-0", "node-1"]);
    }
}

#[test]
fn a_fenced_gpu_waits_for_a_repair() {
    let xid = ExternalEvent::Xid { node: 0, number: 0, code: 48 };
    let run = held(lab(1).inject(at(50), xid).submit(at(100), sharer(100)));
    let waited = seconds(Some(at(100)), only(&run).started_at);
    assert_eq!((only(&run).state, waited >= 7_100), (JobState::Completed, true), "{waited} s");
}

#[test]
fn a_job_that_requires_enforced_limits_does_not_run_without_them() {
    let mut spec =
        SimProgram { mps_attachment: MpsAttachment::Never, ..SimProgram::working(secs(100)) }.job();
    spec.demand = sharer(100).demand;
    spec.demand.limits = EnforcementRequirement::Enforced;
    let run = held(lab(1).submit(at(50), spec));
    let job = only(&run);
    assert_eq!(job.state, JobState::NodeFail);
    assert!(stops(job).iter().all(|stop| *stop == Some(StopReason::Unenforced)), "{:?}", stops(job));
}

/// A machine with one GPU.
pub(super) fn machine() -> SimMachine {
    SimMachine::new(MachineSpec::new("node", 1).under_mps(), Hardware::default(), secs(120))
}

pub(super) fn gpu() -> DeviceId {
    DeviceId("node-0".into())
}

pub(super) fn rank_start(number: u64, access: GpuAccess) -> RankStart {
    let spec = if access == GpuAccess::Exclusive { work(100) } else { sharer(100) };
    RankStart { access, ..start(number, spec, &["node-0"]) }
}

pub(super) const CLIENT: GpuAccess = GpuAccess::Mps(MpsLimits { memory: Bytes(6 * GIB), percentage: None });

fn try_spawn(machine: &mut SimMachine, number: u64, access: GpuAccess) -> Result<(), String> {
    machine.spawn(at(0), rank_start(number, access), StartConditions::IDEAL, &mut Outbox::default())
}

#[test]
fn a_machine_refuses_wrong_access_to_a_gpu() {
    let mut machine = machine();
    assert!(try_spawn(&mut machine, 1, CLIENT).is_err(), "no server is there");
    assert!(try_spawn(&mut machine, 2, GpuAccess::None).is_err(), "it is a real GPU");
    assert_eq!(machine.carry_out(&gpu(), MpsOrder::Start(None), FaultChance::Succeeds), Ok(MpsEvent::Up));
    assert!(try_spawn(&mut machine, 3, GpuAccess::Exclusive).is_err(), "a server is there");
    assert_eq!(try_spawn(&mut machine, 4, CLIENT), Ok(()));
    assert!(machine.carry_out(&gpu(), MpsOrder::Stop, FaultChance::Succeeds).is_err(), "it has a client");
}

#[test]
fn a_machine_counts_the_reserve_and_the_ranks_of_a_shared_gpu() {
    let mut machine = machine();
    machine.carry_out(&gpu(), MpsOrder::Start(None), FaultChance::Succeeds).unwrap();
    (1..4).for_each(|number| try_spawn(&mut machine, number, CLIENT).unwrap());
    assert_eq!(machine.overload(at(0)), None);
    try_spawn(&mut machine, 4, CLIENT).unwrap();
    let overload = machine.overload(at(0)).expect("no memory is left, and too many ranks are there");
    assert_eq!(overload, "1 and 24 GiB of device node-0 are taken by 4 ranks");
}

#[test]
fn after_a_fault_clients_hang_and_their_server_cannot_be_adopted() {
    let mut machine = machine();
    machine.carry_out(&gpu(), MpsOrder::Start(None), FaultChance::Succeeds).unwrap();
    try_spawn(&mut machine, 1, CLIENT).unwrap();
    let seen = machine.break_mps_server(at(1), 0, FaultAttribution::Culprit);
    let Some(WorkerEvent::Mps(_, MpsEvent::Faulted { culprit, .. })) = seen else { panic!("{seen:?}") };
    assert_eq!(culprit, Some(rank_start(1, CLIENT).rank));
    assert!(machine.accounts().victims.is_empty(), "the culprit is no victim");
    let adopted = machine.carry_out(&gpu(), MpsOrder::Adopt(None), FaultChance::Succeeds);
    assert!(matches!(adopted, Ok(MpsEvent::Failed(_))), "{adopted:?}");
}

#[test]
fn a_sample_shows_the_memory_of_ranks_or_that_the_gpu_is_lost() {
    let mut machine = machine();
    machine.carry_out(&gpu(), MpsOrder::Start(None), FaultChance::Succeeds).unwrap();
    try_spawn(&mut machine, 1, CLIENT).unwrap();
    let rank = rank_start(1, CLIENT).rank;
    let greedy = machine.sample_gpus(Bytes(5), ObservedMemory::OverRequest).remove(0);
    assert_eq!((greedy.ranks, greedy.foreign_memory), (vec![(rank, Bytes(6 * GIB + 1))], Bytes(5)));
    machine.lose_gpu(7);
    assert!(machine.sample_gpus(Bytes::ZERO, ObservedMemory::AsRequested).remove(0).reading.is_err());
    machine.restart_lost_gpus();
    assert!(machine.sample_gpus(Bytes::ZERO, ObservedMemory::AsRequested).remove(0).reading.is_ok());
}
