//! The most recent ended jobs, in cohorts by what they have in common, each with its features at submission.
//!
//! A history is for one quantity, in logarithms. It keeps jobs and learns nothing from them.

use std::collections::{BTreeMap, VecDeque};

use cohabit_policy::JobFeatures;
use cohabit_types::Time;

use crate::cohort::Cohort;
use crate::cohort_statistics::CohortStatistics;
use crate::features::{FeatureRow, encode};
use crate::quantity::Quantity;

/// The number of jobs that are remembered.
pub(crate) const WINDOW: usize = 20_000;

/// What the jobs of one cohort have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum CohortKey {
    /// User, group, devices, and what the job says that it trains.
    Kind { user: String, group: String, devices_milli: u64, model: Option<String>, batch_size: Option<u64> },
    /// User, group and devices.
    GroupDevices(String, String, u64),
    /// User and group.
    Group(String, String),
    /// The user.
    User(String),
    /// The model.
    Model(String),
    /// The devices.
    Shape(u64),
    /// Nothing.
    All,
}

/// The most recent ended jobs.
#[derive(Debug, Clone)]
pub(crate) struct History {
    quantity: Quantity,
    cohorts: BTreeMap<CohortKey, Cohort>,
    /// The oldest first.
    window: VecDeque<Example>,
    /// The number of jobs ever added.
    added: u64,
    /// The code of the newest cohort.
    last_cohort_code: u32,
}

/// An ended job: its cohorts, its features at submission, and its value.
#[derive(Debug, Clone)]
struct Example {
    cohort_keys: Vec<CohortKey>,
    row: FeatureRow,
    value: f64,
}

impl History {
    pub(crate) fn of(quantity: Quantity) -> History {
        History { quantity, cohorts: BTreeMap::new(), window: VecDeque::new(), added: 0, last_cohort_code: 0 }
    }

    /// Adds a job with this value, a logarithm.
    pub(crate) fn add(&mut self, job: &JobFeatures, ended_at: Time, value: f64) {
        let row = self.row(job, &self.past(job));
        let cohort_keys = cohort_keys(job);
        for key in &cohort_keys {
            self.cohort(key).add(job.submitted_at, ended_at, value);
        }
        self.window.push_back(Example { cohort_keys, row, value });
        self.added += 1;
        if self.window.len() > WINDOW {
            self.forget_oldest();
        }
    }

    fn cohort(&mut self, key: &CohortKey) -> &mut Cohort {
        let code = &mut self.last_cohort_code;
        self.cohorts.entry(key.clone()).or_insert_with(|| {
            *code += 1;
            Cohort::new(*code)
        })
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.window.pop_front() else { return };
        for key in oldest.cohort_keys {
            if let Some(cohort) = self.cohorts.get_mut(&key) {
                cohort.forget_oldest();
                if cohort.is_empty() {
                    self.cohorts.remove(&key);
                }
            }
        }
    }

    /// What was known when this job was submitted.
    pub(crate) fn past(&self, job: &JobFeatures) -> CohortStatistics {
        let mut past = CohortStatistics::default();
        for key in cohort_keys(job) {
            let statistics = self.cohorts.get(&key).and_then(|cohort| cohort.statistics_at(job.submitted_at));
            match key {
                CohortKey::Kind { .. } => past.kind = statistics,
                CohortKey::GroupDevices(..) => past.group_devices = statistics,
                CohortKey::Group(..) => past.group = statistics,
                CohortKey::User(_) => past.user = statistics,
                CohortKey::Model(_) => past.model = statistics,
                CohortKey::Shape(_) => past.shape = statistics,
                CohortKey::All => past.all = statistics,
            }
        }
        past
    }

    /// The features of the job.
    pub(crate) fn row(&self, job: &JobFeatures, past: &CohortStatistics) -> FeatureRow {
        encode(self.quantity, job, past)
    }

    /// The number of jobs ever added.
    pub(crate) fn added(&self) -> u64 {
        self.added
    }

    /// The remembered jobs, the newest first: features at submission and value.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (&FeatureRow, f64)> {
        self.window.iter().rev().map(|example| (&example.row, example.value))
    }

    /// The number of remembered jobs.
    pub(crate) fn len(&self) -> usize {
        self.window.len()
    }
}

fn cohort_keys(job: &JobFeatures) -> Vec<CohortKey> {
    let (user, group, devices) = (&job.user, &job.group, job.devices_milli);
    let always = [
        CohortKey::GroupDevices(user.clone(), group.clone(), devices),
        CohortKey::Group(user.clone(), group.clone()),
        CohortKey::User(user.clone()),
        CohortKey::Shape(devices),
        CohortKey::All,
    ];
    let kind = (job.model.is_some() || job.batch_size.is_some()).then(|| CohortKey::Kind {
        user: user.clone(),
        group: group.clone(),
        devices_milli: devices,
        model: job.model.clone(),
        batch_size: job.batch_size,
    });
    always.into_iter().chain(kind).chain(job.model.clone().map(CohortKey::Model)).collect()
}

