//! A newcomer on each of several GPUs, simulated until all jobs have ended. All GPUs go through a stage
//! together, so each stage costs one question to the predictor, however many GPUs there are.

use std::collections::BTreeMap;

use cohabit_types::JobId;

use super::contention_degree::ContentionDegree;
use super::timeline::{RemainingIterations, StageConditions, Timeline};
use crate::interference::{ColocationEstimate, GpuKind, InternedSet, PredictionCache};
use crate::sharing::{FreeDevice, Jobs};

/// The number of iterations assumed for a job that does not state it.
const UNKNOWN_ITERATIONS: f64 = 1_000.0;
/// A set that is less likely to fit is chosen only if there is no other.
const LIKELY_TO_FIT: f64 = 0.5;

/// What to expect of a newcomer on one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MultiStageEstimate {
    /// The overall interference; 0 on an idle GPU.
    pub(crate) interference: f64,
    /// The slowdown of the newcomer, as a factor of at least 1.
    pub(crate) slowdown: f64,
    /// The number of neighbors at the start.
    pub(crate) neighbours: usize,
    /// Whether the memory of all jobs probably fits.
    pub(crate) fits: bool,
}

/// The jobs of one GPU: the newcomer and then its neighbors, or the neighbors alone.
pub(crate) struct DeviceTimeline {
    /// All jobs at the start.
    together: InternedSet,
    timeline: Timeline,
    fits: bool,
}

/// What to expect of a newcomer on each of these devices.
pub(crate) fn expected(
    newcomer: JobId,
    seats: &[FreeDevice<'_>],
    jobs: &mut Jobs,
    asked: &mut PredictionCache,
    contention: ContentionDegree,
) -> Vec<MultiStageEstimate> {
    let mut scenes = build_with_newcomer(newcomer, seats, jobs, asked);
    run_stages(&mut scenes, asked, contention);
    scenes.iter().map(DeviceTimeline::expected).collect()
}

/// The newcomer and its neighbors on each device, before the first stage.
pub(crate) fn build_with_newcomer(
    newcomer: JobId,
    seats: &[FreeDevice<'_>],
    jobs: &mut Jobs,
    asked: &mut PredictionCache,
) -> Vec<DeviceTimeline> {
    scenes(Some(newcomer), seats, jobs, asked)
}

/// The neighbors on each device if no job joins them.
pub(crate) fn build_without_newcomer(
    seats: &[FreeDevice<'_>],
    jobs: &mut Jobs,
    asked: &mut PredictionCache,
) -> Vec<DeviceTimeline> {
    scenes(None, seats, jobs, asked)
}

/// Goes through all stages of all timelines.
pub(crate) fn run_stages(
    scenes: &mut [DeviceTimeline],
    asked: &mut PredictionCache,
    contention: ContentionDegree,
) {
    loop {
        let mut going_on: Vec<&mut DeviceTimeline> =
            scenes.iter_mut().filter(|scene| scene.goes_on()).collect();
        if going_on.is_empty() {
            return;
        }
        let companies: Vec<InternedSet> = going_on.iter().map(|scene| scene.company()).collect();
        for (scene, told) in going_on.iter_mut().zip(asked.predict(&companies)) {
            scene.pass(&told, contention);
        }
    }
}

/// The timelines before their first stage. What is left of a running job follows from its present speed.
fn scenes(
    newcomer: Option<JobId>,
    seats: &[FreeDevice<'_>],
    jobs: &mut Jobs,
    asked: &mut PredictionCache,
) -> Vec<DeviceTimeline> {
    let neighbours: Vec<Vec<JobId>> = seats.iter().map(|seat| jobs.on(seat.device)).collect();
    let running: Vec<Vec<JobId>> = neighbours.iter().map(|present| running(present, jobs)).collect();
    let companies: Vec<InternedSet> =
        seats.iter().zip(&running).map(|(seat, present)| company(seat, present, jobs)).collect();
    let paces = running.into_iter().zip(asked.predict(&companies)).map(|(running, told)| {
        running.into_iter().zip(told.iter().map(|it| it.slowdown)).collect::<BTreeMap<JobId, f64>>()
    });
    let told = seats.iter().zip(neighbours).zip(paces);
    told.map(|((seat, neighbours), paces)| {
        let together: Vec<JobId> = newcomer.into_iter().chain(neighbours).collect();
        DeviceTimeline {
            timeline: Timeline::new(together.iter().map(|job| work(*job, &paces, jobs)).collect()),
            together: company(seat, &together, jobs),
            fits: true,
        }
    })
    .collect()
}

/// The neighbors that run already.
fn running(neighbours: &[JobId], jobs: &Jobs) -> Vec<JobId> {
    neighbours.iter().copied().filter(|job| jobs.ends_in(*job).is_some()).collect()
}

/// These jobs on the GPU of this device, as a set for the predictor.
pub(crate) fn company(seat: &FreeDevice<'_>, present: &[JobId], jobs: &mut Jobs) -> InternedSet {
    let gpu = GpuKind::named(&seat.device.model);
    let members = present.iter().map(|job| jobs.member(*job, &gpu)).collect();
    InternedSet { gpu, sharing: seat.device.sharing.mode, members }
}

/// What a job still has to do: everything or, for a running job, what its present speed leaves until its
/// end.
fn work(job: JobId, paces: &BTreeMap<JobId, f64>, jobs: &Jobs) -> RemainingIterations {
    let profile = jobs.profile(job);
    let iterations = profile.iterations.map_or(UNKNOWN_ITERATIONS, |it| it.max(1) as f64);
    let seconds_alone = profile.runtime.as_secs_f64().max(1e-6) / iterations;
    let pace = paces.get(&job).copied().unwrap_or(1.0);
    let left = jobs.ends_in(job).map(|left| left.as_secs_f64() / pace / seconds_alone);
    RemainingIterations { iterations: left.map_or(iterations, |left| left.round().max(1.0)), seconds_alone }
}

impl DeviceTimeline {
    fn goes_on(&self) -> bool {
        !self.timeline.present().is_empty()
    }

    /// The set of the next stage.
    fn company(&self) -> InternedSet {
        let InternedSet { gpu, sharing, members } = &self.together;
        let members = self.timeline.present().iter().map(|job| members[*job].clone()).collect();
        InternedSet { gpu: gpu.clone(), sharing: *sharing, members }
    }

    fn pass(&mut self, told: &[ColocationEstimate], contention: ContentionDegree) {
        let beside = |(job, told): (&usize, &ColocationEstimate)| StageConditions {
            seconds: self.timeline.seconds_alone(*job) * told.slowdown,
            contention: contention.degree(&self.together.members[*job].member, told),
        };
        let beside: Vec<StageConditions> = self.timeline.present().iter().zip(told).map(beside).collect();
        // Memory is fullest in the first stage, with all jobs present.
        self.fits = self.fits && told.first().is_none_or(|told| told.fits >= LIKELY_TO_FIT);
        self.timeline.pass(&beside);
    }

    /// When each job of the start ends, in seconds from now.
    pub(crate) fn ends(&self) -> &[f64] {
        self.timeline.ends()
    }

    /// The result for the newcomer.
    fn expected(&self) -> MultiStageEstimate {
        let newcomer = 0;
        MultiStageEstimate {
            interference: self.timeline.interference(),
            slowdown: (self.ends()[newcomer] / self.timeline.alone(newcomer)).max(1.0),
            neighbours: self.together.members.len() - 1,
            fits: self.fits,
        }
    }
}
