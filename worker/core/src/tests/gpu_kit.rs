//! Test helpers for GPUs: jobs with and without sharing, events of MPS managers and monitors, and reports.

use std::sync::Arc;

use cohabit_types::{
    Bytes, Condition, Device, DeviceId, DeviceKind, DeviceSharing, Enforcement, EnforcementRequirement,
    GpuReading, GpuRequest, Health, JobId, Order, Outcome, RankId, Report, RunOrder, Share, Signal,
    StopReason,
};

use super::kit::*;
use crate::starting::rank_start;
use crate::{
    FoundRank, GpuAccess, GpuSample, MpsEvent, MpsLimits, MpsOrder, Stopping, WorkerEffect, WorkerEvent,
};

pub(super) const GIB: u64 = 1 << 30;

/// What the job of each sharer asks for.
pub(super) const ASKED: Bytes = Bytes(20 * GIB);

/// How a sharer comes to a GPU under MPS.
pub(super) const CLIENT: GpuAccess = GpuAccess::Mps(MpsLimits { memory: ASKED, percentage: None });

/// How it comes to one that MPS does not serve.
pub(super) const TURNS: GpuAccess = GpuAccess::TimeSliced(ASKED);

pub(super) fn gpu(number: u32) -> DeviceId {
    DeviceId(format!("gpu-{number}").into())
}

/// A GPU of 80 GiB with this sharing.
pub(super) fn device(number: u32, sharing: DeviceSharing) -> Device {
    let device = Device::new(gpu(number), DeviceKind::Gpu, "NVIDIA H100", Some(Bytes(80 * GIB)));
    Device { condition: Condition { sharing, ..Condition::default() }, ..device }
}

/// The only rank of this job.
pub(super) const fn rank_of(job: u64) -> RankId {
    JobId::new(job).attempt(1).rank(0)
}

/// A job that shares `gpu-0`.
pub(super) fn sharer(job: u64) -> RunOrder {
    let mut order = order(spec(), 1);
    order.attempt = JobId::new(job).attempt(1);
    Arc::make_mut(&mut order.spec).demand.gpus = GpuRequest::Part(Share(250));
    Arc::make_mut(&mut order.spec).demand.gpu_memory = Some(ASKED);
    order.ranks[0].share = Share(250);
    order
}

/// The same, but it insists on its limits.
pub(super) fn strict_sharer(job: u64) -> RunOrder {
    let mut order = sharer(job);
    Arc::make_mut(&mut order.spec).demand.limits = EnforcementRequirement::Enforced;
    order
}

/// A job that wants `gpu-0` for itself.
pub(super) fn loner(job: u64) -> RunOrder {
    RunOrder { attempt: JobId::new(job).attempt(1), ..order(spec(), 1) }
}

/// A rank that an earlier daemon started, with this access.
pub(super) fn left_running(order: &RunOrder, access: GpuAccess) -> WorkerEvent {
    left_stopping(order, access, None)
}

/// The same, which it had begun to stop.
pub(super) fn left_stopping(order: &RunOrder, access: GpuAccess, stopping: Option<Stopping>) -> WorkerEvent {
    let mut start = rank_start(order, &order.ranks[0]);
    start.access = access;
    WorkerEvent::Found(Box::new(FoundRank {
        start,
        started_at: at(10),
        stopping,
        ending: None,
        progress: None,
    }))
}

/// The start of the only rank of this order.
pub(super) fn spawn(order: &RunOrder, access: GpuAccess) -> WorkerEffect {
    let mut start = rank_start(order, &order.ranks[0]);
    start.access = access;
    WorkerEffect::Spawn(Box::new(start))
}

pub(super) fn mps(order: MpsOrder) -> WorkerEffect {
    WorkerEffect::Mps(gpu(0), order)
}

pub(super) fn faulted(culprit: Option<RankId>) -> MpsEvent {
    MpsEvent::Faulted { culprit, detail: "a fatal GPU error".into() }
}

/// How `gpu-0` is now, told.
pub(super) fn report_condition(condition: Condition) -> WorkerEffect {
    WorkerEffect::Report(Report::Condition { device: gpu(0), condition })
}

/// A GPU under MPS that is well.
pub(super) fn well() -> Condition {
    Condition { health: Health::Well, sharing: DeviceSharing::Enforced, foreign_memory: Bytes::ZERO }
}

