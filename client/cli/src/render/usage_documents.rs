//! The JSON of what jobs did with their GPUs, and of a job with it.

use cohabit_client::types::{DeviceId, JobId, JobRecord, UsageRecord};
use serde::Serialize;

use cohabit_documents::jobs::JobDocument;

/// A job as `show` describes it.
#[derive(Debug, Serialize)]
pub(crate) struct ShownJobDocument {
    #[serde(flatten)]
    job: JobDocument,
    /// A GPU of a rank each.
    usage: Vec<UsageDocument>,
}

/// Several of them.
#[derive(Debug, Serialize)]
pub(crate) struct ShownJobListDocument {
    pub(crate) jobs: Vec<ShownJobDocument>,
}

#[derive(Debug, Serialize)]
struct UsageDocument {
    attempt: u32,
    rank: u32,
    node: String,
    device: DeviceId,
    share: f64,
    live: bool,
    held_s: f64,
    measured_s: f64,
    busy_s: f64,
    idle_s: f64,
    memory: Option<u64>,
    memory_of_device: u64,
    energy_wh: Option<f64>,
    shared: bool,
    curve: CurveDocument,
}

/// Means over spans of equal length, in percent.
#[derive(Debug, Serialize)]
struct CurveDocument {
    step_s: f64,
    utilization: Vec<Option<u8>>,
    memory: Vec<Option<u8>>,
}

impl ShownJobDocument {
    /// The job with those of these records that are its own.
    pub(crate) fn new(job: &JobRecord, usage: &[UsageRecord]) -> ShownJobDocument {
        let id: JobId = job.id;
        let own = usage.iter().filter(|it| it.rank.attempt.job == id);
        ShownJobDocument { job: JobDocument::from(job), usage: own.map(UsageDocument::from).collect() }
    }
}

impl From<&UsageRecord> for UsageDocument {
    fn from(record: &UsageRecord) -> UsageDocument {
        let usage = &record.usage;
        let points = || usage.curve.points.iter();
        UsageDocument {
            attempt: record.rank.attempt.attempt,
            rank: record.rank.rank,
            node: record.node.clone(),
            device: usage.device.clone(),
            share: record.share.as_f64(),
            live: record.live,
            held_s: usage.held.as_secs_f64(),
            measured_s: usage.measured.as_secs_f64(),
            busy_s: usage.busy.as_secs_f64(),
            idle_s: usage.idle.as_secs_f64(),
            memory: usage.memory.map(|it| it.0),
            memory_of_device: usage.capacity.0,
            energy_wh: usage.energy,
            shared: usage.shared,
            curve: CurveDocument {
                step_s: usage.curve.step.as_secs_f64(),
                utilization: points().map(|it| it.utilization).collect(),
                memory: points().map(|it| it.memory).collect(),
            },
        }
    }
}
