//! When a job ends, as far as there is evidence: what it reports itself, else the completed runs of jobs like
//! it. Where there is neither, nothing is said.

use cohabit_policy::{JobFeatures, KnownRunTimes, RemainingTime};
use cohabit_types::{JobId, JobPhase, JobPrediction, JobSpec, Progress, Slowdown, Span, Time, TrainingSpec};

use crate::job::Job;
use crate::reader::HeadReader;
use crate::submission::SubmissionState;

/// What the end of a job is known by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EndEvidence {
    /// Its own progress: when it ends at its present speed.
    Progress(Time),
    /// Runs of jobs like it: how much longer those ran that ran at least as long.
    Runs(RemainingTime, KnownRunTimes),
    /// What its submission says of its steps: when they are done.
    Stated(Option<Time>),
    /// Nothing.
    Unknown,
}

impl HeadReader<'_> {
    /// What the end of a job is known by that has not ended.
    pub(crate) fn end_evidence(
        &self,
        id: JobId,
        job: &Job,
        submission: &SubmissionState,
        progress: Option<&Progress>,
    ) -> EndEvidence {
        if job.live_attempt().is_some()
            && let Some(progress) = progress
            && let Some(remaining) = progress.remaining()
        {
            let at = progress.at + remaining;
            // A job that is behind its own pace has no speed that tells its end.
            return if at > self.now { EndEvidence::Progress(at) } else { EndEvidence::Unknown };
        }
        if is_stated(&submission.spec) {
            return EndEvidence::Stated(self.stated_end(id, job));
        }
        match self.known_run_times(submission) {
            Some(known) => EndEvidence::Runs(self.remaining(id, job, submission, &known), known),
            None => EndEvidence::Unknown,
        }
    }

    fn known_run_times(&self, submission: &SubmissionState) -> Option<KnownRunTimes> {
        let features = JobFeatures::of(&submission.user, &submission.spec, submission.submitted_at);
        self.past_runs?.like(&features)
    }

    /// When a job ends by what the policy made of its statements.
    fn stated_end(&self, id: JobId, job: &Job) -> Option<Time> {
        match job.live_attempt() {
            Some(attempt) => Some(attempt.started_at + attempt.expected_runtime?).filter(|at| *at > self.now),
            None => self.forecast(id)?.ends_at,
        }
    }

    /// How much longer a job runs beside its neighbors, within its time limit.
    fn remaining(
        &self,
        id: JobId,
        job: &Job,
        submission: &SubmissionState,
        known: &KnownRunTimes,
    ) -> RemainingTime {
        let slowdown = self.predicted_slowdown(id, job).map_or(1.0, Slowdown::as_f64).max(1.0);
        let held = job.live_attempt().map_or(Span::ZERO, |attempt| self.now.since(attempt.started_at));
        let worked = job.attained().worked + Span::from_secs_f64(held.as_secs_f64() / slowdown);
        let rest = known.distribution.remaining(worked);
        let limit = submission.spec.time_limit;
        let left = limit.map(|limit| Span::from_micros(limit.as_micros().saturating_sub(held.as_micros())));
        let within = |span: Span| {
            let there = Span::from_secs_f64(span.as_secs_f64() * slowdown);
            left.map_or(there, |left| there.min(left))
        };
        RemainingTime { least: within(rest.least), typical: within(rest.typical), most: within(rest.most) }
    }

    /// The run time and the end of a job, as far as they are known.
    pub(crate) fn expected_times(
        &self,
        id: JobId,
        job: &Job,
        submission: &SubmissionState,
        progress: Option<&Progress>,
    ) -> JobPrediction {
        let starts_at = self.forecast(id).and_then(|it| it.starts_at);
        let stated = TrainingSpec::of(&submission.spec).iterations;
        let unknown = JobPrediction {
            iterations: progress.and_then(|it| it.total).or(stated),
            starts_at,
            ..JobPrediction::default()
        };
        if job.state().phase() == JobPhase::Ended {
            return unknown;
        }
        match self.end_evidence(id, job, submission, progress) {
            EndEvidence::Unknown => unknown,
            EndEvidence::Progress(at) => JobPrediction { ends_at: Some(at), ..unknown },
            EndEvidence::Stated(ends_at) => {
                let placed = job.live_attempt().and_then(|attempt| attempt.expected_runtime);
                let runtime = placed.or_else(|| self.forecast(id)?.runtime);
                JobPrediction { runtime, ends_at, ..unknown }
            }
            EndEvidence::Runs(rest, known) => {
                let begin = if job.live_attempt().is_some() { Some(self.now) } else { starts_at };
                JobPrediction {
                    ends_at: begin.map(|begin| begin + rest.typical),
                    ends_between: begin.map(|begin| [begin + rest.least, begin + rest.most]),
                    ..with_run_times(unknown, &known)
                }
            }
        }
    }
}

/// The same with the run time by these runs.
pub(crate) fn with_run_times(predicted: JobPrediction, known: &KnownRunTimes) -> JobPrediction {
    let RemainingTime { least, typical, most } = known.distribution.remaining(Span::ZERO);
    JobPrediction {
        runtime: Some(typical),
        runtime_between: Some([least, most]),
        runs: u32::try_from(known.runs).ok(),
        ..predicted
    }
}

/// Whether a submission says how many steps its job takes, and how long each.
pub(crate) fn is_stated(spec: &JobSpec) -> bool {
    let has_stages = spec.model.as_ref().is_some_and(|model| !model.stages.is_empty());
    TrainingSpec::of(spec).iterations.is_some() && has_stages
}