pub(super) fn recovering(detail: &str) -> Condition {
    let health = Health::Recovering(format!("its MPS server was in fault: {detail}"));
    Condition { health, ..well() }
}

pub(super) fn fenced(why: &str) -> Condition {
    Condition { health: Health::Fenced(why.into()), ..well() }
}

pub(super) fn unenforced(why: &str) -> Condition {
    Condition { sharing: DeviceSharing::Unenforced(why.into()), ..well() }
}

pub(super) fn shares(rank: RankId, enforcement: Enforcement) -> WorkerEffect {
    WorkerEffect::Report(Report::Sharing { rank, enforcement })
}

/// How a rank ended that died of SIGTERM from somebody else.
pub(super) fn died(job: u64, secs: u64) -> WorkerEffect {
    ended(rank_of(job), Outcome::Signalled(Signal::TERM), None, secs)
}

/// How a rank ended that died of our SIGTERM.
pub(super) fn terminated(job: u64, stopped: StopReason, secs: u64) -> WorkerEffect {
    ended(rank_of(job), Outcome::Signalled(Signal::TERM), Some(stopped), secs)
}

/// A look at `gpu-0` that shows this memory of ranks.
pub(super) fn look(ranks: &[(RankId, Bytes)]) -> GpuSample {
    GpuSample {
        device: gpu(0),
        reading: Ok(GpuReading::default()),
        ranks: ranks.to_vec(),
        foreign_memory: Bytes::ZERO,
    }
}

impl TestWorker {
    /// A linked worker with two GPUs under MPS.
    pub(super) fn with_gpus() -> TestWorker {
        TestWorker::with(vec![device(0, DeviceSharing::Enforced), device(1, DeviceSharing::Enforced)]).link()
    }

    /// A linked worker with one GPU that MPS does not serve.
    pub(super) fn without_mps() -> TestWorker {
        TestWorker::with(vec![device(0, DeviceSharing::Unenforced("no MPS here".into()))]).link()
    }

    /// A linked worker with these jobs as clients of the MPS server of `gpu-0`, since second 100.
    #[track_caller]
    pub(super) fn serving(jobs: &[u64]) -> TestWorker {
        let run = |test: TestWorker, job: &u64| test.run(sharer(*job));
        let mut test = jobs.iter().fold(TestWorker::with_gpus(), run).word(MpsEvent::Up);
        test = jobs.iter().fold(test, |test, job| test.runs(*job));
        test.forget_effects()
    }

    pub(super) fn word(self, word: MpsEvent) -> TestWorker {
        self.event(WorkerEvent::Mps(gpu(0), word))
    }

    /// The rank of this job runs.
    pub(super) fn runs(self, job: u64) -> TestWorker {
        self.event(WorkerEvent::Spawned(rank_of(job)))
    }

    /// It ended by SIGTERM.
    pub(super) fn dies(self, job: u64) -> TestWorker {
        self.ends(rank_of(job), Outcome::Signalled(Signal::TERM))
    }

    /// The head orders its stop.
    pub(super) fn stop_job(self, job: u64, why: StopReason) -> TestWorker {
        self.event(WorkerEvent::Order(Order::Stop { attempt: rank_of(job).attempt, why }))
    }

    pub(super) fn xid(self, code: u64) -> TestWorker {
        self.event(WorkerEvent::Xid(gpu(0), code))
    }

    pub(super) fn sees(self, sample: GpuSample) -> TestWorker {
        self.event(WorkerEvent::Sampled(vec![sample]))
    }

    pub(super) fn learns(self, job: u64, enforcement: Enforcement) -> TestWorker {
        self.event(WorkerEvent::Sharing(rank_of(job), enforcement))
    }
}

/// SIGTERM to each of these jobs, with SIGKILL to follow at this second.
pub(super) fn terms(jobs: &[u64], why: StopReason, kill_at: u64) -> Vec<WorkerEffect> {
    jobs.iter().flat_map(|job| term(rank_of(*job), why, kill_at)).collect()
}

/// SIGTERM to each of these jobs, because of the fault of another that was seen at this second.
pub(super) fn victims(jobs: &[u64], now: u64) -> Vec<WorkerEffect> {
    terms(jobs, StopReason::MpsFaultVictim, now + 10)
}