#[cfg(test)]
mod tests {
    use cohabit_types::Span;

    use super::*;
    use crate::cohort_statistics::MatchLevel;

    fn at(secs: u64) -> Time {
        Time::EPOCH + Span::from_secs(secs)
    }

    fn job(user: &str, group: &str, gpus: u64, secs: u64) -> JobFeatures {
        JobFeatures {
            user: user.into(),
            group: group.into(),
            devices_milli: gpus * 1_000,
            submitted_at: at(secs),
            ..JobFeatures::default()
        }
    }

    #[test]
    fn the_closest_cohort_with_an_ended_job_is_found() {
        let mut history = History::of(Quantity::Runtime);
        history.add(&job("ada", "resnet", 4, 0), at(10), 5.0);
        let nearest = |user, group, gpus| history.past(&job(user, group, gpus, 20)).nearest().unwrap().0;
        assert_eq!(nearest("ada", "resnet", 4), MatchLevel::GroupDevices);
        assert_eq!(nearest("ada", "resnet", 1), MatchLevel::Group);
        assert_eq!(nearest("ada", "bert", 4), MatchLevel::User);
        assert_eq!(nearest("eve", "resnet", 4), MatchLevel::Shape);
        assert_eq!(nearest("eve", "resnet", 1), MatchLevel::All);
        assert_eq!(history.past(&job("ada", "resnet", 4, 9)).nearest(), None);
    }

    #[test]
    fn jobs_that_train_the_same_are_the_closest_once_there_are_a_few() {
        let mut history = History::of(Quantity::Runtime);
        let trains = |model: &str, secs| {
            let model = Some(model.into());
            JobFeatures { model, batch_size: Some(32), ..job("ada", "sweep", 1, secs) }
        };
        let nearest = |history: &History| history.past(&trains("bert", 1_000)).nearest().unwrap();
        history.add(&trains("bert", 0), at(10), 9.0);
        (0..9).for_each(|secs| history.add(&trains("resnet", secs), at(20), 1.0));
        let (match_level, statistics) = nearest(&history);
        assert_eq!((match_level, statistics.median), (MatchLevel::GroupDevices, 1.0));
        (0..2).for_each(|secs| history.add(&trains("bert", secs), at(30), 9.0));
        let (match_level, statistics) = nearest(&history);
        assert_eq!((match_level, statistics.median), (MatchLevel::Kind, 9.0));
        let other_batch = JobFeatures { batch_size: Some(8), ..trains("bert", 1_000) };
        assert_eq!(history.past(&other_batch).nearest().unwrap().0, MatchLevel::GroupDevices);
    }

    #[test]
    fn an_example_has_the_features_at_its_submission() {
        let mut history = History::of(Quantity::Runtime);
        let late = job("ada", "resnet", 4, 20);
        history.add(&job("ada", "resnet", 4, 0), at(10), 5.0);
        let expected = history.row(&late, &history.past(&late));
        history.add(&job("ada", "resnet", 4, 1), at(30), 7.0);
        history.add(&late, at(40), 9.0);
        assert_eq!(history.newest().next(), Some((&expected, 9.0)));
    }

    #[test]
    fn only_the_newest_jobs_are_remembered() {
        let mut history = History::of(Quantity::Runtime);
        history.add(&job("ada", "once", 4, 0), at(1), 5.0);
        (0..WINDOW as u64).for_each(|secs| history.add(&job("eve", "often", 1, secs), at(secs + 1), 1.0));
        assert_eq!((history.len(), history.added()), (WINDOW, WINDOW as u64 + 1));
        let past = history.past(&job("ada", "once", 4, 1_000_000));
        assert_eq!((past.group_devices, past.user, past.shape), (None, None, None));
        assert_eq!(past.all.unwrap().count, WINDOW as u64);
    }

    #[test]
    fn jobs_of_the_same_model_form_a_cohort() {
        let mut history = History::of(Quantity::Runtime);
        let of_model = |user, secs| JobFeatures { model: Some("bert".into()), ..job(user, "a", 1, secs) };
        history.add(&of_model("ada", 0), at(5), 3.0);
        assert_eq!(history.past(&of_model("eve", 6)).model.unwrap().last, 3.0);
        assert_eq!(history.past(&job("eve", "a", 1, 6)).model, None);
    }
}
