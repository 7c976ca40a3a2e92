//! Jobs that may share a GPU: each trains a measured configuration and states how much memory that takes.
//!
//! A job asks for such a part of a GPU that as many fit as the machines allow on one; which of them work well
//! together is for the policy to find out. A job that finds no memory left is retried until it does.

use cohabit_types::{
    Bytes, Demand, GpuRequest, JobSpec, LaunchMode, ModelDescription, RetryPolicy, Share, Time,
};

use super::assigned_model::AssignedModel;
use super::job::WorkloadJob;
use super::measured::{MeasuredConfiguration, Measurements};
use crate::machine_spec::MachineSpec;
use crate::program::SimProgram;
use crate::random::Random;
use crate::trace::TraceJob;

/// The jobs on one device.
pub(super) struct SharingJobs<'m> {
    seed: u64,
    measurements: &'m Measurements,
    /// The request of a job that may share.
    part: GpuRequest,
    /// The most memory that such a job may hold.
    room: Bytes,
}

impl<'m> SharingJobs<'m> {
    pub(super) fn new(
        measurements: &'m Measurements,
        machines: &[MachineSpec],
        seed: u64,
    ) -> SharingJobs<'m> {
        let most = machines.iter().map(|machine| machine.sharing.max_ranks).max().unwrap_or(1);
        let part = match most {
            0 | 1 => GpuRequest::Whole(1),
            most => GpuRequest::Part(Share((Share::WHOLE.0 / most).max(1))),
        };
        let room =
            |machine: &MachineSpec| Some(machine.device_memory?.saturating_sub(machine.sharing.reserve));
        let room = machines.iter().filter_map(room).min().unwrap_or(Bytes(u64::MAX));
        SharingJobs { seed, measurements, part, room }
    }

    /// The workload job for the job with this number in the trace.
    pub(super) fn job(
        &self,
        number: usize,
        job: &TraceJob,
        pace: &mut impl FnMut(&ModelDescription, u32) -> Option<f64>,
    ) -> WorkloadJob {
        let trained = self.trained(number, job);
        let best = pace(&trained.model, 1).expect("one stage makes one device");
        let (iterations, assigned) = AssignedModel { model: trained.model.clone(), pace: best }.lasting(job);
        let program = SimProgram {
            busy: trained.busy,
            gpu_memory: Some(trained.memory),
            ..SimProgram::working(job.duration)
        };
        let spec = JobSpec {
            name: assigned.model.name.clone().unwrap_or_default(),
            demand: self.demand(trained),
            launch: LaunchMode::PerNode,
            group: Some(job.group.clone()),
            model: Some(assigned.model),
            retry: RetryPolicy { limit: u32::MAX, ..RetryPolicy::default() },
            ..program.job()
        };
        WorkloadJob {
            line: job.line,
            at: Time::EPOCH + job.submitted,
            user: job.user.clone(),
            spec,
            iterations,
            pace: assigned.pace,
            alone_milli: u64::from(Share::WHOLE.0),
        }
    }

    /// A job that leaves no memory for the reserve has to have a GPU alone.
    fn demand(&self, trained: &MeasuredConfiguration) -> Demand {
        let gpus = if trained.memory <= self.room { self.part } else { GpuRequest::Whole(1) };
        Demand { gpus, gpu_memory: Some(trained.memory), ..Demand::default() }
    }

    /// The configuration that the trace names; otherwise one drawn by the job's number alone, so that no
    /// other job changes it.
    fn trained(&self, number: usize, job: &TraceJob) -> &'m MeasuredConfiguration {
        let all = self.measurements.trained();
        let is_named = |it: &&MeasuredConfiguration| {
            let same =
                |name: &String| job.model.as_ref().is_some_and(|model| model.eq_ignore_ascii_case(name));
            it.model.name.as_ref().is_some_and(same)
                && job.batch.is_none_or(|batch| it.model.batch_size == Some(batch))
        };
        let named: Vec<&'m MeasuredConfiguration> = all.iter().filter(is_named).collect();
        let from = if named.is_empty() { all.iter().collect() } else { named };
        let mut draws = Random::stream(self.seed, &format!("configuration of job {number}"));
        draws.pick::<&'m MeasuredConfiguration>(&from)
    }
}
