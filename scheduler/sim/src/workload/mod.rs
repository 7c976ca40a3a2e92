//! Workloads: the jobs of a trace as jobs of a simulated cluster.
//!
//! A trace tells when a job came, how many devices it had and how long it ran, but not what it trained. So
//! all jobs of a group with the same number of devices draw a network and a way to parallelise it, and train
//! for as many iterations as take the trace's duration at the best placement in this cluster: the duration of
//! the trace holds at an ideal placement, and a bad one costs what it would cost this network. A job whose
//! trace names a known network gets that one; if the trace gives the iterations, they are kept and the
//! network is scaled.
//!
//! With measurements of co-located training jobs, each job on one device trains one of the measured
//! configurations instead and may share its device: see [`Measurements`].
//!
//! Start reading with [`workload`].

mod assigned_model;
mod host_ranges;
mod job;
mod layers;
mod measured;
mod model_assignment;
mod networks;
mod noisy_tables;
mod pace;
mod profile;
mod sharing_jobs;
#[cfg(test)]
mod tests;

use cohabit_types::{Bytes, Demand, ModelDescription, Span, Time};

pub use self::host_ranges::SensitivityTables;
pub use self::job::WorkloadJob;
#[cfg(feature = "learned")]
pub use self::measured::read_measurements;
pub use self::measured::{Measurements, MeasurementsError};
use self::model_assignment::ModelAssignment;
pub use self::noisy_tables::noisy_tables;
pub use self::pace::Pace;
use crate::machine_spec::MachineSpec;
use crate::trace::Trace;
#[cfg(feature = "learned")]
pub use cohabit_predict::sensitivity::{ReadTables, read_sensitivity};

/// The jobs that are submitted to a simulated cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// In the order of submission.
    pub jobs: Vec<WorkloadJob>,
    /// The jobs that the cluster can never run.
    pub left_out: SkippedJobs,
}

/// Jobs of a trace that a cluster can never run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SkippedJobs {
    /// Jobs that need more devices than the cluster has.
    pub too_wide: usize,
    /// Jobs that need more memory than their number of devices have each, with the reserve of a shared one.
    pub too_large: usize,
}

/// Makes the jobs of a trace for these machines. `pace` gives the time of an iteration at the best placement
/// in seconds, for a model on a number of devices (see [`Pace`]). With measurements, jobs on one device draw
/// their model from these.
pub fn workload(
    trace: &Trace,
    machines: &[MachineSpec],
    measurements: Option<&Measurements>,
    seed: u64,
    mut pace: impl FnMut(&ModelDescription, u32) -> Option<f64>,
) -> Workload {
    let mut assignment = ModelAssignment::new(machines, measurements, seed);
    let mut workload = Workload { jobs: Vec::new(), left_out: SkippedJobs::default() };
    let capacity: u64 = machines.iter().map(|machine| u64::from(machine.devices)).sum();
    for (number, job) in trace.jobs.iter().enumerate() {
        if job.devices_milli.div_ceil(1_000) > capacity {
            workload.left_out.too_wide += 1;
            continue;
        }
        let job = assignment.job(number, job, &mut pace);
        if have_memory(machines, &job.spec.demand) {
            workload.jobs.push(job);
        } else {
            workload.left_out.too_large += 1;
        }
    }
    workload
}

/// Whether enough devices have the memory of a demand: the head refuses jobs for which they do not.
fn have_memory(machines: &[MachineSpec], demand: &Demand) -> bool {
    let Some(needed) = demand.gpu_memory else { return true };
    let holds = |machine: &&MachineSpec| {
        let reserve = if demand.may_have_neighbors() { machine.sharing.reserve } else { Bytes::ZERO };
        machine.device_memory.is_none_or(|memory| needed.0.saturating_add(reserve.0) <= memory.0)
    };
    let devices: u64 = machines.iter().filter(holds).map(|machine| u64::from(machine.devices)).sum();
    devices >= u64::from(demand.total_devices())
}

impl Workload {
    /// The offered load: the fraction of the devices that is busy on average while jobs arrive, if all are
    /// placed ideally; `None` if all arrive at once.
    #[must_use]
    pub fn load(&self, devices: u64) -> Option<f64> {
        let work: f64 = self.jobs.iter().map(WorkloadJob::work).sum();
        let length = self.length().as_secs_f64();
        (length > 0.0 && devices > 0).then(|| work / length / devices as f64)
    }

    /// The same jobs with arrival times scaled by one factor to give this load on this many devices. Jobs
    /// that all arrive at once stay as they are.
    #[must_use]
    pub fn with_load(mut self, load: f64, devices: u64) -> Workload {
        let Some(factor) = self.load(devices).map(|now| now / load) else { return self };
        for job in &mut self.jobs {
            job.at = Time::EPOCH + Span::from_secs_f64(job.at.as_secs_f64() * factor);
        }
        self
    }

    fn length(&self) -> Span {
        let first = self.jobs.first().map_or(Time::EPOCH, |job| job.at);
        self.jobs.last().map_or(Span::ZERO, |job| job.at.since(first))
    }
}
