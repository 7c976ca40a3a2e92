//! The input of a simulation: the trace, the cluster, and the jobs for a seed.

use cohabit_types::counted;
use std::path::Path;
use std::sync::Arc;

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_sim::trace::{
    ExceedingJobs, JobLimits, ReadOptions, Strictness, Throughputs, Trace, read, synthetic,
};
use cohabit_sim::workload::{Measurements, Pace, SkippedJobs, Workload, WorkloadJob, workload};
use cohabit_sim::{EstimatorKind, Evaluation, Hardware, InterferenceContext, JobBehavior, MachineSpec};
use cohabit_types::GpuRequest;

use super::files::open_file;
use super::interference;
use super::left_out::LeftOutJobs;
use super::sensitivity::{SeededSensitivity, Sensitivity};
use crate::simulate::arguments::{TraceSource, WorkloadArguments};

/// The load of synthetic jobs without --load.
const LOAD_OF_SYNTHETIC: f64 = 0.9;
/// Number of skipped rows that are reported one by one.
const MAX_REPORTED_ROWS: usize = 3;

/// The input that does not depend on the seed.
pub(crate) struct Input {
    shapes: Vec<MachineSpec>,
    devices: u64,
    cluster: String,
    source: JobSource,
    limits: JobLimits,
    /// The measured configurations that jobs on one device train.
    pub(super) measurements: Option<Measurements>,
    /// How much cores and host memory speed jobs up, if that matters.
    sensitivity: Option<Sensitivity>,
    hardware: Hardware,
    pub(super) knowledge: InterferenceContext,
    estimator: EstimatorKind,
    behavior: JobBehavior,
}

/// The jobs that one run gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WindowDraw {
    /// How many jobs of the trace come before them.
    pub(crate) start: usize,
    /// The most jobs.
    pub(crate) jobs: Option<usize>,
    /// The load if all jobs are placed ideally; `None` leaves it as it is, or usual for synthetic jobs.
    pub(crate) load: Option<f64>,
    pub(crate) seed: u64,
}

enum JobSource {
    /// A trace without jobs that are too long or too wide, and how many these were.
    Trace(Trace, ExceedingJobs),
    /// This many synthetic jobs to draw.
    Synthetic(usize),
}

/// How jobs use GPUs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct GpuNeeds {
    /// Whether a job may share its GPU.
    pub(crate) shares: bool,
    /// Whether a job needs a single GPU, or a part of one.
    pub(crate) one_gpu: bool,
}

/// The jobs for one seed.
pub(crate) struct SeededWorkload {
    pub(super) workload: Workload,
    sensitivity: SeededSensitivity,
    /// How many jobs the part of the trace has.
    pub(super) drawn: usize,
    /// How many jobs the trace has that are neither too long nor too wide.
    pub(super) available: usize,
    /// The jobs of the trace that are not among these.
    pub(super) left_out: LeftOutJobs,
    /// The load if all jobs were placed ideally; none if all arrive at once.
    pub(super) load: Option<f64>,
}

impl Input {
    /// Reads the trace.
    pub(crate) fn read(arguments: &WorkloadArguments) -> Result<Input, CommandError> {
        let limits = arguments.limits();
        let source = match &arguments.trace {
            TraceSource::File(path) => {
                let (trace, exceeding) = read_trace(path, arguments)?.within(limits);
                JobSource::Trace(trace, exceeding)
            }
            TraceSource::Synthetic(jobs) => JobSource::Synthetic(*jobs),
        };
        let spec = &arguments.cluster.spec;
        let shared = |shape: MachineSpec| shape.shared_by(arguments.max_sharing());
        let shapes: Vec<MachineSpec> = spec.shapes().into_iter().map(shared).collect();
        let sensitivity = Sensitivity::read(arguments, &shapes)?;
        let measurements = interference::measurements(arguments, &shapes)?;
        let hardware = interference::hardware(arguments, measurements.as_ref())?;
        let knowledge = interference::knowledge(arguments, measurements.as_ref(), &hardware)?;
        Ok(Input {
            knowledge,
            sensitivity,
            hardware,
            measurements,
            shapes,
            devices: spec.devices(),
            cluster: arguments.cluster.written.clone(),
            source,
            limits,
            estimator: arguments.estimator.0,
            behavior: arguments.behavior.behavior(),
        })
    }

