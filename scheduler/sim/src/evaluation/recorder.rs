//! Records an evaluation while it runs, one entry for each job.
//!
//! The head forgets jobs soon after they end, so every result is taken from the record that it publishes at
//! the end of a job.

use std::collections::BTreeMap;

use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::{CompletedRun, JobFeatures};
use cohabit_predict::Accuracy;
use cohabit_scheduler_core::{Head, MemoryMisfit};
use cohabit_types::{AttemptId, ColocationSample, Estimate, JobRecord, JobSpec, Time};

use super::device_spans::DeviceSpanRecorder;
use super::estimates::EvaluationEstimator;
use super::job_result::JobResult;
use super::metrics::{self, EvaluationCounts, Measured};
use super::occupancy::Occupancy;
use super::result::EvaluationResult;
use super::series::Series;
use super::spec::{ColocationLearner, Evaluation, Observer};
use crate::failure::{FailureKind, SimFailure};
use crate::head_hooks::HeadHooks;

/// The record of an evaluation.
pub(super) struct EvaluationRecorder<'o> {
    observer: &'o mut dyn Observer,
    learner: Option<&'o mut dyn ColocationLearner>,
    estimates: EvaluationEstimator,
    /// In the order of submission; job number 1 is the first.
    jobs: Vec<JobEntry>,
    submitted: usize,
    ended: usize,
    planning_started_at: u64,
    /// How long each plan took, in microseconds of a real clock.
    plans: Vec<u64>,
    device_spans: DeviceSpanRecorder,
    occupancy: Occupancy,
}

/// A job.
struct JobEntry {
    /// Seconds of an iteration at the best placement.
    pace: f64,
    result: JobResult,
}

impl<'o> EvaluationRecorder<'o> {
    pub(super) fn new(
        evaluation: &Evaluation,
        observer: &'o mut dyn Observer,
        learner: Option<&'o mut dyn ColocationLearner>,
    ) -> EvaluationRecorder<'o> {
        let entry = |job: &crate::workload::WorkloadJob| JobEntry {
            pace: job.pace,
            result: JobResult::submitted(job),
        };
        EvaluationRecorder {
            observer,
            learner,
            estimates: EvaluationEstimator::new(evaluation.estimator, evaluation.seed),
            jobs: evaluation.jobs.iter().map(entry).collect(),
            submitted: 0,
            ended: 0,
            planning_started_at: 0,
            plans: Vec::new(),
            device_spans: DeviceSpanRecorder::first_of(&evaluation.shapes),
            occupancy: Occupancy::default(),
        }
    }

    pub(super) fn clock_us(&mut self) -> u64 {
        self.observer.clock_us()
    }

    /// Checks that the device time that the machines measured is within what was booked: thousandths of a
    /// device, times microseconds.
    pub(super) fn check_device_time(&self, used: &BTreeMap<u64, u64>) -> Result<(), SimFailure> {
        for (number, used) in used {
            let job = &self.jobs[*number as usize - 1].result;
            let booked = job.ran().as_micros() * job.devices_milli;
            if *used > booked {
                let detail =
                    format!("job {number} used {used} thousandths of a device times µs of {booked} booked");
                return Err(SimFailure {
                    kind: FailureKind::Invariant,
                    at: job.ended.unwrap_or(Time::EPOCH),
                    detail,
                });
            }
        }
        Ok(())
    }

    /// Computes the result.
    pub(super) fn into_result(
        self,
        evaluation: &Evaluation,
        measured: Measured,
        wall_us: u64,
    ) -> EvaluationResult {
        let estimates: Accuracy = self.estimates.accuracy();
        let jobs: Vec<JobResult> = self.jobs.into_iter().map(|entry| entry.result).collect();
        let occupied = self.occupancy.total();
        let counts = EvaluationCounts { plans: self.plans, occupied, measured, wall_us };
        EvaluationResult {
            metrics: metrics::compute(evaluation, &jobs, counts),
            series: Series::of(&jobs),
            spans: self.device_spans.into_spans(),
            jobs,
            estimates,
        }
    }

    fn entry(&mut self, number: u64) -> &mut JobEntry {
        &mut self.jobs[number as usize - 1]
    }
}

impl HeadHooks for EvaluationRecorder<'_> {
    fn estimate(&mut self, now: Time, user: &str, spec: &JobSpec) -> Option<Estimate> {
        let index = self.submitted;
        self.submitted += 1;
        let entry = &mut self.jobs[index];
        let features = JobFeatures::of(user, spec, now);
        self.estimates.estimate(index, spec, &features, entry.pace)
    }

    fn planning_started(&mut self) {
        self.planning_started_at = self.observer.clock_us();
    }

    fn planning_finished(&mut self) {
        let now = self.observer.clock_us();
        self.plans.push(now.saturating_sub(self.planning_started_at));
    }

    fn gang_placed(&mut self, attempt: AttemptId, pace: f64) {
        self.entry(attempt.job.number).result.gang_slowdown = Some(1.0 / pace);
    }

    fn colocation_samples(
        &mut self,
        now: Time,
        samples: &[ColocationSample],
        head: &Head,
    ) -> Option<InterferenceContext> {
        self.learner.as_mut()?.observe(now, samples, &|job| head.demand_and_traits(job))
    }

    fn misfit(&mut self, now: Time, misfit: &MemoryMisfit, head: &Head) -> Option<InterferenceContext> {
        self.learner.as_mut()?.observe_misfit(now, misfit, &|job| head.demand_and_traits(job))
    }

    fn job_ended(&mut self, record: &JobRecord) {
        let index = record.id.number as usize - 1;
        let entry = &mut self.jobs[index];
        entry.result.take(record);
        if let Some(run) = CompletedRun::of(record) {
            self.estimates.learn(run);
        }
        self.device_spans.note(index, record);
        self.occupancy.note(record);
        self.ended += 1;
        self.observer.progressed(self.ended, self.jobs.len());
    }
}
