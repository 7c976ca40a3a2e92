//! The devices to which a job's tasks may go, with what happens there to a task and to the jobs there.

use cohabit_types::JobId;

use super::candidate_nodes::NodeAllocation;
use crate::interference::{
    ColocationEstimate, GpuKind, GpuModel, InternedSet, LIKELY_TO_FIT, PredictionCache,
};
use crate::sharing::Jobs;
use crate::{DeviceView, EstimateBasis, NodeView};

/// A device for one task.
#[derive(Debug, Clone)]
pub(super) struct TaskDevice<'f> {
    pub(super) node: &'f NodeView,
    pub(super) device: &'f DeviceView,
    /// Which of the job's nodes it belongs to.
    pub(super) block: usize,
    /// The number of residents.
    pub(super) neighbors: usize,
    /// Seconds of an iteration of the job alone, where its model does not say what each task computes.
    pub(super) seconds_alone: f64,
    /// The slowdown of a task's iteration there, as a factor of at least 1.
    pub(super) slowdown: f64,
    /// Seconds by which the iterations of the residents become longer, in sum, because of a task.
    pub(super) hurt: f64,
    /// Whether their memory probably fits.
    pub(super) fits: bool,
}

/// Seconds assumed for an iteration of unknown length.
const USUAL_SECONDS: f64 = 0.3;

/// A device that the job fits, and its residents.
struct OccupiedDevice<'f> {
    node: &'f NodeView,
    device: &'f DeviceView,
    block: usize,
    gpu: GpuKind,
    present: Vec<JobId>,
}

/// All devices that the job fits on these nodes, node by node; the predictor is asked once.
pub(super) fn list_task_devices<'f>(
    newcomer: JobId,
    blocks: &[NodeAllocation<'f>],
    jobs: &mut Jobs,
    cache: &mut PredictionCache,
) -> Vec<TaskDevice<'f>> {
    let occupied = blocks.iter().enumerate().flat_map(|(block, it)| {
        let node = it.candidate.node;
        it.candidate.roomy.iter().map(move |device| (node, *device, block))
    });
    let occupied: Vec<OccupiedDevice<'f>> =
        occupied.map(|(node, device, block)| OccupiedDevice::of(node, device, block, jobs)).collect();
    let both =
        |device: &OccupiedDevice<'_>| [device.build_set(None, jobs), device.build_set(Some(newcomer), jobs)];
    let sets: Vec<InternedSet> = occupied.iter().flat_map(both).collect();
    let estimates = cache.predict(&sets);
    let estimates = estimates.chunks_exact(2).map(|both| (&both[0][..], &both[1][..]));
    occupied
        .iter()
        .zip(estimates)
        .map(|(device, (without, with))| device.task_device(newcomer, without, with, jobs))
        .collect()
}

impl<'f> OccupiedDevice<'f> {
    fn of(node: &'f NodeView, device: &'f DeviceView, block: usize, jobs: &Jobs) -> OccupiedDevice<'f> {
        OccupiedDevice { node, device, block, gpu: GpuKind::named(&device.model), present: jobs.on(device) }
    }

    /// The residents and, if given, the newcomer after them.
    fn build_set(&self, newcomer: Option<JobId>, jobs: &mut Jobs) -> InternedSet {
        let all = self.present.iter().copied().chain(newcomer);
        let members = all.map(|job| jobs.member(job, &self.gpu)).collect();
        InternedSet { gpu: self.gpu.clone(), sharing: self.device.sharing.mode, members }
    }

    /// From the estimates of the residents without the newcomer, and of all with it.
    fn task_device(
        &self,
        newcomer: JobId,
        without: &[ColocationEstimate],
        with: &[ColocationEstimate],
        jobs: &mut Jobs,
    ) -> TaskDevice<'f> {
        let longer = with.iter().zip(without).map(|(with, without)| with.slowdown - without.slowdown);
        let hurt = self.present.iter().zip(longer);
        let estimates = with.last();
        TaskDevice {
            node: self.node,
            device: self.device,
            block: self.block,
            neighbors: self.present.len(),
            hurt: hurt.map(|(job, longer)| seconds_alone(*job, &self.gpu, jobs) * longer).sum(),
            seconds_alone: seconds_alone(newcomer, &self.gpu, jobs),
            slowdown: estimates.map_or(1.0, |estimates| estimates.slowdown),
            fits: estimates.is_none_or(|estimates| estimates.fits >= LIKELY_TO_FIT),
        }
    }
}

/// Seconds of one iteration of a job alone: as measured, or as expected of the whole job, by the speed of
/// the GPU.
fn seconds_alone(job: JobId, gpu: &GpuKind, jobs: &mut Jobs) -> f64 {
    if let Some(rate) = jobs.member(job, gpu).member.solo.rate.filter(|rate| *rate > 0.0) {
        return 1.0 / rate;
    }
    let profile = jobs.profile(job);
    let expected = match (profile.basis, profile.iterations) {
        (EstimateBasis::Estimate, Some(iterations @ 1..)) => {
            profile.runtime.as_secs_f64() / iterations as f64
        }
        (EstimateBasis::Estimate | EstimateBasis::Guess, _) => USUAL_SECONDS,
    };
    expected * GpuModel::FALLBACK.sustained() / gpu.model().unwrap_or(GpuModel::FALLBACK).sustained()
}