    /// Warnings about the trace and the tables.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let left_out = self.sensitivity.iter().flat_map(|it| it.left_out.iter().cloned());
        self.trace_remarks().into_iter().chain(left_out).collect()
    }

    fn trace_remarks(&self) -> Vec<String> {
        let JobSource::Trace(trace, _) = &self.source else { return Vec::new() };
        let reported = trace.skipped.iter().take(MAX_REPORTED_ROWS);
        let mut remarks: Vec<String> =
            reported.map(|row| format!("line {} is skipped: {}", row.line, row.why)).collect();
        if let Some(more) = trace.skipped.len().checked_sub(MAX_REPORTED_ROWS).filter(|more| *more > 0) {
            remarks.push(format!("{more} more lines are skipped; --strict makes this an error"));
        }
        remarks
    }

    /// The jobs of one run.
    pub(crate) fn jobs(&self, draw: WindowDraw) -> Result<SeededWorkload, CommandError> {
        let WindowDraw { start, jobs, load, seed } = draw;
        let drawn;
        let (whole, exceeding, usual_load) = match &self.source {
            JobSource::Trace(trace, exceeding) => (trace, *exceeding, None),
            JobSource::Synthetic(all) => {
                drawn = synthetic(*all, seed).within(self.limits);
                (&drawn.0, drawn.1, Some(LOAD_OF_SYNTHETIC))
            }
        };
        let (trace, available) = (whole.part(start, jobs), whole.jobs.len());
        let skipped = start.min(available);
        let left_out = LeftOutJobs {
            skipped,
            beyond_limit: available - skipped - trace.jobs.len(),
            ..LeftOutJobs::of_trace(whole.skipped.len(), exceeding)
        };
        let mut pace = Pace::on(&self.shapes);
        let measurements = self.measurements.as_ref();
        let fastest = |model: &_, devices| pace.fastest(model, devices);
        let made = workload(&trace, &self.shapes, measurements, seed, fastest);
        let left_out = left_out.with_unrunnable(made.left_out);
        if made.jobs.is_empty() {
            return Err(self.no_jobs(made.left_out));
        }
        let workload = match load.or(usual_load) {
            Some(load) => made.with_load(load, self.devices),
            None => made,
        };
        let (workload, sensitivity) = match &self.sensitivity {
            Some(tables) => tables.apply(workload, &self.shapes, seed),
            None => (workload, SeededSensitivity::default()),
        };
        let load = workload.load(self.devices);
        Ok(SeededWorkload { load, workload, sensitivity, drawn: trace.jobs.len(), available, left_out })
    }

    /// These of the drawn jobs under a policy, without turns of users.
    pub(crate) fn evaluation(
        &self,
        policy: &str,
        drawn: &SeededWorkload,
        jobs: Vec<WorkloadJob>,
        seed: u64,
    ) -> Evaluation {
        Evaluation {
            shapes: self.shapes.clone(),
            hardware: drawn.sensitivity.hardware(&self.hardware),
            jobs,
            policy: policy.to_owned(),
            knowledge: self.knowledge.clone(),
            sensitivity: Arc::clone(&drawn.sensitivity.known),
            fair_share: false,
            estimator: self.estimator,
            behavior: self.behavior,
            seed,
        }
    }

    fn no_jobs(&self, SkippedJobs { too_wide, too_large }: SkippedJobs) -> CommandError {
        let cluster = &self.cluster;
        let message = match too_wide + too_large {
            0 => "no jobs are left: --skip must be less than the number of jobs in the trace that --max-duration and \
                  --max-gpus leave"
                .to_owned(),
            _ => format!(
                "{cluster} cannot run any of the jobs: {too_wide} need more than its {} devices and {too_large} need more \
                 memory than its GPUs have",
                self.devices
            ),
        };
        CommandError::new(CommandErrorKind::Impossible("no_jobs"), message)
    }
}

impl SeededWorkload {
    /// How the jobs use GPUs.
    pub(crate) fn gpu_needs(&self) -> GpuNeeds {
        let demands = || self.workload.jobs.iter().map(|job| job.spec.demand);
        GpuNeeds {
            shares: demands().any(|demand| matches!(demand.gpus, GpuRequest::Part(_))),
            one_gpu: demands().any(|demand| demand.total_devices() == 1),
        }
    }

    /// The jobs, in the order of submission.
    #[cfg(feature = "predict")]
    pub(crate) fn jobs(&self) -> &[WorkloadJob] {
        &self.workload.jobs
    }
}

/// What `policy train` asks besides.
#[cfg(feature = "predict")]
impl Input {
    /// How many jobs the trace has; `None` for synthetic jobs.
    pub(crate) fn trace_jobs(&self) -> Option<usize> {
        match &self.source {
            JobSource::Trace(trace, _) => Some(trace.jobs.len()),
            JobSource::Synthetic(_) => None,
        }
    }

    /// The names of the tables that groups of jobs draw.
    pub(crate) fn sensitivities(&self) -> Vec<String> {
        self.sensitivity.as_ref().map(Sensitivity::names).unwrap_or_default()
    }
}

pub(super) fn no_more_jobs(window: u32, left: usize) -> CommandError {
    let message = format!(
        "window {} has only {}: reduce --windows, --limit, --stride or --skip, so that all windows have as many",
        window + 1,
        counted(left, "job", "jobs")
    );
    CommandError::new(CommandErrorKind::Impossible("no_jobs"), message)
}

fn read_trace(path: &Path, arguments: &WorkloadArguments) -> Result<Trace, CommandError> {
    let throughputs = match &arguments.throughputs {
        Some(table) => Some(
            Throughputs::read(open_file(table)?, arguments.throughputs_of.clone())
                .map_err(|error| unusable(table, &error))?,
        ),
        None => None,
    };
    let strictness = if arguments.strict { Strictness::Strict } else { Strictness::Lenient };
    let reading = ReadOptions { format: arguments.format, strictness, throughputs };
    read(open_file(path)?, &reading).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &cohabit_sim::trace::TraceError) -> CommandError {
    CommandError::new(CommandErrorKind::Impossible("unusable_trace"), format!("{}: {error}", path.display()))
}
