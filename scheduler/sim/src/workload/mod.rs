//! Workloads: the jobs of a trace as jobs of a simulated cluster.
//!
//! Traces tell when a job came, how many devices it had and how long it ran, but not what it trained. So all
//! jobs of one group with as many devices draw a network and a way to spread it, and train for as many
//! iterations as take the trace's duration at their best pace on this cluster: what the trace says holds
//! where a job is placed ideally, and a bad place costs what it would cost that network. A job whose trace
//! names one of our networks gets that one; where the trace tells iterations, they are kept and the network
//! is scaled.
//!
//! Where there are measurements of training jobs beside each other, each job on one device trains one of the
//! measured configurations instead and may share its device: see [`Measurements`].

mod assigned_model;
mod job;
mod layers;
mod measured;
mod model_assignment;
mod networks;
mod pace;
mod profile;
mod sharing_jobs;
#[cfg(test)]
mod tests;

use cohabit_types::{ModelDescription, Span, Time};

pub use self::job::WorkloadJob;
#[cfg(feature = "learned")]
pub use self::measured::read_measurements;
pub use self::measured::{Measurements, MeasurementsError};
use self::model_assignment::ModelAssignment;
pub use self::pace::Pace;
use crate::machine_spec::MachineSpec;
use crate::trace::Trace;

/// What is submitted to a simulated cluster, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// In the order of submission.
    pub jobs: Vec<WorkloadJob>,
    /// What the cluster can never run.
    pub left_out: SkippedJobs,
}

/// Jobs of a trace that a cluster can never run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SkippedJobs {
    /// They need more devices than there are.
    pub too_wide: usize,
    /// They need more memory than a device has.
    pub too_large: usize,
}

/// The jobs of a trace on these machines. `pace` gives the seconds of an iteration at best, for a model on so
/// many devices (see [`Pace`]). With measurements, jobs on one device draw from these what they train.
pub fn workload(
    trace: &Trace,
    machines: &[MachineSpec],
    measurements: Option<&Measurements>,
    seed: u64,
    mut pace: impl FnMut(&ModelDescription, u32) -> Option<f64>,
) -> Workload {
    let mut trainings = ModelAssignment::new(machines, measurements, seed);
    let mut workload = Workload { jobs: Vec::new(), left_out: SkippedJobs::default() };
    let capacity: u64 = machines.iter().map(|machine| u64::from(machine.devices)).sum();
    let largest = machines.iter().filter_map(|machine| machine.device_memory).max();
    for (number, job) in trace.jobs.iter().enumerate() {
        if job.devices_milli.div_ceil(1_000) > capacity {
            workload.left_out.too_wide += 1;
        } else if job.gpu_memory.is_some_and(|needed| largest.is_some_and(|largest| needed > largest)) {
            workload.left_out.too_large += 1;
        } else {
            workload.jobs.push(trainings.job(number, job, &mut pace));
        }
    }
    workload
}

impl Workload {
    /// Devices, by how many are kept busy on average while jobs arrive, if all are placed ideally; none where
    /// all arrive at once.
    #[must_use]
    pub fn load(&self, devices: u64) -> Option<f64> {
        let work: f64 = self.jobs.iter().map(WorkloadJob::work).sum();
        let length = self.length().as_secs_f64();
        (length > 0.0 && devices > 0).then(|| work / length / devices as f64)
    }

    /// The same jobs, arriving faster or slower by one factor, so that the load of so many devices is this.
    /// Jobs that all arrive at once stay as they are.
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
