//! What the policy makes of its queue, and the replay of that queue on pooled devices.
//!
//! A pending job is assumed to start in the policy's order on any devices that are free then. How long jobs
//! run is for the caller to say: whatever has to wait for a job of unknown time gets no time. The forecast is
//! for people: no plan depends on it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use cohabit_types::{Demand, JobId, ReasonCode, Share, Span, Time};

use crate::{DeviceView, PendingReason, SharingMode, View};

/// What the policy says of a pending job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobForecast {
    /// The job.
    pub job: JobId,
    /// The reason code, for programs.
    pub code: ReasonCode,
    /// Why it waits: a sentence with numbers, without a full stop at its end.
    pub why: String,
    /// Its expected runtime at its best placement.
    pub runtime: Option<Span>,
    /// The policy does not start it before this time.
    not_before: Option<Time>,
    /// What it takes of the devices, in thousandths.
    takes: u64,
}

/// The pending jobs in the order in which they may start, and the devices that they wait for.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct QueueForecast {
    /// The pending jobs.
    pub jobs: Vec<JobForecast>,
    /// The running jobs, and what each takes of the devices, in thousandths.
    running: Vec<(JobId, u64)>,
    /// What is free of all devices in service, and what there is, in thousandths.
    free: u64,
    total: u64,
}

impl QueueForecast {
    /// What the policy says of its queue. `reasons` are in the order in which jobs may start.
    #[must_use]
    pub fn new(view: &View, reasons: Vec<PendingReason>) -> QueueForecast {
        let devices = Devices::of(view);
        let jobs = reasons.into_iter().map(|PendingReason { job, code, why, not_before, runtime }| {
            let takes = view.pending.get(&job).map_or(u64::MAX, |job| devices.taken_by(&job.demand));
            JobForecast { job, code, why, runtime, not_before, takes }
        });
        QueueForecast {
            jobs: jobs.collect(),
            running: view.running.values().map(|job| (job.id, devices.taken_by(&job.demand))).collect(),
            free: devices.free,
            total: devices.total,
        }
    }

    /// What the policy says of this job.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<&JobForecast> {
        self.jobs.iter().find(|it| it.job == id)
    }

    /// Starts the first `count` pending jobs one after the other, each as soon as it fits, and returns when.
    /// `None` where the present devices could never hold a job, or where it waits for the end of one of which
    /// `time_left` does not know how much longer it runs, or how long it will.
    pub fn replay(
        &self,
        now: Time,
        count: usize,
        mut time_left: impl FnMut(JobId) -> Option<Span>,
    ) -> Vec<Option<Time>> {
        let mut pool = Pool { now, free: self.free, ends: BinaryHeap::new(), is_exhausted: false };
        for (job, takes) in &self.running {
            pool.ends.extend(time_left(*job).map(|left| Reverse((now + left, *takes))));
        }
        let start = |job: &JobForecast| {
            let at = pool.start(job, self.total)?;
            pool.ends.extend(time_left(job.job).map(|left| Reverse((at + left, job.takes))));
            Some(at)
        };
        self.jobs.iter().take(count).map(start).collect()
    }
}

/// The devices of all nodes together, in thousandths, as time passes.
struct Pool {
    now: Time,
    free: u64,
    /// What becomes free, and when.
    ends: BinaryHeap<Reverse<(Time, u64)>>,
    /// Whether a job waits for an end that is not known. Those behind it wait, too.
    is_exhausted: bool,
}

impl Pool {
    /// Starts a job as soon as it fits; later jobs start no earlier, unless it waits for its own time.
    fn start(&mut self, job: &JobForecast, total: u64) -> Option<Time> {
        if job.takes > total || self.is_exhausted {
            return None;
        }
        while self.free < job.takes {
            let Some(Reverse((ends_at, freed))) = self.ends.pop() else {
                self.is_exhausted = true;
                return None;
            };
            self.now = self.now.max(ends_at);
            self.free = (self.free + freed).min(total);
        }
        self.free -= job.takes;
        Some(job.not_before.map_or(self.now, |at| at.max(self.now)))
    }
}

/// The devices in service.
struct Devices<'v> {
    free: u64,
    total: u64,
    /// One device of each kind: on devices of one kind, a job takes the same share.
    kinds: BTreeMap<(bool, SharingMode, Share), &'v DeviceView>,
}

impl<'v> Devices<'v> {
    fn of(view: &'v View) -> Devices<'v> {
        let devices = || view.nodes.iter().flat_map(|node| &node.devices).filter(|it| it.is_in_service());
        let kind = |it: &DeviceView| (it.memory.is_some(), it.sharing.mode, min_share_per_rank(it));
        Devices {
            free: devices().map(|device| u64::from(remaining_share(device).0)).sum(),
            total: devices().count() as u64 * u64::from(Share::WHOLE.0),
            kinds: devices().map(|device| (kind(device), device)).collect(),
        }
    }

    /// What a job takes on the kind of device where it takes the least.
    fn taken_by(&self, demand: &Demand) -> u64 {
        let taken = |device: &&DeviceView| device.share_for(demand).max(min_share_per_rank(device));
        let least = self.kinds.values().map(taken).min().unwrap_or(demand.share());
        u64::from(demand.total_devices()) * u64::from(least.0)
    }
}

/// The least that a rank takes of a device that holds only so many ranks.
fn min_share_per_rank(device: &DeviceView) -> Share {
    let places = |free: u32| free + device.jobs.len() as u32;
    device.sharing.ranks_free.map_or(Share(0), |free| Share(Share::WHOLE.0 / places(free).max(1)))
}

/// What is left of a device, by shares and by ranks.
fn remaining_share(device: &DeviceView) -> Share {
    let occupied = min_share_per_rank(device).0 * device.jobs.len() as u32;
    device.free.min(Share::WHOLE.saturating_sub(Share(occupied)))
}
