//! When pending jobs may start and end: the policy's queue, simulated on pooled devices.
//!
//! A running job is assumed to end when its progress or else its estimate says; a pending one to start in
//! the policy's order on any devices that are free then. Whatever has to wait for a job of which nothing is
//! known, or which is overdue, gets no time. The forecast is for people: no plan depends on it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use cohabit_types::{Demand, JobId, ReasonCode, Share, Span, Time};

use crate::queue::expected_ends::estimate_end;
use crate::{
    DeviceView, EstimateBasis, PendingJob, PendingReason, Profile, RunPhase, RunningJob, SharingMode,
    UNKNOWN_RUNTIME, View,
};

/// What a pending job may expect.
#[derive(Debug, Clone, PartialEq)]
pub struct JobForecast {
    /// The job.
    pub job: JobId,
    /// The reason code, for programs.
    pub code: ReasonCode,
    /// Why it waits: a sentence with numbers, without a full stop at its end.
    pub why: String,
    /// When it may start; `None` where the present nodes could never hold it, or where the answer would be a
    /// guess.
    pub starts_at: Option<Time>,
    /// When it may end then; `None` where its runtime is unknown.
    pub ends_at: Option<Time>,
    /// Its expected runtime at its best placement.
    pub runtime: Option<Span>,
}

/// Simulates the queue. `reasons` are in the order in which jobs may start.
#[must_use]
pub fn forecast(view: &View, reasons: Vec<PendingReason>) -> Vec<JobForecast> {
    let mut pool = FreePool::of(view);
    reasons
        .into_iter()
        .map(|PendingReason { job, code, why, not_before, runtime }| {
            let (starts_at, ends_at) = view
                .pending
                .get(&job)
                .and_then(|job| pool.hold(job, not_before, runtime))
                .map_or((None, None), |(starts_at, ends_at)| (Some(starts_at), ends_at));
            JobForecast { job, code, why, starts_at, ends_at, runtime }
        })
        .collect()
}

/// The devices of all nodes together, in thousandths, as time passes.
struct FreePool<'v> {
    now: Time,
    free: u64,
    total: u64,
    /// What becomes free when, and what that time is based on.
    ends: BinaryHeap<Reverse<(Time, u64, EstimateBasis)>>,
    /// What the present moment of the simulation is based on.
    basis: EstimateBasis,
    /// One device of each kind: on devices of one kind, a job takes the same share.
    kinds: BTreeMap<(bool, SharingMode, Share), &'v DeviceView>,
}

impl<'v> FreePool<'v> {
    fn of(view: &'v View) -> FreePool<'v> {
        let devices = || view.nodes.iter().flat_map(|node| &node.devices).filter(|it| it.is_in_service());
        let kind = |it: &DeviceView| (it.memory.is_some(), it.sharing.mode, min_share_per_rank(it));
        let mut pool = FreePool {
            now: view.now,
            free: devices().map(|device| u64::from(remaining_share(device).0)).sum(),
            total: devices().count() as u64 * u64::from(Share::WHOLE.0),
            ends: BinaryHeap::new(),
            basis: EstimateBasis::Estimate,
            kinds: devices().map(|device| (kind(device), device)).collect(),
        };
        pool.ends = view.running.values().map(|job| Reverse(pool.end_of(job))).collect();
        pool
    }

    fn end_of(&self, job: &RunningJob) -> (Time, u64, EstimateBasis) {
        let profile = Profile::flat(&job.demand, &job.traits);
        let expected = job.ends_at.unwrap_or(job.started_at + profile.runtime);
        let basis = match job.phase {
            RunPhase::Stopping => EstimateBasis::Estimate,
            // What should have ended already tells nothing about its end.
            RunPhase::Running if expected <= self.now => EstimateBasis::Guess,
            RunPhase::Running if job.ends_at.is_some() => EstimateBasis::Estimate,
            RunPhase::Running => profile.basis,
        };
        (estimate_end(job, profile.runtime, self.now), self.taken_by(&job.demand), basis)
    }

    /// What a job takes on the kind of device where it takes the least.
    fn taken_by(&self, demand: &Demand) -> u64 {
        let taken = |device: &&DeviceView| device.share_for(demand).max(min_share_per_rank(device));
        let least = self.kinds.values().map(taken).min().unwrap_or(demand.share());
        u64::from(demand.total_devices()) * u64::from(least.0)
    }

    /// Starts a job as soon as it fits; returns its start and, where its runtime is known, its end.
    fn hold(
        &mut self,
        job: &PendingJob,
        not_before: Option<Time>,
        runtime: Option<Span>,
    ) -> Option<(Time, Option<Time>)> {
        let millis = self.taken_by(&job.demand);
        let starts_at = self.wait_for(millis, not_before)?;
        let basis = if runtime.is_some() { self.basis } else { EstimateBasis::Guess };
        let ends_at = starts_at + runtime.unwrap_or(UNKNOWN_RUNTIME);
        self.free -= millis;
        self.ends.push(Reverse((ends_at, millis, basis)));
        (self.basis == EstimateBasis::Estimate).then_some((starts_at, runtime.map(|_| ends_at)))
    }

    /// Lets time pass until so much is free; later jobs start no earlier.
    fn wait_for(&mut self, millis: u64, not_before: Option<Time>) -> Option<Time> {
        if millis > self.total {
            return None;
        }
        while self.free < millis {
            let Reverse((ends_at, freed, basis)) = self.ends.pop()?;
            self.basis = self.basis.max(basis);
            self.now = self.now.max(ends_at);
            self.free = (self.free + freed).min(self.total);
        }
        Some(not_before.map_or(self.now, |at| at.max(self.now)))
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
