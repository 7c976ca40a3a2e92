//! The rows of an observation (section 3): nodes, jobs of the window, and jobs on nodes.

use cohabit_types::{Bytes, GpuRequest, HostShare, Span, Time};

use super::job_places::JobPlace;
use super::observation::{PAIR_FEATURES, SERVER_FEATURES, TASK_FEATURES};
use crate::interference::GpuModel;
use crate::sensitivity::JobCurve;
use crate::{NodeView, PendingJob, Profile};

/// The features that tell of interference, by their places in the rows of servers, tasks and pairs.
pub const INTERFERENCE_FEATURES: (&[usize], &[usize], &[usize]) = (&[3], &[12], &[1, 2]);

/// What is known of the running jobs on a node.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ResidentFigures {
    /// What they hold above their rightful shares.
    pub(super) excess: HostShare,
    /// Mean speed that they would gain by one more core, and by one more GiB.
    pub(super) gain: (f64, f64),
    /// The time until the next of them is expected to end.
    pub(super) next_end: Option<Span>,
    /// Their mean predicted slowdown, at least 1.
    pub(super) slowdown: f64,
}

/// The features of a node.
pub(super) fn server_row(node: &NodeView, figures: &ResidentFigures) -> [f32; SERVER_FEATURES] {
    let devices = node.devices.len().max(1) as f64;
    let residents: Vec<f64> = node.devices.iter().map(|device| device.jobs.len() as f64).collect();
    let free: f64 = node.devices.iter().map(|device| device.free.as_f64()).sum();
    let (all, left) = (node.host(), node.host_free());
    let cpus = |share: HostShare| f64::from(share.cpus) / f64::from(all.cpus.max(1));
    let memory = |share: HostShare| share.memory.0 as f64 / all.memory.0.max(1) as f64;
    let mut row = [0.0; SERVER_FEATURES];
    let figures = [
        free / devices,
        residents.iter().sum::<f64>() / devices,
        residents.iter().copied().fold(0.0, f64::max),
        figures.slowdown,
        cpus(left),
        memory(left),
        cpus(figures.excess),
        memory(figures.excess),
        figures.gain.0,
        figures.gain.1,
        figures.next_end.map_or(0.0, |span| span.as_secs_f64().ln_1p()),
        f64::from(node.jobs) / devices,
    ];
    let gpu = node.devices.first().and_then(|device| GpuModel::by_name(&device.model));
    let sheet = sheet(&gpu.unwrap_or(GpuModel::FALLBACK));
    for (to, from) in row.iter_mut().zip(figures.into_iter().chain(sheet)) {
        *to = from as f32;
    }
    row
}

/// Figures of a GPU's data sheet, relative to a V100.
fn sheet(gpu: &GpuModel) -> [f64; 6] {
    [
        gpu.memory.0 as f64 / 16e9,
        gpu.peak / 15.7e12,
        gpu.bandwidth / 900e9,
        f64::from(gpu.multiprocessors) / 80.0,
        f64::from(gpu.tensor_cores) / 640.0,
        f64::from(gpu.memory_clock) / 877.0,
    ]
}

/// What is known of a job of the window besides what it says.
pub(super) struct TaskFigures<'f> {
    pub(super) profile: &'f Profile,
    pub(super) curve: Option<&'f JobCurve>,
    /// The proportional share for one device of a typical node.
    pub(super) proportional: HostShare,
    pub(super) utilization: f64,
    /// Memory of a device of a typical node.
    pub(super) device_memory: f64,
    /// Its place in the window by arrival, 0 to 1.
    pub(super) position: f64,
}

/// The features of a job of the window.
pub(super) fn task_row(job: &PendingJob, figures: &TaskFigures<'_>, now: Time) -> [f32; TASK_FEATURES] {
    const GIB: u64 = 1 << 30;
    let devices = job.demand.devices();
    let each = |cores: u32, memory: u64| HostShare {
        cpus: cores * devices.max(1),
        memory: Bytes(memory.saturating_mul(u64::from(devices.max(1)))),
    };
    let speed = |share: HostShare| figures.curve.map_or(1.0, |curve| curve.speed(share));
    let cores = figures.proportional.cpus.max(1);
    let (ample, least) = (u64::MAX >> 8, job.demand.memory.0 / u64::from(devices.max(1)));
    let part = if let GpuRequest::Part(share) = job.demand.gpus { share.as_f64() } else { 1.0 };
    let memory = job.demand.gpu_memory.map_or(0.0, |memory| memory.0 as f64);
    let figures = [
        f64::from(devices) / 8.0,
        (figures.profile.work() as f64 / 1e9).ln_1p(),
        now.since(job.eligible_at).as_secs_f64().ln_1p(),
        now.since(job.submitted_at).as_secs_f64().ln_1p(),
        speed(each(1, ample)),
        speed(each(3, ample)),
        speed(each(6, ample)),
        speed(each(12, ample)),
        speed(each(cores, least.max(1))),
        speed(each(cores, 62 * GIB + GIB / 2)),
        speed(each(cores, 125 * GIB)),
        speed(each(cores, 250 * GIB)),
        figures.utilization,
        memory / figures.device_memory.max(1.0),
        part,
        figures.position,
    ];
    figures.map(|figure| figure as f32)
}

/// The features of a job on a node.
pub(super) fn pair_row(place: Option<&JobPlace>) -> [f32; PAIR_FEATURES] {
    place.map_or([0.0; PAIR_FEATURES], |place| {
        [1.0, place.slowdown as f32, place.added as f32, (1.0 / place.slowness.max(1e-3)) as f32]
    })
}
