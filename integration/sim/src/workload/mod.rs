//! Workloads: the jobs of a trace as jobs of a simulated cluster.
//!
//! Traces tell when a job came, how many devices it had and how long it ran, but not what it trained. So all
//! jobs of one group with as many devices draw a network and a way to spread it, and train for as many
//! iterations as take the trace's duration at their best pace on this cluster: what the trace says holds where
//! a job is placed ideally, and a bad place costs what it would cost that network. A job whose trace names one
//! of our networks gets that one; where the trace tells iterations, they are kept and the network is scaled.

mod layers;
mod networks;
mod pace;
mod profile;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use cohabit_proto::{Demand, Gpus, JobSpec, Launch, ModelDescription, Share, Span, Spread, Stage, Time};

use self::networks::{Network, networks};
use self::profile::{Parallelism, describe};
use crate::program::Program;
use crate::random::Random;
use crate::shape::Shape;
use crate::trace::{Trace, TraceJob};

pub use self::pace::Pace;

/// What is submitted to a simulated cluster, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// In the order of submission.
    pub jobs: Vec<WorkloadJob>,
    /// What the cluster can never run.
    pub left_out: LeftOut,
}

/// A job with all that is true of it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadJob {
    /// When it is submitted.
    pub at: Time,
    /// Who submits it.
    pub user: String,
    /// What is submitted. It does not tell how many iterations there will be, nor how long they take.
    pub spec: JobSpec,
    /// How many there will be.
    pub iterations: u64,
    /// How long each takes at best on this cluster, in seconds.
    pub pace: f64,
}

/// Jobs of a trace that a cluster can never run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// They need more devices than there are.
    pub too_wide: usize,
    /// They need more memory than a device has.
    pub too_large: usize,
}

/// The jobs of a trace on these machines. `pace` gives the seconds of an iteration at best, for a model on so
/// many devices (see [`Pace`]).
pub fn workload(
    trace: &Trace,
    machines: &[Shape],
    seed: u64,
    mut pace: impl FnMut(&ModelDescription, u32) -> Option<f64>,
) -> Workload {
    let mut trainings = Trainings::new(machines, seed);
    let mut workload = Workload { jobs: Vec::new(), left_out: LeftOut::default() };
    let capacity: u64 = machines.iter().map(|machine| u64::from(machine.devices)).sum();
    let largest = machines.iter().filter_map(|machine| machine.device_memory).max();
    for job in &trace.jobs {
        if job.devices_milli.div_ceil(1_000) > capacity {
            workload.left_out.too_wide += 1;
        } else if job.gpu_memory.is_some_and(|needed| largest.is_some_and(|largest| needed > largest)) {
            workload.left_out.too_large += 1;
        } else {
            workload.jobs.push(trainings.job(job, &mut pace));
        }
    }
    workload
}

impl WorkloadJob {
    /// How long it runs where it is placed ideally.
    #[must_use]
    pub fn ideal(&self) -> Span {
        Span::from_secs_f64(self.iterations as f64 * self.pace)
    }

    /// Seconds of devices that it needs at least.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.spec.demand.total_milli() as f64 / 1_000.0 * self.iterations as f64 * self.pace
    }
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

/// What groups of jobs train.
struct Trainings {
    seed: u64,
    networks: Vec<Network>,
    /// The makes of GPU that there are.
    makes: Vec<String>,
    known: BTreeMap<Subject, Training>,
}

/// What a group of jobs with as many devices trains is one thing, for a name and batch size that the trace
/// tells.
type Subject = (String, u32, Option<(String, Option<u64>)>);

#[derive(Clone)]
struct Training {
    model: ModelDescription,
    /// Seconds for one iteration at best.
    pace: f64,
}

impl Trainings {
    fn new(machines: &[Shape], seed: u64) -> Trainings {
        let makes: BTreeSet<&String> = machines.iter().map(|machine| &machine.model).collect();
        let makes = makes.into_iter().cloned().collect();
        Trainings { seed, networks: networks(), makes, known: BTreeMap::new() }
    }

