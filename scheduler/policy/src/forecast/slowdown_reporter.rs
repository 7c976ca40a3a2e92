//! How much co-located jobs slow each other down, now and with one more job.
//!
//! It gets the same changes and the same knowledge of interference as a policy, but it decides nothing:
//! it answers users, whatever the policy uses. Nodes that accept no jobs are not in the view, so they are
//! left out.

use cohabit_types::{ColocationSlowdown, JobId, Placement, PredictedSlowdown};

use crate::interference::{ColocationEstimate, GpuKind, InterferenceContext, InternedSet, PredictionCache};
use crate::sharing::Jobs;
use crate::{DeviceView, PendingJob, Proposal, QueueForecast, SharingMode, Shortage, View, ViewChange};

/// Reports the slowdowns of jobs that share devices.
#[derive(Debug)]
pub struct SlowdownReporter {
    jobs: Jobs,
    cache: PredictionCache,
    /// The predictor that knows no measurements, where it is not the same one.
    base: Option<PredictionCache>,
}

/// The answer to a dry run: what would happen to a job that is not submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRunResult {
    /// Where it would go if it were its turn now, or why it would not fit.
    pub place: Result<Proposal, Shortage>,
    /// It and the jobs that it would share a device with, with their slowdowns then.
    pub with_job: Vec<ColocationSlowdown>,
    /// The same jobs now, those that share a device.
    pub current: Vec<ColocationSlowdown>,
    /// The queue with it among the jobs that wait already.
    pub queue: QueueForecast,
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
    pub fn new(context: &InterferenceContext) -> SlowdownReporter {
        let cache = PredictionCache::new(context.interference.clone());
        let base = context.interference.base().map(PredictionCache::new);
        SlowdownReporter { jobs: Jobs::new(context.solos.clone()), cache, base }
    }

    /// Uses this knowledge of interference from now on.
    pub fn set_interference(&mut self, context: &InterferenceContext) {
        let SlowdownReporter { cache, base, .. } = SlowdownReporter::new(context);
        (self.cache, self.base) = (cache, base);
        self.jobs.set_interference(context.solos.clone());
    }

    /// Updates the jobs by these changes; the view contains them already.
    pub fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.jobs.learn(view.now, changes);
    }

    /// The slowdown of every job that shares a device now.
    pub fn report_current(&mut self, view: &View) -> Vec<ColocationSlowdown> {
        let devices = view.nodes.iter().flat_map(|node| &node.devices);
        let groups: Vec<DeviceJobs> = devices.map(|device| self.group_on(device)).collect();
        self.report_sets(groups)
    }

    /// The slowdowns on the devices of a placement if the newcomer joined them. A job that is not pending
    /// leaves no trace.
    pub fn report_with(
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
        let joined = |mut group: DeviceJobs| {
            group.jobs.push(newcomer.id);
            group
        };
        let groups: Vec<DeviceJobs> = taken.map(|device| joined(self.group_on(device))).collect();
        let estimates = self.report_sets(groups);
        if !view.pending.contains_key(&newcomer.id) {
            self.jobs.learn(view.now, &[ViewChange::Gone(newcomer.id)]);
        }
        estimates
    }

    fn group_on(&self, device: &DeviceView) -> DeviceJobs {
        let gpu = GpuKind::named(&device.model);
        DeviceJobs { gpu, sharing: device.sharing.mode, jobs: self.jobs.on(device) }
    }

    fn report_sets(&mut self, mut groups: Vec<DeviceJobs>) -> Vec<ColocationSlowdown> {
        groups.retain(|group| group.jobs.len() > 1);
        let sets: Vec<InternedSet> = groups.iter().map(|group| self.build_set(group)).collect();
        let estimates = self.cache.predict(&sets);
        let predicted = match &mut self.base {
            Some(base) => base.predict(&sets),
            None => estimates.clone(),
        };
        let each = groups.iter().zip(estimates.into_iter().zip(predicted));
        each.flat_map(|(group, (known, predicted))| group.list_slowdowns(&known, &predicted)).collect()
    }

    fn build_set(&mut self, group: &DeviceJobs) -> InternedSet {
        let DeviceJobs { gpu, sharing, jobs } = group;
        let members = jobs.iter().map(|job| self.jobs.member(*job, gpu)).collect();
        InternedSet { gpu: gpu.clone(), sharing: *sharing, members }
    }
}

