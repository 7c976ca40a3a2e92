//! The trait of runtime estimators: what they see, answer and learn from.
//!
//! An estimate is frozen into the submission, so a replay needs no estimator. A figure that the user stated
//! is never replaced. Estimators that learn are in `cohabit-predict`.

use cohabit_types::{
    AttemptRecord, Demand, Estimate, JobRecord, JobSpec, JobState, Slowdown, Span, StopReason, Time,
    TrainingSpec,
};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// What is known of a job at its submission, and nothing that is learned later.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct JobFeatures {
    /// The user who submits it.
    pub user: String,
    /// Its group of recurring jobs; its name where it has none.
    pub group: String,
    /// The command as typed.
    pub command: String,
    /// The time of its submission.
    pub submitted_at: Time,
    /// Devices on all nodes together, in thousandths.
    pub devices_milli: u64,
    /// The name of its model, where stated.
    pub model: Option<String>,
    /// Samples in one step of one rank, where stated.
    pub batch_size: Option<u64>,
    /// Replicas of each stage of the pipeline; empty where not stated.
    pub replicas: Vec<u32>,
    /// Iterations, where the user knows them.
    pub iterations: Option<u64>,
}

/// A job that completed, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedRun {
    /// What was known of it at submission.
    pub features: JobFeatures,
    /// When it ended.
    pub ended_at: Time,
    /// How long it worked: see [`work_time`].
    pub runtime: Span,
    /// The steps that it reported, if any.
    pub iterations: Option<u64>,
}

impl CompletedRun {
    /// The run of a job; `None` unless it completed.
    #[must_use]
    pub fn of(record: &JobRecord) -> Option<CompletedRun> {
        if record.state != JobState::Completed {
            return None;
        }
        Some(CompletedRun {
            features: JobFeatures::from_record(record),
            ended_at: record.latest()?.ended_at?,
            runtime: work_time(record)?,
            iterations: record.progress.as_ref().map(|progress| progress.step),
        })
    }
}

/// How long a job worked: the time with devices, without what its neighbors cost. `None` if it had none.
///
/// An attempt that was stopped for another job is continued by the next one; after any other end, a job
/// begins anew.
#[must_use]
pub fn work_time(record: &JobRecord) -> Option<Span> {
    let mut attempts = record.attempts.iter().rev();
    let held = |attempt: &AttemptRecord| Some(attempt.ended_at?.since(attempt.started_at).as_secs_f64());
    let last = held(attempts.next()?)?;
    let was_preempted = |why| matches!(why, StopReason::Preempted | StopReason::Reclaimed);
    let continued = attempts.take_while(|attempt| attempt.stopped.is_some_and(was_preempted));
    let held: f64 = last + continued.filter_map(held).sum::<f64>();
    let predicted = record.predicted.as_ref().and_then(|it| it.slowdown);
    let slowdown = record.slowdown_measured.or(predicted).map_or(1.0, Slowdown::as_f64);
    Some(Span::from_secs_f64(held / slowdown.max(1.0)))
}

/// Estimates what a job will take.
pub trait Estimator: Send {
    /// The estimate; `None` where there is no basis for one.
    fn estimate(&self, job: &JobFeatures) -> Option<Estimate>;

    /// Learns from jobs that completed, the oldest first.
    fn learn(&mut self, done: &[CompletedRun]);
}

impl JobFeatures {
    /// The features of a job that this user submits at this time.
    #[must_use]
    pub fn of(user: &str, spec: &JobSpec, submitted_at: Time) -> JobFeatures {
        let group = spec.group.as_ref().unwrap_or(&spec.name);
        let command = spec.entrypoint.title();
        JobFeatures::from_parts(user, (group, command), submitted_at, &spec.demand, TrainingSpec::of(spec))
    }

    /// The features of a job that was submitted already.
    #[must_use]
    pub fn from_record(record: &JobRecord) -> JobFeatures {
        let group = record.group.as_ref().unwrap_or(&record.name);
        let trained = record.trained.clone();
        let named = (group.as_str(), record.work.clone());
        JobFeatures::from_parts(&record.user, named, record.submitted_at, &record.demand, trained)
    }