    fn job(
        &mut self,
        job: &TraceJob,
        pace: &mut impl FnMut(&ModelDescription, u32) -> Option<f64>,
    ) -> WorkloadJob {
        let demand = demand(job);
        let training = self.training(job, demand.total_devices(), pace);
        let (iterations, training) = training.to_last(job);
        let program = Program { busy: busy(&demand), ..Program::working(job.duration) };
        let spec = JobSpec {
            name: training.model.name.clone().unwrap_or_default(),
            demand,
            launch: if demand.total_devices() > 1 { Launch::PerGpu } else { Launch::PerNode },
            group: Some(job.group.clone()),
            model: Some(training.model),
            ..program.job()
        };
        let at = Time::EPOCH + job.submitted;
        WorkloadJob { at, user: job.user.clone(), spec, iterations, pace: training.pace }
    }

    fn training(
        &mut self,
        job: &TraceJob,
        devices: u32,
        pace: &mut impl FnMut(&ModelDescription, u32) -> Option<f64>,
    ) -> Training {
        let named = job.model.clone().map(|model| (model, job.batch));
        let subject = (job.group.clone(), devices, named);
        if let Some(known) = self.known.get(&subject) {
            return known.clone();
        }
        let model = self.draw(job, devices);
        let pace = pace(&model, devices).expect("our stages make as many devices as they are made for");
        self.known.entry(subject).or_insert(Training { model, pace }).clone()
    }

    /// By the group and the devices alone, so that neither other jobs nor their order change it.
    fn draw(&self, job: &TraceJob, devices: u32) -> ModelDescription {
        let mut draws = Random::stream(self.seed, &format!("training of {} on {devices}", job.group));
        let drawn = draws.pick(&self.networks);
        let parallelism = *draws.pick(Parallelism::possible(devices));
        let named = job.model.as_ref().and_then(|name| Network::by_name(name, &self.networks));
        let network = named.unwrap_or(drawn);
        // The batch size of some other network would say nothing about this one.
        let batch = job.batch.filter(|batch| named.is_some() && *batch > 0).unwrap_or(network.batch);
        let model = describe(network, parallelism, devices, batch, &self.makes);
        ModelDescription {
            name: job.model.clone().or(model.name),
            batch_size: job.batch.or(model.batch_size),
            ..model
        }
    }
}

impl Training {
    /// Iterations that take as long as the job did. Where the trace tells them, an iteration takes what it took
    /// there: the network is scaled in all it computes and sends.
    fn to_last(self, job: &TraceJob) -> (u64, Training) {
        let seconds = job.duration.as_secs_f64();
        match job.iterations {
            None => (((seconds / self.pace).round() as u64).max(1), self),
            Some(iterations) => {
                let factor = seconds / iterations as f64 / self.pace;
                (iterations, self.scaled(factor))
            }
        }
    }

    fn scaled(mut self, factor: f64) -> Training {
        let scale = |stage: &mut Stage| {
            stage.compute_seconds *= factor;
            stage.compute_seconds_on.values_mut().for_each(|seconds| *seconds *= factor);
            stage.activation_bytes *= factor;
            stage.gradient_bytes *= factor;
        };
        self.model.stages.iter_mut().for_each(scale);
        self.pace *= factor;
        self
    }
}

/// Whole devices may lie anywhere; a part of one leaves room for others.
fn demand(job: &TraceJob) -> Demand {
    let (gpus, spread) = match (job.devices_milli / 1_000, job.devices_milli % 1_000) {
        (0, part) => (Gpus::Part(Share(part as u32)), Spread::Even),
        (whole, part) => (Gpus::Whole(whole as u32 + u32::from(part > 0)), Spread::Free),
    };
    Demand { gpus, spread, gpu_memory: job.gpu_memory, ..Demand::default() }
}

/// A job that asks for a part of a device keeps that part of it as busy as others do the whole.
fn busy(demand: &Demand) -> f64 {
    Program::working(Span::ZERO).busy * f64::from(demand.gpus).min(1.0)
}