impl DeviceJobs {
    /// The slowdown of each job: as measured, and as predicted without measurements.
    fn list_slowdowns(
        &self,
        known: &[ColocationEstimate],
        predicted: &[ColocationEstimate],
    ) -> Vec<ColocationSlowdown> {
        let each = self.jobs.iter().zip(known.iter().zip(predicted));
        each.map(|(job, (known, predicted))| {
            // Jobs that did not fit together have no measured slowdown.
            let is_measured = known.measured && known.fits > 0.0;
            let ColocationEstimate { slowdown, uncertainty, .. } =
                if known.measured { predicted } else { known };
            ColocationSlowdown {
                job: *job,
                beside: self.jobs.iter().copied().filter(|other| other != job).collect(),
                predicted: PredictedSlowdown::new(*slowdown, *uncertainty),
                measured: is_measured.then(|| known.slowdown.into()),
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
    use crate::tests::colocated::{context, runs, training};
    use crate::tests::kit::{gpus, job, node, view};

    fn known() -> InterferenceContext {
        context("test GPU", &[("heavy", 0.9), ("light", 0.1)])
    }

    /// Two devices: a heavy and a light job on the first, a heavy one on the second.
    fn shared() -> View {
        let mut view = view(vec![node(1, &[1_000, 1_000])], vec![]);
        runs(&mut view, training(101, "heavy", 1_000), 0, 0, 500);
        runs(&mut view, training(102, "light", 1_000), 0, 0, 500);
        runs(&mut view, training(103, "heavy", 1_000), 0, 1, 500);
        view
    }

    fn reporter(context: &InterferenceContext, view: &View) -> SlowdownReporter {
        let mut reporter = SlowdownReporter::new(context);
        reporter.learn(view, &view.as_changes());
        reporter
    }

    fn on_device(view: &View, job: &PendingJob, device: usize) -> Placement {
        let node = &view.nodes[0];
        Placement { parts: vec![node.part(&job.demand, vec![node.devices[device].id.clone()])] }
    }

    fn pairs(estimates: &[ColocationSlowdown]) -> Vec<(u64, Vec<u64>)> {
        let numbers = |jobs: &[JobId]| jobs.iter().map(|job| job.number).collect();
        estimates.iter().map(|it| (it.job.number, numbers(&it.beside))).collect()
    }

    #[test]
    fn co_located_jobs_have_slowdowns_and_a_job_alone_has_none() {
        let view = shared();
        let estimates = reporter(&known(), &view).report_current(&view);
        assert_eq!(pairs(&estimates), [(101, vec![102]), (102, vec![101])]);
        assert!(estimates.iter().all(|it| it.measured.is_none() && it.predicted.least < it.predicted.most));
        assert!(
            estimates[1].predicted.expected < estimates[0].predicted.expected,
            "the light one suffers less"
        );
    }

    #[test]
    fn a_newcomer_is_counted_on_its_device_and_then_forgotten() {
        let view = shared();
        let mut reporter = reporter(&known(), &view);
        let newcomer = training(1, "heavy", 100);
        let before = reporter.report_current(&view);
        let estimates = reporter.report_with(&view, &newcomer, &on_device(&view, &newcomer, 0));
        assert_eq!(pairs(&estimates), [(101, vec![102, 1]), (102, vec![101, 1]), (1, vec![101, 102])]);
        assert!(estimates[0].slowdown() > before[0].slowdown(), "{estimates:?}");
        assert_eq!(reporter.report_current(&view), before);
        let whole = job(2, gpus(1));
        assert_eq!(reporter.report_with(&view, &whole, &Placement { parts: vec![] }), []);
    }

    #[test]
    fn measured_and_predicted_slowdowns_are_both_reported() {
        let InterferenceContext { interference, solos, max_slowdown } = known();
        let member = |model: &str| SetMember { model: model.into(), ..SetMember::default() };
        let set = ColocationSet {
            gpu: GpuKind::named("test GPU"),
            members: vec![member("heavy"), member("light")],
            sharing: Some(SharingStrategy::TimeSliced),
        };
        let observed = |slowdown| MeasuredMember { slowdown, ..MeasuredMember::default() };
        let ran = SetOutcome::Ran(vec![observed(1.5), observed(1.25)]);
        let observed_set = ObservedSet {
            measured: MeasuredSet { set, outcome: ran },
            uncertainty: vec![0.01; 2],
            first: view(vec![], vec![]).now,
            last: view(vec![], vec![]).now,
        };
        let interference = Arc::new(ObservedInterference::over(interference, &[observed_set]));
        let view = shared();
        let predicted = reporter(&known(), &view).report_current(&view);
        let mut reporter = reporter(&known(), &view);
        reporter.set_interference(&InterferenceContext { interference, solos, max_slowdown });
        let estimates = reporter.report_current(&view);
        assert_eq!(
            estimates.iter().map(|it| it.predicted).collect::<Vec<_>>(),
            [predicted[0].predicted, predicted[1].predicted]
        );
        assert_eq!(estimates.iter().map(|it| it.slowdown().0).collect::<Vec<_>>(), [1_500, 1_250]);
    }
}
