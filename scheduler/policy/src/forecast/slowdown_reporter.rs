//! How much co-located jobs slow each other down, now and with one more job.
//!
//! It is told the same changes and the same knowledge of interference as a policy, but it decides nothing:
//! it answers people, whatever the policy uses. Nodes that accept no jobs are not in the view, so they are
//! left out.

use cohabit_types::{ColocationSlowdown, JobId, Placement, PredictedSlowdown};

use crate::interference::{ColocationEstimate, GpuKind, InterferenceContext, InternedSet, PredictionCache};
use crate::sharing::Jobs;
use crate::{DeviceView, JobForecast, PendingJob, Proposal, SharingMode, Shortage, View, ViewChange};

/// Reports the slowdowns of jobs that share devices.
#[derive(Debug)]
pub struct SlowdownReporter {
    jobs: Jobs,
    asked: PredictionCache,
    /// The predictor that knows no measurements, where it is not the same one.
    base: Option<PredictionCache>,
}

/// The answer to a dry run: what would happen to a job that is not submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRunResult {
    /// Where it would go if it were its turn now, or why it would not fit.
    pub place: Result<Proposal, Shortage>,
    /// It and the jobs that it would share a device with, with their slowdowns then.
    pub company: Vec<ColocationSlowdown>,
    /// The same jobs now, those that share a device.
    pub present: Vec<ColocationSlowdown>,
    /// When it may start behind the jobs that wait already; `None` where the policy does not say.
    pub expected: Option<JobForecast>,
}

/// The jobs on one device.
struct DeviceJobs {
    gpu: GpuKind,
    sharing: SharingMode,
    jobs: Vec<JobId>,
}

impl Default for SlowdownReporter {
    fn default() -> SlowdownReporter {
        SlowdownReporter::new(&InterferenceContext::default())
    }
}

impl SlowdownReporter {
    /// A reporter that knows no jobs yet.
    #[must_use]
    pub fn new(knowledge: &InterferenceContext) -> SlowdownReporter {
        let asked = PredictionCache::new(knowledge.interference.clone());
        let base = knowledge.interference.base().map(PredictionCache::new);
        SlowdownReporter { jobs: Jobs::new(knowledge.solos.clone()), asked, base }
    }

    /// Uses this knowledge of interference from now on.
    pub fn set_interference(&mut self, knowledge: &InterferenceContext) {
        let SlowdownReporter { asked, base, .. } = SlowdownReporter::new(knowledge);
        (self.asked, self.base) = (asked, base);
        self.jobs.set_interference(knowledge.solos.clone());
    }

    /// Updates the jobs by these changes; the view contains them already.
    pub fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.jobs.learn(view.now, changes);
    }

    /// The slowdown of every job that shares a device now.
    pub fn beside(&mut self, view: &View) -> Vec<ColocationSlowdown> {
        let devices = view.nodes.iter().flat_map(|node| &node.devices);
        let crowds: Vec<DeviceJobs> = devices.map(|device| self.crowd(device)).collect();
        self.told(crowds)
    }

    /// The slowdowns on the devices of a placement if the newcomer joined them. A job that is not pending
    /// leaves no trace.
    pub fn with(
        &mut self,
        view: &View,
        newcomer: &PendingJob,
        placement: &Placement,
    ) -> Vec<ColocationSlowdown> {
        self.jobs.insert_if_unknown(newcomer);
        let taken = placement.parts.iter().flat_map(|part| {
            let node = view.nodes.iter().find(|node| node.id == part.node);
            let devices = node.into_iter().flat_map(|node| &node.devices);
            devices.filter(|device| part.devices.contains(&device.id))
        });
        let joined = |mut crowd: DeviceJobs| {
            crowd.jobs.push(newcomer.id);
            crowd
        };
        let crowds: Vec<DeviceJobs> = taken.map(|device| joined(self.crowd(device))).collect();
        let told = self.told(crowds);
        if !view.pending.contains_key(&newcomer.id) {
            self.jobs.learn(view.now, &[ViewChange::Gone(newcomer.id)]);
        }
        told
    }

    fn crowd(&self, device: &DeviceView) -> DeviceJobs {
        let gpu = GpuKind::named(&device.model);
        DeviceJobs { gpu, sharing: device.sharing.mode, jobs: self.jobs.on(device) }
    }

    fn told(&mut self, mut crowds: Vec<DeviceJobs>) -> Vec<ColocationSlowdown> {
        crowds.retain(|crowd| crowd.jobs.len() > 1);
        let companies: Vec<InternedSet> = crowds.iter().map(|crowd| self.company(crowd)).collect();
        let told = self.asked.predict(&companies);
        let predicted = match &mut self.base {
            Some(base) => base.predict(&companies),
            None => told.clone(),
        };
        let each = crowds.iter().zip(told.into_iter().zip(predicted));
        each.flat_map(|(crowd, (told, predicted))| crowd.list_slowdowns(&told, &predicted)).collect()
    }

    fn company(&mut self, crowd: &DeviceJobs) -> InternedSet {
        let DeviceJobs { gpu, sharing, jobs } = crowd;
        let members = jobs.iter().map(|job| self.jobs.member(*job, gpu)).collect();
        InternedSet { gpu: gpu.clone(), sharing: *sharing, members }
    }
}

