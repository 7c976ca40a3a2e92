//! A newcomer on each of several GPUs, simulated until all jobs have ended. All GPUs go through a stage
//! together, so each stage costs one question to the predictor, however many GPUs there are.

use std::collections::BTreeMap;

use cohabit_types::JobId;

use super::contention_degree::ContentionDegree;
use super::timeline::{RemainingIterations, StageConditions, Timeline};
use crate::interference::{ColocationEstimate, InternedSet, LIKELY_TO_FIT, PredictionCache};
use crate::sharing::{FreeDevice, Jobs};

/// The number of iterations assumed for a job that does not state it.
const UNKNOWN_ITERATIONS: f64 = 1_000.0;
/// What to expect of a newcomer on one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MultiStageEstimate {
    /// The overall interference; 0 on an idle GPU.
    pub(crate) interference: f64,
    /// The slowdown of the newcomer, as a factor of at least 1.
    pub(crate) slowdown: f64,
    /// The number of neighbors at the start.
    pub(crate) neighbors: usize,
    /// Whether the memory of all jobs probably fits.
    pub(crate) fits: bool,
}

/// The jobs of one GPU, and what each has left to do.
#[derive(Debug)]
pub(crate) struct ResidentWork {
    together: InternedSet,
    left: Vec<RemainingIterations>,
}

/// The jobs of one GPU: the newcomer and then its neighbors, or the neighbors alone.
pub(crate) struct DeviceTimeline {
    /// All jobs at the start.
    together: InternedSet,
    timeline: Timeline,
    fits: bool,
}

