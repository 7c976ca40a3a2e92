//! The devices that a job's tasks may go to, with what becomes there of a task and of those who are there.

use cohabit_types::JobId;

use super::candidate_nodes::NodeAllocation;
use crate::interference::{ColocationEstimate, GpuKind, GpuModel, InternedSet, PredictionCache};
use crate::sharing::Jobs;
use crate::{DeviceView, EstimateBasis, NodeView};

/// A device for one task.
#[derive(Debug, Clone)]
pub(super) struct TaskDevice<'f> {
    pub(super) node: &'f NodeView,
    pub(super) device: &'f DeviceView,
    /// Which of the job's nodes it belongs to.
    pub(super) block: usize,
    /// How many run there.
    pub(super) neighbours: usize,
    /// Seconds of an iteration of the job alone, where its model does not say what each task computes.
    pub(super) seconds_alone: f64,
    /// How many times as long as alone an iteration of a task takes there.
    pub(super) slowdown: f64,
    /// Seconds by which the iterations of those there get longer together for a task's sake.
    pub(super) hurt: f64,
    /// Whether their memory probably suffices.
    pub(super) fits: bool,
}

/// A set that fits less likely than this is no choice while there is another.
const LIKELY_TO_FIT: f64 = 0.5;
/// Seconds of an iteration of which nobody knows how long it takes.
const USUAL_SECONDS: f64 = 0.3;

/// A device with room, and who is there.
struct OccupiedDevice<'f> {
    node: &'f NodeView,
    device: &'f DeviceView,
    block: usize,
    gpu: GpuKind,
    present: Vec<JobId>,
}

/// All devices with room on these nodes, node by node; what becomes of whom is one question.
pub(super) fn sites<'f>(
    newcomer: JobId,
    blocks: &[NodeAllocation<'f>],
    jobs: &mut Jobs,
    asked: &mut PredictionCache,
) -> Vec<TaskDevice<'f>> {
    let places = blocks.iter().enumerate().flat_map(|(block, it)| {
        let node = it.candidate.node;
        it.candidate.roomy.iter().map(move |device| (node, *device, block))
    });
    let places: Vec<OccupiedDevice<'f>> =
        places.map(|(node, device, block)| OccupiedDevice::of(node, device, block, jobs)).collect();
    let both = |place: &OccupiedDevice<'_>| [place.company(None, jobs), place.company(Some(newcomer), jobs)];
    let companies: Vec<InternedSet> = places.iter().flat_map(both).collect();
    let told = asked.predict(&companies);
    let told = told.chunks_exact(2).map(|both| (&both[0][..], &both[1][..]));
    places
        .iter()
        .zip(told)
        .map(|(place, (without, with))| place.site(newcomer, without, with, jobs))
        .collect()
}

impl<'f> OccupiedDevice<'f> {
    fn of(node: &'f NodeView, device: &'f DeviceView, block: usize, jobs: &Jobs) -> OccupiedDevice<'f> {
        OccupiedDevice { node, device, block, gpu: GpuKind::named(&device.model), present: jobs.on(device) }
    }

    /// Those who are there, and perhaps the newcomer after them.
    fn company(&self, newcomer: Option<JobId>, jobs: &mut Jobs) -> InternedSet {
        let all = self.present.iter().copied().chain(newcomer);
        let members = all.map(|job| jobs.member(job, &self.gpu)).collect();
        InternedSet { gpu: self.gpu.clone(), sharing: self.device.sharing.mode, members }
    }

    /// By what becomes of those there without the newcomer, and of all with it.
    fn site(
        &self,
        newcomer: JobId,
        without: &[ColocationEstimate],
        with: &[ColocationEstimate],
        jobs: &mut Jobs,
    ) -> TaskDevice<'f> {
        let longer = with.iter().zip(without).map(|(with, without)| with.slowdown - without.slowdown);
        let hurt = self.present.iter().zip(longer);
        let told = with.last();
        TaskDevice {
            node: self.node,
            device: self.device,
            block: self.block,
            neighbours: self.present.len(),
            hurt: hurt.map(|(job, longer)| seconds_alone(*job, &self.gpu, jobs) * longer).sum(),
            seconds_alone: seconds_alone(newcomer, &self.gpu, jobs),
            slowdown: told.map_or(1.0, |told| told.slowdown),
            fits: told.is_none_or(|told| told.fits >= LIKELY_TO_FIT),
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
    let expected = match (profile.ground, profile.iterations) {
        (EstimateBasis::Estimate, Some(iterations @ 1..)) => {
            profile.runtime.as_secs_f64() / iterations as f64
        }
        (EstimateBasis::Estimate | EstimateBasis::Guess, _) => USUAL_SECONDS,
    };
    expected * GpuModel::FALLBACK.sustained() / gpu.model().unwrap_or(GpuModel::FALLBACK).sustained()
}