    fn from_parts(
        user: &str,
        (group, command): (&str, String),
        submitted_at: Time,
        demand: &Demand,
        trained: TrainingSpec,
    ) -> JobFeatures {
        let TrainingSpec { model, batch_size, replicas, iterations, .. } = trained;
        let (user, group) = (user.to_owned(), group.to_owned());
        let devices_milli = demand.total_milli();
        JobFeatures {
            user,
            group,
            command,
            submitted_at,
            devices_milli,
            model,
            batch_size,
            replicas,
            iterations,
        }
    }

    /// What the user states; `None` where the user states nothing.
    #[must_use]
    pub fn user_estimate(&self) -> Option<Estimate> {
        let basis = "what its submission says".to_owned();
        self.iterations.map(|iterations| Estimate {
            iterations: Some(iterations),
            basis,
            ..Estimate::default()
        })
    }

    /// The hour of the day of its submission, 0 to 23, by the cluster's clock.
    #[must_use]
    pub fn hour(&self) -> u64 {
        self.submitted_secs() / HOUR % 24
    }

    /// The day of the week of its submission, 0 to 6; 0 is the weekday of the cluster's epoch.
    #[must_use]
    pub fn weekday(&self) -> u64 {
        self.submitted_secs() / DAY % 7
    }

    fn submitted_secs(&self) -> u64 {
        self.submitted_at.as_micros() / 1_000_000
    }
}

/// Knows only what users state: for a head without a learned estimator.
#[derive(Debug, Default, Clone, Copy)]
pub struct UserEstimator;

impl Estimator for UserEstimator {
    fn estimate(&self, job: &JobFeatures) -> Option<Estimate> {
        job.user_estimate()
    }

    fn learn(&mut self, _: &[CompletedRun]) {}
}

#[cfg(test)]
mod tests {
    use cohabit_types::{GpuRequest, ModelDescription, PipelineStage};

    use super::*;

    fn stage(replicas: u32) -> PipelineStage {
        PipelineStage {
            replicas,
            compute_seconds: 0.1,
            compute_seconds_on: std::collections::BTreeMap::new(),
            activation_bytes: 0.0,
            gradient_bytes: 0.0,
        }
    }

    #[test]
    fn features_come_from_the_submission() {
        let mut spec = JobSpec::command(vec!["/bin/train".into()], "/tmp".into());
        spec.demand = Demand { nodes: 2, gpus: GpuRequest::Whole(4), ..Demand::default() };
        let plain = JobFeatures::of("ada", &spec, Time::EPOCH);
        assert_eq!((plain.group.as_str(), plain.devices_milli, plain.iterations), ("train", 8_000, None));
        spec.group = Some("resnet".into());
        spec.model = Some(ModelDescription {
            name: Some("resnet-50".into()),
            batch_size: Some(32),
            epochs: Some(2),
            samples: Some(64),
            stages: vec![stage(6), stage(2)],
            ..ModelDescription::default()
        });
        let features = JobFeatures::of("ada", &spec, Time::EPOCH);
        assert_eq!((features.group.as_str(), features.model.as_deref()), ("resnet", Some("resnet-50")));
        assert_eq!(
            (features.batch_size, features.replicas, features.iterations),
            (Some(32), vec![6, 2], Some(4))
        );
        spec.iterations = Some(7);
        let estimate = UserEstimator.estimate(&JobFeatures::of("ada", &spec, Time::EPOCH)).unwrap();
        assert_eq!((estimate.iterations, estimate.runtime), (Some(7), None));
        assert_eq!(UserEstimator.estimate(&plain), None);
    }

    #[test]
    fn the_calendar_counts_from_the_epoch() {
        let at = |secs| JobFeatures {
            submitted_at: Time::EPOCH + Span::from_secs(secs),
            ..JobFeatures::default()
        };
        let calendar = |secs| (at(secs).hour(), at(secs).weekday());
        assert_eq!(calendar(0), (0, 0));
        assert_eq!(calendar(2 * DAY + 5 * HOUR + 1), (5, 2));
        assert_eq!(calendar(7 * DAY - 1), (23, 6));
    }
}