/// What to expect of a newcomer on each of these devices.
pub(crate) fn estimate_all(
    newcomer: JobId,
    devices: &[FreeDevice<'_>],
    jobs: &mut Jobs,
    cache: &mut PredictionCache,
    contention: ContentionDegree,
) -> Vec<MultiStageEstimate> {
    let works = find_work(devices, jobs, cache);
    let mut timelines: Vec<DeviceTimeline> =
        works.iter().map(|work| work.timeline_with(newcomer, jobs)).collect();
    run_stages(&mut timelines, cache, contention);
    timelines.iter().map(DeviceTimeline::finish).collect()
}

/// Goes through all stages of all timelines.
pub(crate) fn run_stages(
    timelines: &mut [DeviceTimeline],
    cache: &mut PredictionCache,
    contention: ContentionDegree,
) {
    loop {
        let mut going_on: Vec<&mut DeviceTimeline> =
            timelines.iter_mut().filter(|timeline| timeline.is_running()).collect();
        if going_on.is_empty() {
            return;
        }
        let sets: Vec<InternedSet> = going_on.iter().map(|timeline| timeline.build_set()).collect();
        for (timeline, estimates) in going_on.iter_mut().zip(cache.predict(&sets)) {
            timeline.pass(&estimates, contention);
        }
    }
}

/// The jobs of these devices with what they have left. That of a running job follows from its present speed.
pub(crate) fn find_work(
    devices: &[FreeDevice<'_>],
    jobs: &mut Jobs,
    cache: &mut PredictionCache,
) -> Vec<ResidentWork> {
    let neighbors: Vec<Vec<JobId>> = devices.iter().map(|device| jobs.on(device.view)).collect();
    let running: Vec<Vec<JobId>> = neighbors.iter().map(|present| list_running(present, jobs)).collect();
    let sets: Vec<InternedSet> =
        devices.iter().zip(&running).map(|(device, present)| build_set(device, present, jobs)).collect();
    let paces = running.into_iter().zip(cache.predict(&sets)).map(|(running, estimates)| {
        running.into_iter().zip(estimates.iter().map(|it| it.slowdown)).collect::<BTreeMap<JobId, f64>>()
    });
    let estimates = devices.iter().zip(neighbors).zip(paces);
    estimates
        .map(|((device, neighbors), paces)| ResidentWork {
            left: neighbors.iter().map(|job| remaining_work(*job, &paces, jobs)).collect(),
            together: build_set(device, &neighbors, jobs),
        })
        .collect()
}

impl ResidentWork {
    /// The jobs if nobody joins them, before their first stage.
    pub(crate) fn timeline(&self) -> DeviceTimeline {
        DeviceTimeline {
            timeline: Timeline::new(self.left.clone()),
            together: self.together.clone(),
            fits: true,
        }
    }

    /// The same with a newcomer, which comes first.
    pub(crate) fn timeline_with(&self, newcomer: JobId, jobs: &mut Jobs) -> DeviceTimeline {
        let InternedSet { gpu, sharing, members } = &self.together;
        let own = remaining_work(newcomer, &BTreeMap::new(), jobs);
        let left = std::iter::once(own).chain(self.left.iter().copied()).collect();
        let member = jobs.member(newcomer, gpu);
        let members = std::iter::once(member).chain(members.iter().cloned()).collect();
        let together = InternedSet { gpu: gpu.clone(), sharing: *sharing, members };
        DeviceTimeline { timeline: Timeline::new(left), together, fits: true }
    }
}

/// The neighbors that run already.
fn list_running(neighbors: &[JobId], jobs: &Jobs) -> Vec<JobId> {
    neighbors.iter().copied().filter(|job| jobs.ends_in(*job).is_some()).collect()
}

/// These jobs on the GPU of this device, as a set for the predictor.
pub(crate) fn build_set(device: &FreeDevice<'_>, present: &[JobId], jobs: &mut Jobs) -> InternedSet {
    let gpu = jobs.kind_of(device.view);
    let members = present.iter().map(|job| jobs.member(*job, &gpu)).collect();
    InternedSet { gpu, sharing: device.view.sharing.mode, members }
}

/// What a job still has to do: everything or, for a running job, what its present speed leaves until its
/// end.
fn remaining_work(job: JobId, paces: &BTreeMap<JobId, f64>, jobs: &Jobs) -> RemainingIterations {
    let profile = jobs.profile(job);
    let iterations = profile.iterations.map_or(UNKNOWN_ITERATIONS, |it| it.max(1) as f64);
    let seconds_alone = profile.runtime.as_secs_f64().max(1e-6) / iterations;
    let pace = paces.get(&job).copied().unwrap_or(1.0);
    let left = jobs.ends_in(job).map(|left| {
        let alone = jobs.outlook(job).map_or(left.as_secs_f64() / pace, |it| it.rest.as_secs_f64());
        alone / seconds_alone
    });
    RemainingIterations { iterations: left.map_or(iterations, |left| left.round().max(1.0)), seconds_alone }
}

impl DeviceTimeline {
    fn is_running(&self) -> bool {
        !self.timeline.present().is_empty()
    }

    /// The set of the next stage.
    fn build_set(&self) -> InternedSet {
        let InternedSet { gpu, sharing, members } = &self.together;
        let members = self.timeline.present().iter().map(|job| members[*job].clone()).collect();
        InternedSet { gpu: gpu.clone(), sharing: *sharing, members }
    }

    fn pass(&mut self, estimates: &[ColocationEstimate], contention: ContentionDegree) {
        let beside = |(job, estimates): (&usize, &ColocationEstimate)| StageConditions {
            seconds: self.timeline.seconds_alone(*job) * estimates.slowdown,
            contention: contention.degree(&self.together.members[*job].member, estimates),
        };
        let beside: Vec<StageConditions> =
            self.timeline.present().iter().zip(estimates).map(beside).collect();
        // Memory is fullest in the first stage, with all jobs present.
        self.fits = self.fits && estimates.first().is_none_or(|estimates| estimates.fits >= LIKELY_TO_FIT);
        self.timeline.pass(&beside);
    }

    /// When each job of the start ends, in seconds from now.
    pub(crate) fn ends(&self) -> &[f64] {
        self.timeline.ends()
    }

    /// The result for the newcomer.
    fn finish(&self) -> MultiStageEstimate {
        let newcomer = 0;
        MultiStageEstimate {
            interference: self.timeline.interference(),
            slowdown: (self.ends()[newcomer] / self.timeline.alone(newcomer)).max(1.0),
            neighbors: self.together.members.len() - 1,
            fits: self.fits,
        }
    }
}
