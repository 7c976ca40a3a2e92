//! When a job ends, as far as there is evidence: what it reports itself, else the completed runs of jobs like
//! it. Where there is neither, nothing is said.

use cohabit_policy::{JobFeatures, KnownRunTimes, RemainingTime};
use cohabit_types::{JobId, JobPhase, JobPrediction, JobSpec, Progress, Slowdown, Span, Time, TrainingSpec};

use crate::expected_start::{ExpectedRun, ExpectedTime, expected_runs};
use crate::forecasts::PolicyForecasts;
use crate::job::{Job, JobStatus};
use crate::reader::HeadReader;
use crate::submission::SubmissionState;

/// What the end of a job is known by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EndEvidence {
    /// Its own progress: when it ends at its present speed.
    Progress(Time),
    /// Runs of jobs like it: how much longer those ran that ran at least as long.
    Runs(RemainingTime, KnownRunTimes),
    /// What its submission says of its steps: how much longer they take.
    Stated(Option<Span>),
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
            return EndEvidence::Stated(self.stated_time_left(id, job));
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

    /// How much longer a job runs by what the policy made of its statements.
    fn stated_time_left(&self, id: JobId, job: &Job) -> Option<Span> {
        match job.live_attempt() {
            Some(attempt) => {
                let ends_at = attempt.started_at + attempt.expected_runtime?;
                Some(ends_at.since(self.now)).filter(|left| *left > Span::ZERO)
            }
            None => self.forecast(id)?.runtime,
        }
    }

    /// How much longer a job runs, or how long it will, by the evidence that there is.
    pub(crate) fn time_left(&self, id: JobId) -> Option<RemainingTime> {
        let (job, submission) = (self.head.jobs.get(&id)?, self.head.submissions.get(&id.number)?);
        if job.state().phase() == JobPhase::Ended || matches!(job.status, JobStatus::Stopping(..)) {
            return Some(RemainingTime::exactly(Span::ZERO));
        }
        self.end_evidence(id, job, submission, self.head.progress_of(id, job).as_ref()).time_left(self.now)
    }

    /// When a queued job starts and ends; `None` where that is not known.
    pub(crate) fn expected_run(&self, id: JobId) -> Option<ExpectedRun> {
        self.forecast(id)?;
        let PolicyForecasts { queue, runs, .. } = self.forecasts?;
        runs.get_or_init(|| expected_runs(queue, self.now, |job| self.time_left(job))).get(&id).copied()
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

    /// The run time, the start and the end of a job, as far as they are known.
    pub(crate) fn expected_times(
        &self,
        id: JobId,
        job: &Job,
        submission: &SubmissionState,
        progress: Option<&Progress>,
    ) -> JobPrediction {
        let stated = TrainingSpec::of(&submission.spec).iterations;
        let iterations = progress.and_then(|it| it.total).or(stated);
        let unknown = JobPrediction { iterations, ..JobPrediction::default() };
        if job.state().phase() == JobPhase::Ended {
            return unknown;
        }
        let evidence = self.end_evidence(id, job, submission, progress);
        let times = match job.live_attempt() {
            Some(_) => {
                let left = evidence.time_left(self.now);
                with_times(unknown, None, left.map(|left| ExpectedTime::after(self.now, left)))
            }
            None => match self.expected_run(id) {
                Some(ExpectedRun { start, end }) => with_times(unknown, Some(start), end),
                None => unknown,
            },
        };
        match evidence {
            EndEvidence::Unknown | EndEvidence::Progress(_) => times,
            EndEvidence::Stated(_) => {
                let placed = job.live_attempt().and_then(|attempt| attempt.expected_runtime);
                let runtime = placed.or_else(|| self.forecast(id)?.runtime);
                JobPrediction { runtime, ..times }
            }
            EndEvidence::Runs(_, known) => with_run_times(times, &known),
        }
    }
}

impl EndEvidence {
    /// How much longer the job runs, or how long it will.
    fn time_left(&self, now: Time) -> Option<RemainingTime> {
        match self {
            EndEvidence::Progress(at) => Some(RemainingTime::exactly(at.since(now))),
            EndEvidence::Stated(left) => left.map(RemainingTime::exactly),
            EndEvidence::Runs(left, _) => Some(*left),
            EndEvidence::Unknown => None,
        }
    }
}

/// The same with these times.
pub(crate) fn with_times(
    predicted: JobPrediction,
    start: Option<ExpectedTime>,
    end: Option<ExpectedTime>,
) -> JobPrediction {
    JobPrediction {
        starts_at: start.map(|it| it.at),
        starts_between: start.and_then(|it| it.between),
        ends_at: end.map(|it| it.at),
        ends_between: end.and_then(|it| it.between),
        ..predicted
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
