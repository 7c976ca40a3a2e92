//! What is expected of a job when it is submitted: what an estimator sees, answers and learns from.
//!
//! An estimate is frozen into the submission, so a replay needs no estimator. A user's own figures are never
//! replaced.

use cohabit_types::{Demand, Estimate, JobRecord, JobSpec, Span, Time, Trained};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// What is known of a job at its submission, and nothing that is learned later.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Features {
    /// Who submits it.
    pub user: String,
    /// Its group of recurring jobs; its name where it has none.
    pub group: String,
    /// When it is submitted.
    pub submitted_at: Time,
    /// Devices on all nodes together, in thousandths.
    pub devices_milli: u64,
    /// The name of the model, where it is told.
    pub model: Option<String>,
    /// Samples in one step of one rank, where it is told.
    pub batch_size: Option<u64>,
    /// Replicas of each stage of the pipeline; empty where none are told.
    pub replicas: Vec<u32>,
    /// Iterations, where the user knows them.
    pub iterations: Option<u64>,
}

/// A job that ended well, with what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// What was known of it.
    pub features: Features,
    /// When it ended.
    pub ended_at: Time,
    /// How long its last attempt ran.
    pub runtime: Span,
    /// Steps it reported, if it did.
    pub iterations: Option<u64>,
}

/// Expects something of a job.
pub trait Estimator: Send {
    /// What to expect; nothing where there is no ground for it.
    fn estimate(&self, job: &Features) -> Option<Estimate>;

    /// Learns from jobs that ended, the oldest first.
    fn learn(&mut self, done: &[Finished]);
}

impl Features {
    /// The features of a job that this user submits at this time.
    #[must_use]
    pub fn of(user: &str, spec: &JobSpec, submitted_at: Time) -> Features {
        let group = spec.group.as_ref().unwrap_or(&spec.name);
        Features::gathered(user, group, submitted_at, &spec.demand, Trained::of(spec))
    }

    /// The same of a job that has been submitted.
    #[must_use]
    pub fn recorded(record: &JobRecord) -> Features {
        let group = record.group.as_ref().unwrap_or(&record.name);
        let trained = record.trained.clone();
        Features::gathered(&record.user, group, record.submitted_at, &record.demand, trained)
    }

    fn gathered(user: &str, group: &str, submitted_at: Time, demand: &Demand, trained: Trained) -> Features {
        let Trained { model, batch_size, replicas, iterations, .. } = trained;
        let (user, group) = (user.to_owned(), group.to_owned());
        let devices_milli = demand.total_milli();
        Features { user, group, submitted_at, devices_milli, model, batch_size, replicas, iterations }
    }

    /// What the user tells of it; nothing where they tell nothing.
    #[must_use]
    pub fn told(&self) -> Option<Estimate> {
        let basis = "what its submission says".to_owned();
        self.iterations.map(|told| Estimate { iterations: Some(told), basis, ..Estimate::default() })
    }

    /// The hour of the day of its submission, 0 to 23, as the cluster's clock counts days.
    #[must_use]
    pub fn hour(&self) -> u64 {
        self.submitted_secs() / HOUR % 24
    }

    /// The day of the week of its submission, 0 to 6; 0 is the day of the cluster's epoch.
    #[must_use]
    pub fn weekday(&self) -> u64 {
        self.submitted_secs() / DAY % 7
    }

    fn submitted_secs(&self) -> u64 {
        self.submitted_at.as_micros() / 1_000_000
    }
}

/// Expects nothing but what users tell: what a head without predictors uses.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoEstimates;

impl Estimator for NoEstimates {
    fn estimate(&self, job: &Features) -> Option<Estimate> {
        job.told()
    }

    fn learn(&mut self, _: &[Finished]) {}
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Gpus, ModelDescription, Stage};

    use super::*;

    fn stage(replicas: u32) -> Stage {
        Stage {
            replicas,
            compute_seconds: 0.1,
            compute_seconds_on: std::collections::BTreeMap::new(),
            activation_bytes: 0.0,
            gradient_bytes: 0.0,
        }
    }

    #[test]
    fn features_are_what_the_submission_says() {
        let mut spec = JobSpec::command(vec!["/bin/train".into()], "/tmp".into());
        spec.demand = Demand { nodes: 2, gpus: Gpus::Whole(4), ..Demand::default() };
        let plain = Features::of("ada", &spec, Time::EPOCH);
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
        let told = Features::of("ada", &spec, Time::EPOCH);
        assert_eq!((told.group.as_str(), told.model.as_deref()), ("resnet", Some("resnet-50")));
        assert_eq!((told.batch_size, told.replicas, told.iterations), (Some(32), vec![6, 2], Some(4)));
        spec.iterations = Some(7);
        let estimate = NoEstimates.estimate(&Features::of("ada", &spec, Time::EPOCH)).unwrap();
        assert_eq!((estimate.iterations, estimate.runtime), (Some(7), None));
        assert_eq!(NoEstimates.estimate(&plain), None);
    }

    #[test]
    fn the_calendar_counts_from_the_epoch() {
        let at = |secs| Features { submitted_at: Time::EPOCH + Span::from_secs(secs), ..Features::default() };
        let calendar = |secs| (at(secs).hour(), at(secs).weekday());
        assert_eq!(calendar(0), (0, 0));
        assert_eq!(calendar(2 * DAY + 5 * HOUR + 1), (5, 2));
        assert_eq!(calendar(7 * DAY - 1), (23, 6));
    }
}
