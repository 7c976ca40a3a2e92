//! A newcomer on each of several GPUs, played through to the end, stage by stage on all of them at once: each
//! stage costs one question to the predictor, however many GPUs there are.

use std::collections::BTreeMap;

use cohabit_proto::JobId;

use super::contention::Contention;
use super::timeline::{Beside, Timeline, Work};
use crate::interference::{Asked, Colocated, Company, GpuKind};
use crate::shared_place::{Jobs, Seat};

/// So many iterations a job is taken to have of which nobody knows how many it has.
const UNKNOWN_ITERATIONS: f64 = 1_000.0;
/// A set that fits less likely than this is no choice while there is another.
const LIKELY_TO_FIT: f64 = 0.5;

/// What is expected of a newcomer on one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Expected {
    /// The overall interference; 0 on an idle GPU.
    pub(super) interference: f64,
    /// How many times as long as alone the newcomer takes.
    pub(super) slowdown: f64,
    /// Neighbours at the start.
    pub(super) neighbours: usize,
    /// Whether their memory probably fits.
    pub(super) fits: bool,
}

/// The newcomer among the neighbours of one GPU.
struct Scene {
    /// At the start, the newcomer first.
    together: Company,
    timeline: Timeline,
    /// Seconds that the newcomer takes alone.
    alone: f64,
    fits: bool,
}

/// What to expect of a newcomer on each of these.
pub(super) fn expected(
    newcomer: JobId,
    seats: &[Seat<'_>],
    jobs: &mut Jobs,
    asked: &mut Asked,
    contention: Contention,
) -> Vec<Expected> {
    let mut scenes = opened(newcomer, seats, jobs, asked);
    loop {
        let mut going_on: Vec<&mut Scene> = scenes.iter_mut().filter(|scene| scene.goes_on()).collect();
        if going_on.is_empty() {
            return scenes.iter().map(Scene::expected).collect();
        }
        let companies: Vec<Company> = going_on.iter().map(|scene| scene.company()).collect();
        for (scene, told) in going_on.iter_mut().zip(asked.predict(&companies)) {
            scene.pass(&told, contention);
        }
    }
}

/// The scenes before their first stage.
fn opened(newcomer: JobId, seats: &[Seat<'_>], jobs: &mut Jobs, asked: &mut Asked) -> Vec<Scene> {
    let neighbours: Vec<Vec<JobId>> = seats.iter().map(|seat| jobs.on(seat.device)).collect();
    let running: Vec<Vec<JobId>> = neighbours.iter().map(|present| running(present, jobs)).collect();
    let companies: Vec<Company> =
        seats.iter().zip(&running).map(|(seat, present)| company(seat, present, jobs)).collect();
    let paces = running.into_iter().zip(asked.predict(&companies)).map(|(running, told)| {
        running.into_iter().zip(told.iter().map(|it| it.slowdown)).collect::<BTreeMap<JobId, f64>>()
    });
    let told = seats.iter().zip(neighbours).zip(paces);
    told.map(|((seat, neighbours), paces)| {
        let together: Vec<JobId> = [newcomer].into_iter().chain(neighbours).collect();
        Scene::new(
            company(seat, &together, jobs),
            together.iter().map(|job| work(*job, &paces, jobs)).collect(),
        )
    })
    .collect()
}

/// Those that have been running till now.
fn running(neighbours: &[JobId], jobs: &Jobs) -> Vec<JobId> {
    neighbours.iter().copied().filter(|job| jobs.ends_in(*job).is_some()).collect()
}

fn company(seat: &Seat<'_>, present: &[JobId], jobs: &mut Jobs) -> Company {
    let gpu = GpuKind::named(&seat.device.model);
    let members = present.iter().map(|job| jobs.member(*job, &gpu)).collect();
    Company { gpu, sharing: seat.device.sharing.mode, members }
}

/// What a job still has to do: all of it, or, where it runs, what its present pace leaves until its end.
fn work(job: JobId, paces: &BTreeMap<JobId, f64>, jobs: &Jobs) -> Work {
    let profile = jobs.profile(job);
    let iterations = profile.iterations.map_or(UNKNOWN_ITERATIONS, |it| it.max(1) as f64);
    let seconds_alone = profile.runtime.as_secs_f64().max(1e-6) / iterations;
    let pace = paces.get(&job).copied().unwrap_or(1.0);
    let left = jobs.ends_in(job).map(|left| left.as_secs_f64() / pace / seconds_alone);
    Work { iterations: left.map_or(iterations, |left| left.round().max(1.0)), seconds_alone }
}

impl Scene {
    fn new(together: Company, work: Vec<Work>) -> Scene {
        let alone = work[0].iterations * work[0].seconds_alone;
        Scene { together, timeline: Timeline::new(work), alone, fits: true }
    }

    fn goes_on(&self) -> bool {
        !self.timeline.present().is_empty()
    }

    /// Those of the next stage.
    fn company(&self) -> Company {
        let Company { gpu, sharing, members } = &self.together;
        let members = self.timeline.present().iter().map(|job| members[*job].clone()).collect();
        Company { gpu: gpu.clone(), sharing: *sharing, members }
    }

    fn pass(&mut self, told: &[Colocated], contention: Contention) {
        let beside = |(job, told): (&usize, &Colocated)| Beside {
            seconds: self.timeline.seconds_alone(*job) * told.slowdown,
            contention: contention.degree(&self.together.members[*job].member, told),
        };
        let beside: Vec<Beside> = self.timeline.present().iter().zip(told).map(beside).collect();
        // Memory is fullest in the first stage, when all are there.
        self.fits = self.fits && told.first().is_none_or(|told| told.fits >= LIKELY_TO_FIT);
        self.timeline.pass(&beside);
    }

    fn expected(&self) -> Expected {
        Expected {
            interference: self.timeline.interference(),
            slowdown: (self.timeline.ends_in(0) / self.alone).max(1.0),
            neighbours: self.together.members.len() - 1,
            fits: self.fits,
        }
    }
}
