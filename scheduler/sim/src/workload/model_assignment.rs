//! Assigns models to the jobs of a trace: drawn for each group, and scaled to last as long as the job did.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{Demand, GpuRequest, JobSpec, LaunchMode, ModelDescription, Share, Span, Spread, Time};

use super::assigned_model::AssignedModel;
use super::job::WorkloadJob;
use super::measured::Measurements;
use super::networks::{KnownNetwork, networks};
use super::profile::{Parallelism, describe};
use super::sharing_jobs::SharingJobs;
use crate::machine_spec::MachineSpec;
use crate::program::SimProgram;
use crate::random::Random;
use crate::trace::TraceJob;

/// The models that groups of jobs train.
pub(super) struct ModelAssignment<'m> {
    seed: u64,
    /// The models of jobs on one device, if there are measurements.
    sharing_jobs: Option<SharingJobs<'m>>,
    networks: Vec<KnownNetwork>,
    /// The GPU models of the cluster.
    makes: Vec<String>,
    known: BTreeMap<AssignmentKey, AssignedModel>,
}

/// Jobs of a group with the same number of devices train one model, for each model name and batch size that
/// the trace gives.
type AssignmentKey = (String, u32, Option<(String, Option<u64>)>);

impl<'m> ModelAssignment<'m> {
    pub(super) fn new(
        machines: &[MachineSpec],
        measurements: Option<&'m Measurements>,
        seed: u64,
    ) -> ModelAssignment<'m> {
        let makes: BTreeSet<&String> = machines.iter().map(|machine| &machine.model).collect();
        let makes = makes.into_iter().cloned().collect();
        let sharing_jobs = measurements.map(|measurements| SharingJobs::new(measurements, machines, seed));
        ModelAssignment { seed, sharing_jobs, networks: networks(), makes, known: BTreeMap::new() }
    }

    /// The workload job for the job with this number in the trace.
    pub(super) fn job(
        &mut self,
        number: usize,
        job: &TraceJob,
        pace: &mut impl FnMut(&ModelDescription, u32) -> Option<f64>,
    ) -> WorkloadJob {
        let demand = demand(job);
        if let Some(sharing_jobs) = self.sharing_jobs.as_ref().filter(|_| demand.total_devices() == 1) {
            return sharing_jobs.job(number, job, pace);
        }
        let assigned = self.assigned(job, demand.total_devices(), pace);
        let (iterations, assigned) = assigned.lasting(job);
        let program = SimProgram { busy: busy(&demand), ..SimProgram::working(job.duration) };
        let spec = JobSpec {
            name: assigned.model.name.clone().unwrap_or_default(),
            demand,
            launch: if demand.total_devices() > 1 { LaunchMode::PerGpu } else { LaunchMode::PerNode },
            group: Some(job.group.clone()),
            model: Some(assigned.model),
            ..program.job()
        };
        let at = Time::EPOCH + job.submitted;
        let alone_milli = demand.total_milli();
        WorkloadJob {
            line: job.line,
            at,
            user: job.user.clone(),
            spec,
            iterations,
            pace: assigned.pace,
            alone_milli,
        }
    }

    fn assigned(
        &mut self,
        job: &TraceJob,
        devices: u32,
        pace: &mut impl FnMut(&ModelDescription, u32) -> Option<f64>,
    ) -> AssignedModel {
        let named = job.model.clone().map(|model| (model, job.batch));
        let subject = (job.group.clone(), devices, named);
        if let Some(known) = self.known.get(&subject) {
            return known.clone();
        }
        let model = self.draw(job, devices);
        let pace = pace(&model, devices).expect("our stages make as many devices as they are made for");
        self.known.entry(subject).or_insert(AssignedModel { model, pace }).clone()
    }

    /// Draws a model from the group and the number of devices alone, so that neither other jobs nor their
    /// order change it.
    fn draw(&self, job: &TraceJob, devices: u32) -> ModelDescription {
        let mut draws = Random::stream(self.seed, &format!("training of {} on {devices}", job.group));
        let drawn = draws.pick(&self.networks);
        let parallelism = *draws.pick(Parallelism::possible(devices));
        let named = job.model.as_ref().and_then(|name| KnownNetwork::by_name(name, &self.networks));
        let network = named.unwrap_or(drawn);
        // The batch size of an unknown network says nothing about the drawn one.
        let batch = job.batch.filter(|batch| named.is_some() && *batch > 0).unwrap_or(network.batch);
        let model = describe(network, parallelism, devices, batch, &self.makes);
        ModelDescription {
            name: job.model.clone().or(model.name),
            batch_size: job.batch.or(model.batch_size),
            ..model
        }
    }
}

/// Whole devices may be anywhere; a part of a device leaves room for others.
fn demand(job: &TraceJob) -> Demand {
    let (gpus, spread) = match (job.devices_milli / 1_000, job.devices_milli % 1_000) {
        (0, part) => (GpuRequest::Part(Share(part as u32)), Spread::Even),
        (whole, part) => (GpuRequest::Whole(whole as u32 + u32::from(part > 0)), Spread::Free),
    };
    Demand { gpus, spread, gpu_memory: job.gpu_memory, ..Demand::default() }
}

/// A job that asks for a part of a device keeps this part as busy as other jobs keep a whole one.
fn busy(demand: &Demand) -> f64 {
    SimProgram::working(Span::ZERO).busy * f64::from(demand.gpus).min(1.0)
}
