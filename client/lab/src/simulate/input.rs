//! The input of a simulation: the trace, the cluster, and the jobs for a seed.

use std::path::Path;

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_sim::trace::{JobLimits, ReadOptions, Strictness, Throughputs, Trace, read, synthetic};
use cohabit_sim::workload::{Measurements, Pace, SkippedJobs, Workload, workload};
use cohabit_sim::{Hardware, InterferenceContext, MachineSpec};

use super::files::open_file;
use super::interference;
use super::learning::OnlineLearning;
use super::sensitivity::{SeededSensitivity, Sensitivity};
use crate::simulate::arguments::{Sample, SimulateArguments, TraceSource};

/// The load of synthetic jobs without --load.
const LOAD_OF_SYNTHETIC: f64 = 0.9;
/// Number of skipped rows that are reported one by one.
const MAX_REPORTED_ROWS: usize = 3;

/// The input that does not depend on the seed.
pub(super) struct Input {
    shapes: Vec<MachineSpec>,
    devices: u64,
    cluster: String,
    load: Option<f64>,
    source: JobSource,
    limits: JobLimits,
    /// The most jobs of a window.
    jobs_per_window: Option<usize>,
    /// The measured configurations that jobs on one device train.
    measurements: Option<Measurements>,
    /// How much cores and host memory speed jobs up, if that matters.
    sensitivity: Option<Sensitivity>,
    pub(super) hardware: Hardware,
    pub(super) knowledge: InterferenceContext,
    /// What runs that learn start with.
    pub(super) learning: Option<OnlineLearning>,
}

enum JobSource {
    /// A trace without jobs that are too long or too wide.
    Trace(Trace),
    /// This many synthetic jobs to draw.
    Synthetic(usize),
}

/// The jobs for one seed.
pub(super) struct SeededWorkload {
    pub(super) shapes: Vec<MachineSpec>,
    pub(super) workload: Workload,
    pub(super) sensitivity: SeededSensitivity,
    /// The load if all jobs were placed ideally; none if all arrive at once.
    pub(super) load: Option<f64>,
}

impl Input {
    /// Reads the trace.
    pub(super) fn read(arguments: &SimulateArguments) -> Result<Input, CommandError> {
        let limits = arguments.selection.limits();
        let source = match &arguments.trace {
            TraceSource::File(path) => JobSource::Trace(read_trace(path, arguments)?.within(limits)),
            TraceSource::Synthetic(jobs) => JobSource::Synthetic(*jobs),
        };
        let usual_load = match source {
            JobSource::Trace(_) => None,
            JobSource::Synthetic(_) => Some(LOAD_OF_SYNTHETIC),
        };
        let spec = &arguments.cluster.spec;
        let shared = |shape: MachineSpec| shape.shared_by(arguments.max_sharing);
        let shapes: Vec<MachineSpec> = spec.shapes().into_iter().map(shared).collect();
        let sensitivity = Sensitivity::read(arguments, &shapes)?;
        let measurements = interference::measurements(arguments, &shapes)?;
        let hardware = interference::hardware(arguments, measurements.as_ref())?;
        let knowledge = interference::knowledge(arguments, measurements.as_ref(), &hardware)?;
        let learning = arguments
            .learn_online
            .then(|| OnlineLearning::of(&arguments.predictor, measurements.as_ref(), &knowledge))
            .transpose()?;
        Ok(Input {
            knowledge,
            learning,
            sensitivity,
            hardware,
            measurements,
            shapes,
            devices: spec.devices(),
            cluster: arguments.cluster.written.clone(),
            load: arguments.load.or(usual_load),
            source,
            limits,
            jobs_per_window: arguments.selection.jobs_per_window(),
        })
    }

    /// Warnings about the trace and the tables.
    pub(super) fn remarks(&self) -> Vec<String> {
        let left_out = self.sensitivity.iter().flat_map(|it| it.left_out.iter().cloned());
        self.trace_remarks().into_iter().chain(left_out).collect()
    }

    fn trace_remarks(&self) -> Vec<String> {
        let JobSource::Trace(trace) = &self.source else { return Vec::new() };
        let reported = trace.skipped.iter().take(MAX_REPORTED_ROWS);
        let mut remarks: Vec<String> =
            reported.map(|row| format!("line {} is skipped: {}", row.line, row.why)).collect();
        if let Some(more) = trace.skipped.len().checked_sub(MAX_REPORTED_ROWS).filter(|more| *more > 0) {
            remarks.push(format!("{more} more lines are skipped; --strict makes this an error"));
        }
        remarks
    }

    /// The jobs of a sample, which begins after the first `start` jobs.
    pub(super) fn jobs(&self, start: usize, sample: Sample) -> Result<SeededWorkload, CommandError> {
        let seed = sample.seed;
        let trace = match &self.source {
            JobSource::Trace(trace) => trace.part(start, self.jobs_per_window),
            JobSource::Synthetic(jobs) => {
                synthetic(*jobs, seed).within(self.limits).part(start, self.jobs_per_window)
            }
        };
        let is_short = self.jobs_per_window.is_some_and(|jobs| trace.jobs.len() < jobs);
        if sample.window > 0 && is_short {
            return Err(no_more_jobs(sample.window, trace.jobs.len()));
        }
        let mut pace = Pace::on(&self.shapes);
        let measurements = self.measurements.as_ref();
        let fastest = |model: &_, devices| pace.fastest(model, devices);
        let made = workload(&trace, &self.shapes, measurements, seed, fastest);
        if made.jobs.is_empty() {
            return Err(self.no_jobs(made.left_out));
        }
        let workload = match self.load {
            Some(load) => made.with_load(load, self.devices),
            None => made,
        };
        let (workload, sensitivity) = match &self.sensitivity {
            Some(tables) => tables.apply(workload, &self.shapes, seed),
            None => (workload, SeededSensitivity::default()),
        };
        let load = workload.load(self.devices);
        Ok(SeededWorkload { shapes: self.shapes.clone(), load, workload, sensitivity })
    }

    fn no_jobs(&self, SkippedJobs { too_wide, too_large }: SkippedJobs) -> CommandError {
        let cluster = &self.cluster;
        let message = match too_wide + too_large {
            0 => "no jobs are left: --skip must be less than the number of jobs in the trace that --max-duration and \
                  --max-gpus leave"
                .to_owned(),
            _ => format!(
                "{cluster} cannot run any of the jobs: {too_wide} need more than its {} devices and {too_large} need more \
                 memory than a device has",
                self.devices
            ),
        };
        CommandError::new(CommandErrorKind::Impossible("no_jobs"), message)
    }
}

fn no_more_jobs(window: u32, left: usize) -> CommandError {
    let message = format!(
        "window {} has only {left} jobs: reduce --windows, --limit, --stride or --skip, so that all windows have as many",
        window + 1
    );
    CommandError::new(CommandErrorKind::Impossible("no_jobs"), message)
}

fn read_trace(path: &Path, arguments: &SimulateArguments) -> Result<Trace, CommandError> {
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
