//! What a simulation starts from: the trace, the cluster, and the jobs that a seed makes of them.

use std::fs::File;
use std::path::Path;

use cohabit_sim::trace::{Reading, Strictness, Throughputs, Trace, read, synthetic};
use cohabit_sim::workload::{LeftOut, Measurements, Pace, Workload, workload};
use cohabit_sim::{Hardware, Knowledge, Shape};

use super::judge;
use crate::arguments::{SimulateArguments, TraceSource};
use crate::failure::{Failure, Trouble};

/// Where synthetic jobs arrive as fast as if nobody said how fast.
const LOAD_OF_SYNTHETIC: f64 = 0.9;
/// So many rows that were left out are told of one by one.
const ROWS_TOLD: usize = 3;

/// Everything that does not depend on the seed.
pub(super) struct Input {
    shapes: Vec<Shape>,
    devices: u64,
    cluster: String,
    load: Option<f64>,
    source: Source,
    /// What jobs on one device train.
    measurements: Option<Measurements>,
    pub(super) hardware: Hardware,
    pub(super) knowledge: Knowledge,
}

enum Source {
    /// Read, and cut to what was asked for.
    Trace(Trace),
    /// To be drawn: so many, without the first of them.
    Synthetic { jobs: usize, skip: usize },
}

/// What a seed makes of it.
pub(super) struct Jobs {
    pub(super) shapes: Vec<Shape>,
    pub(super) workload: Workload,
    /// Of ideally placed jobs; none where all arrive at once.
    pub(super) load: Option<f64>,
}

impl Input {
    /// Reads the trace.
    pub(super) fn read(arguments: &SimulateArguments) -> Result<Input, Failure> {
        let limit = arguments.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let source = match &arguments.trace {
            TraceSource::File(path) => {
                Source::Trace(read_trace(path, arguments)?.part(arguments.skip, limit))
            }
            TraceSource::Synthetic(jobs) => {
                let end = limit.map_or(*jobs, |limit| arguments.skip.saturating_add(limit).min(*jobs));
                Source::Synthetic { jobs: end, skip: arguments.skip }
            }
        };
        let usual_load = match source {
            Source::Trace(_) => None,
            Source::Synthetic { .. } => Some(LOAD_OF_SYNTHETIC),
        };
        let spec = &arguments.cluster.spec;
        let shared = |shape: Shape| shape.shared_by(arguments.max_sharing);
        let shapes: Vec<Shape> = spec.shapes().into_iter().map(shared).collect();
        let measurements = judge::measurements(arguments, &shapes)?;
        let hardware = judge::hardware(arguments, measurements.as_ref())?;
        Ok(Input {
            knowledge: judge::knowledge(arguments, measurements.as_ref(), &hardware)?,
            hardware,
            measurements,
            shapes,
            devices: spec.devices(),
            cluster: arguments.cluster.written.clone(),
            load: arguments.load.or(usual_load),
            source,
        })
    }

    /// What people should know of the trace before they believe in results.
    pub(super) fn remarks(&self) -> Vec<String> {
        let Source::Trace(trace) = &self.source else { return Vec::new() };
        let told = trace.skipped.iter().take(ROWS_TOLD);
        let mut remarks: Vec<String> =
            told.map(|row| format!("line {} is left out: {}", row.line, row.why)).collect();
        if let Some(more) = trace.skipped.len().checked_sub(ROWS_TOLD).filter(|more| *more > 0) {
            remarks.push(format!("{more} more lines are left out; --strict makes them an error"));
        }
        remarks
    }

    /// The jobs of this seed.
    pub(super) fn jobs(&self, seed: u64) -> Result<Jobs, Failure> {
        let drawn;
        let trace = match &self.source {
            Source::Trace(trace) => trace,
            Source::Synthetic { jobs, skip } => {
                drawn = synthetic(*jobs, seed).part(*skip, None);
                &drawn
            }
        };
        let mut pace = Pace::on(&self.shapes);
        let measurements = self.measurements.as_ref();
        let fastest = |model: &_, devices| pace.fastest(model, devices);
        let made = workload(trace, &self.shapes, measurements, seed, fastest);
        if made.jobs.is_empty() {
            return Err(self.no_jobs(made.left_out));
        }
        let workload = match self.load {
            Some(load) => made.with_load(load, self.devices),
            None => made,
        };
        Ok(Jobs { shapes: self.shapes.clone(), load: workload.load(self.devices), workload })
    }

    fn no_jobs(&self, LeftOut { too_wide, too_large }: LeftOut) -> Failure {
        let cluster = &self.cluster;
        let message = match too_wide + too_large {
            0 => "no job is left of the trace: take less than its length for --skip".to_owned(),
            _ => format!(
                "{cluster} can run none of the jobs: {too_wide} need more than its {} devices and {too_large} more memory \
                 than one has",
                self.devices
            ),
        };
        Failure::new(Trouble::Impossible("no_jobs"), message)
    }
}

fn read_trace(path: &Path, arguments: &SimulateArguments) -> Result<Trace, Failure> {
    let throughputs = match &arguments.throughputs {
        Some(table) => Some(
            Throughputs::read(open(table)?, arguments.throughputs_of.clone())
                .map_err(|error| unusable(table, &error))?,
        ),
        None => None,
    };
    let strictness = if arguments.strict { Strictness::Strict } else { Strictness::Lenient };
    let reading = Reading { format: arguments.format, strictness, throughputs };
    read(open(path)?, &reading).map_err(|error| unusable(path, &error))
}

pub(super) fn open(path: &Path) -> Result<File, Failure> {
    File::open(path)
        .map_err(|error| Failure::new(Trouble::NotFound, format!("cannot open {}: {error}", path.display())))
}

fn unusable(path: &Path, error: &cohabit_sim::trace::TraceError) -> Failure {
    Failure::new(Trouble::Impossible("unusable_trace"), format!("{}: {error}", path.display()))
}
