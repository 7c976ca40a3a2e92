//! Jobs that may share a GPU: each trains a measured configuration, and says how much memory that takes.
//!
//! A job asks for such a part of a GPU that as many fit as the machines allow on one; which of them get on
//! together is for the policy to find out. Where it finds no memory left, it is tried again until it does.

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

/// What jobs on one device train.
pub(super) struct SharingJobs<'m> {
    seed: u64,
    measurements: &'m Measurements,
    /// What a job asks for that may share.
    part: GpuRequest,
    /// The most memory that it may hold for that.
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

    /// The job with this number in its trace.
    pub(super) fn job(
        &self,
        number: usize,
        job: &TraceJob,
        pace: &mut impl FnMut(&ModelDescription, u32) -> Option<f64>,
    ) -> WorkloadJob {
        let trained = self.trained(number, job);
        let best = pace(&trained.model, 1).expect("one stage makes one device");
        let (iterations, training) = AssignedModel { model: trained.model.clone(), pace: best }.lasting(job);
        let program = SimProgram {
            busy: trained.busy,
            gpu_memory: Some(trained.memory),
            ..SimProgram::working(job.duration)
        };
        let spec = JobSpec {
            name: training.model.name.clone().unwrap_or_default(),
            demand: self.demand(trained),
            launch: LaunchMode::PerNode,
            group: Some(job.group.clone()),
            model: Some(training.model),
            retry: RetryPolicy { limit: u32::MAX, ..RetryPolicy::default() },
            ..program.job()
        };
        WorkloadJob {
            at: Time::EPOCH + job.submitted,
            user: job.user.clone(),
            spec,
            iterations,
            pace: training.pace,
            alone_milli: u64::from(Share::WHOLE.0),
        }
    }

    /// Who leaves nothing for the reserve has to have a GPU alone.
    fn demand(&self, trained: &MeasuredConfiguration) -> Demand {
        let gpus = if trained.memory <= self.room { self.part } else { GpuRequest::Whole(1) };
        Demand { gpus, gpu_memory: Some(trained.memory), ..Demand::default() }
    }

    /// The configuration that the trace names; otherwise one that is drawn by the job's number alone, so that
    /// no other job changes it.
    fn trained(&self, number: usize, job: &TraceJob) -> &'m MeasuredConfiguration {
        let all = self.measurements.trained();
        let is_named = |it: &&MeasuredConfiguration| {
            let same = |name: &String| job.model.as_ref().is_some_and(|told| told.eq_ignore_ascii_case(name));
            it.model.name.as_ref().is_some_and(same)
                && job.batch.is_none_or(|batch| it.model.batch_size == Some(batch))
        };
        let named: Vec<&'m MeasuredConfiguration> = all.iter().filter(is_named).collect();
        let from = if named.is_empty() { all.iter().collect() } else { named };
        let mut draws = Random::stream(self.seed, &format!("configuration of job {number}"));
        draws.pick::<&'m MeasuredConfiguration>(&from)
    }
}