impl DeviceJobs {
    /// The slowdown of each job: as measured, and as predicted without measurements.
    fn list_slowdowns(
        &self,
        told: &[ColocationEstimate],
        predicted: &[ColocationEstimate],
    ) -> Vec<ColocationSlowdown> {
        let each = self.jobs.iter().zip(told.iter().zip(predicted));
        each.map(|(job, (told, predicted))| {
            // Jobs that did not fit together have no measured slowdown.
            let is_measured = told.measured && told.fits > 0.0;
            let ColocationEstimate { slowdown, uncertainty, .. } =
                if told.measured { predicted } else { told };
            ColocationSlowdown {
                job: *job,
                beside: self.jobs.iter().copied().filter(|other| other != job).collect(),
                predicted: PredictedSlowdown::new(*slowdown, *uncertainty),
                measured: is_measured.then(|| told.slowdown.into()),
            }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohabit_types::SharingStrategy;

    use super::*;
    use crate::interference::{
        ColocationSet, MeasuredMember, MeasuredSet, ObservedInterference, ObservedSet, SetMember, SetOutcome,
    };
    use crate::tests::colocated::{knowledge, runs, training};
    use crate::tests::kit::{gpus, job, node, view};

    fn known() -> InterferenceContext {
        knowledge("test GPU", &[("heavy", 0.9), ("light", 0.1)])
    }

    /// Two devices: a heavy and a light job on the first, a heavy one on the second.
    fn shared() -> View {
        let mut view = view(vec![node(1, &[1_000, 1_000])], vec![]);
        runs(&mut view, training(101, "heavy", 1_000), 0, 0, 500);
        runs(&mut view, training(102, "light", 1_000), 0, 0, 500);
        runs(&mut view, training(103, "heavy", 1_000), 0, 1, 500);
        view
    }

    fn foresight(knowledge: &InterferenceContext, view: &View) -> SlowdownReporter {
        let mut foresight = SlowdownReporter::new(knowledge);
        foresight.learn(view, &view.as_changes());
        foresight
    }

    fn on_device(view: &View, job: &PendingJob, device: usize) -> Placement {
        let node = &view.nodes[0];
        Placement { parts: vec![node.part(&job.demand, vec![node.devices[device].id.clone()])] }
    }

    fn pairs(told: &[ColocationSlowdown]) -> Vec<(u64, Vec<u64>)> {
        let numbers = |jobs: &[JobId]| jobs.iter().map(|job| job.number).collect();
        told.iter().map(|it| (it.job.number, numbers(&it.beside))).collect()
    }

    #[test]
    fn neighbours_are_told_what_they_cost_each_other_and_who_is_alone_is_not() {
        let view = shared();
        let told = foresight(&known(), &view).beside(&view);
        assert_eq!(pairs(&told), [(101, vec![102]), (102, vec![101])]);
        assert!(told.iter().all(|it| it.measured.is_none() && it.predicted.least < it.predicted.most));
        assert!(told[1].predicted.expected < told[0].predicted.expected, "the light one suffers less");
    }

    #[test]
    fn a_newcomer_is_seen_among_those_on_its_device_and_then_forgotten() {
        let view = shared();
        let mut foresight = foresight(&known(), &view);
        let newcomer = training(1, "heavy", 100);
        let before = foresight.beside(&view);
        let told = foresight.with(&view, &newcomer, &on_device(&view, &newcomer, 0));
        assert_eq!(pairs(&told), [(101, vec![102, 1]), (102, vec![101, 1]), (1, vec![101, 102])]);
        assert!(told[0].slowdown() > before[0].slowdown(), "{told:?}");
        assert_eq!(foresight.beside(&view), before);
        let whole = job(2, gpus(1));
        assert_eq!(foresight.with(&view, &whole, &Placement { parts: vec![] }), []);
    }

    #[test]
    fn what_was_measured_stands_beside_what_was_predicted() {
        let InterferenceContext { interference, solos, max_slowdown } = known();
        let member = |model: &str| SetMember { model: model.into(), ..SetMember::default() };
        let set = ColocationSet {
            gpu: GpuKind::named("test GPU"),
            members: vec![member("heavy"), member("light")],
            sharing: Some(SharingStrategy::TimeSliced),
        };
        let observed = |slowdown| MeasuredMember { slowdown, ..MeasuredMember::default() };
        let ran = SetOutcome::Ran(vec![observed(1.5), observed(1.25)]);
        let lived = ObservedSet {
            measured: MeasuredSet { set, outcome: ran },
            uncertainty: vec![0.01; 2],
            last: view(vec![], vec![]).now,
        };
        let experienced = Arc::new(ObservedInterference::over(interference, &[lived]));
        let view = shared();
        let predicted = foresight(&known(), &view).beside(&view);
        let mut foresight = foresight(&known(), &view);
        foresight.set_interference(&InterferenceContext { interference: experienced, solos, max_slowdown });
        let told = foresight.beside(&view);
        assert_eq!(
            told.iter().map(|it| it.predicted).collect::<Vec<_>>(),
            [predicted[0].predicted, predicted[1].predicted]
        );
        assert_eq!(told.iter().map(|it| it.slowdown().0).collect::<Vec<_>>(), [1_500, 1_250]);
    }
}
