//! The jobs that a choice among shared devices has to know: those that wait, and those that are neighbours.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_proto::{Demand, Gpus, JobId, Span, Time};

use crate::ends::expected_end;
use crate::interference::{GpuKind, Known, SoloBook, USUAL_BUSY, member_of};
use crate::{Change, DeviceView, JobTraits, PendingJob, Profile, RunningJob};

/// All jobs that take a part of a device.
#[derive(Debug)]
pub(crate) struct Jobs {
    solos: Arc<SoloBook>,
    now: Time,
    known: BTreeMap<JobId, Book>,
}

/// What is known of one job.
#[derive(Debug)]
struct Book {
    demand: Demand,
    traits: Arc<JobTraits>,
    /// Once it runs.
    running: Option<RunningJob>,
    /// What it is on each make of GPU on which anybody thought of it.
    members: BTreeMap<GpuKind, Arc<Known>>,
}

impl Jobs {
    pub(crate) fn new(solos: Arc<SoloBook>) -> Jobs {
        Jobs { solos, now: Time::EPOCH, known: BTreeMap::new() }
    }

    /// Other measurements of jobs alone are known from now on.
    pub(crate) fn know(&mut self, solos: Arc<SoloBook>) {
        self.solos = solos;
        self.known.values_mut().for_each(|book| book.members.clear());
    }

    /// Takes note of changes.
    pub(crate) fn learn(&mut self, now: Time, changes: &[Change]) {
        self.now = now;
        for change in changes {
            match change {
                Change::Pending(job) => self.note(job.id, &job.demand, &job.traits, None),
                Change::Running(job) => self.note(job.id, &job.demand, &job.traits, Some(job.clone())),
                Change::Gone(job) => drop(self.known.remove(job)),
                Change::Node(_) | Change::NodeGone(_) => {}
            }
        }
    }

    fn note(&mut self, job: JobId, demand: &Demand, traits: &Arc<JobTraits>, running: Option<RunningJob>) {
        let Gpus::Part(_) = demand.gpus else { return };
        let new =
            || Book { demand: *demand, traits: traits.clone(), running: None, members: BTreeMap::new() };
        self.known.entry(job).or_insert_with(new).running = running;
    }

    /// Takes note of a job that is to be placed, if nobody told of it.
    pub(crate) fn welcome(&mut self, job: &PendingJob) {
        if !self.known.contains_key(&job.id) {
            self.note(job.id, &job.demand, &job.traits, None);
        }
    }

    /// Those on a device; one that nobody told of is not counted.
    pub(crate) fn on(&self, device: &DeviceView) -> Vec<JobId> {
        device.residents.iter().copied().filter(|job| self.known.contains_key(job)).collect()
    }

    /// What a known job is on a make of GPU.
    pub(crate) fn member(&mut self, job: JobId, gpu: &GpuKind) -> Arc<Known> {
        let book = self.known.get_mut(&job).expect("only known jobs are asked for");
        if let Some(member) = book.members.get(gpu) {
            return member.clone();
        }
        let member = Arc::new(Known::new(member_of(&book.demand, &book.traits, gpu, &self.solos)));
        book.members.insert(gpu.clone(), member.clone());
        member
    }

    /// What a known job is expected to take alone.
    pub(crate) fn profile(&self, job: JobId) -> Profile {
        let book = &self.known[&job];
        Profile::flat(&book.demand, &book.traits)
    }

    /// How long a known job still runs at its present pace; nothing for one that does not run yet.
    pub(crate) fn ends_in(&self, job: JobId) -> Option<Span> {
        let running = self.known[&job].running.as_ref()?;
        Some(expected_end(running, self.profile(job).runtime, self.now).since(self.now))
    }

    /// How busy a device would be with a newcomer: the sum of what it and the neighbours use of it alone.
    pub(crate) fn busy_together(&mut self, newcomer: JobId, device: &DeviceView) -> f64 {
        let gpu = GpuKind::named(&device.model);
        let together = self.on(device).into_iter().chain([newcomer]);
        together.map(|job| self.member(job, &gpu).member.solo.utilisation.unwrap_or(USUAL_BUSY)).sum()
    }
}
