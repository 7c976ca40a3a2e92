//! The newest jobs that ended, in ledgers by what they have in common, each with what it looked like when it
//! was submitted.
//!
//! A history is of one quantity, in logarithms. It learns nothing from what it keeps.

use std::collections::{BTreeMap, VecDeque};

use cohabit_policy::JobFeatures;
use cohabit_types::Time;

use crate::cohort::Cohort;
use crate::cohort_statistics::CohortStatistics;
use crate::features::{FeatureRow, encode};
use crate::quantity::Quantity;

/// How many of the newest jobs are remembered.
pub(crate) const WINDOW: usize = 20_000;

/// What the jobs of one ledger have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum CohortKey {
    /// User, group and devices.
    Kind(String, String, u64),
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

/// The newest jobs that ended.
#[derive(Debug, Clone)]
pub(crate) struct History {
    quantity: Quantity,
    ledgers: BTreeMap<CohortKey, Cohort>,
    /// The oldest first.
    window: VecDeque<Example>,
    /// How many jobs were ever added.
    added: u64,
    /// The number of the newest ledger.
    last_code: u32,
}

/// A job that ended: which ledgers have it, how it looked at its submission, and what it took.
#[derive(Debug, Clone)]
struct Example {
    scopes: Vec<CohortKey>,
    row: FeatureRow,
    value: f64,
}

impl History {
    pub(crate) fn of(quantity: Quantity) -> History {
        History { quantity, ledgers: BTreeMap::new(), window: VecDeque::new(), added: 0, last_code: 0 }
    }

    /// Adds a job that took this, a logarithm.
    pub(crate) fn add(&mut self, job: &JobFeatures, ended_at: Time, value: f64) {
        let row = self.row(job, &self.past(job));
        let scopes = scopes(job);
        for scope in &scopes {
            self.ledger(scope).add(job.submitted_at, ended_at, value);
        }
        self.window.push_back(Example { scopes, row, value });
        self.added += 1;
        if self.window.len() > WINDOW {
            self.forget_oldest();
        }
    }

    fn ledger(&mut self, scope: &CohortKey) -> &mut Cohort {
        let code = &mut self.last_code;
        self.ledgers.entry(scope.clone()).or_insert_with(|| {
            *code += 1;
            Cohort::new(*code)
        })
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.window.pop_front() else { return };
        for scope in oldest.scopes {
            if let Some(ledger) = self.ledgers.get_mut(&scope) {
                ledger.forget_oldest();
                if ledger.is_empty() {
                    self.ledgers.remove(&scope);
                }
            }
        }
    }

    /// What was known when this job was submitted.
    pub(crate) fn past(&self, job: &JobFeatures) -> CohortStatistics {
        let mut past = CohortStatistics::default();
        for scope in scopes(job) {
            let seen = self.ledgers.get(&scope).and_then(|ledger| ledger.known_at(job.submitted_at));
            match scope {
                CohortKey::Kind(..) => past.kind = seen,
                CohortKey::Group(..) => past.group = seen,
                CohortKey::User(_) => past.user = seen,
                CohortKey::Model(_) => past.model = seen,
                CohortKey::Shape(_) => past.shape = seen,
                CohortKey::All => past.all = seen,
            }
        }
        past
    }

    /// The job as numbers.
    pub(crate) fn row(&self, job: &JobFeatures, past: &CohortStatistics) -> FeatureRow {
        encode(self.quantity, job, past)
    }

    /// How many jobs were ever added.
    pub(crate) fn added(&self) -> u64 {
        self.added
    }

    /// The remembered jobs, the newest first: how each looked at its submission, and what it took.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (&FeatureRow, f64)> {
        self.window.iter().rev().map(|example| (&example.row, example.value))
    }

    /// How many jobs are remembered.
    pub(crate) fn len(&self) -> usize {
        self.window.len()
    }
}

fn scopes(job: &JobFeatures) -> Vec<CohortKey> {
    let (user, group, devices) = (&job.user, &job.group, job.devices_milli);
    let always = [
        CohortKey::Kind(user.clone(), group.clone(), devices),
        CohortKey::Group(user.clone(), group.clone()),
        CohortKey::User(user.clone()),
        CohortKey::Shape(devices),
        CohortKey::All,
    ];
    always.into_iter().chain(job.model.clone().map(CohortKey::Model)).collect()
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
    fn the_closest_jobs_of_which_something_is_known_are_found() {
        let mut history = History::of(Quantity::Runtime);
        history.add(&job("ada", "resnet", 4, 0), at(10), 5.0);
        let nearest = |user, group, gpus| history.past(&job(user, group, gpus, 20)).nearest().unwrap().0;
        assert_eq!(nearest("ada", "resnet", 4), MatchLevel::Kind);
        assert_eq!(nearest("ada", "resnet", 1), MatchLevel::Group);
        assert_eq!(nearest("ada", "bert", 4), MatchLevel::User);
        assert_eq!(nearest("eve", "resnet", 4), MatchLevel::Shape);
        assert_eq!(nearest("eve", "resnet", 1), MatchLevel::All);
        assert_eq!(history.past(&job("ada", "resnet", 4, 9)).nearest(), None);
    }

    #[test]
    fn an_example_looks_as_the_job_did_at_its_submission() {
        let mut history = History::of(Quantity::Runtime);
        let late = job("ada", "resnet", 4, 20);
        history.add(&job("ada", "resnet", 4, 0), at(10), 5.0);
        let asked = history.row(&late, &history.past(&late));
        history.add(&job("ada", "resnet", 4, 1), at(30), 7.0);
        history.add(&late, at(40), 9.0);
        assert_eq!(history.newest().next(), Some((&asked, 9.0)));
    }

    #[test]
    fn only_the_newest_jobs_are_remembered() {
        let mut history = History::of(Quantity::Runtime);
        history.add(&job("ada", "once", 4, 0), at(1), 5.0);
        (0..WINDOW as u64).for_each(|secs| history.add(&job("eve", "often", 1, secs), at(secs + 1), 1.0));
        assert_eq!((history.len(), history.added()), (WINDOW, WINDOW as u64 + 1));
        let past = history.past(&job("ada", "once", 4, 1_000_000));
        assert_eq!((past.kind, past.user, past.shape), (None, None, None));
        assert_eq!(past.all.unwrap().count, WINDOW as u64);
    }

    #[test]
    fn jobs_of_the_same_model_are_known_to_each_other() {
        let mut history = History::of(Quantity::Runtime);
        let of_model = |user, secs| JobFeatures { model: Some("bert".into()), ..job(user, "a", 1, secs) };
        history.add(&of_model("ada", 0), at(5), 3.0);
        assert_eq!(history.past(&of_model("eve", 6)).model.unwrap().last, 3.0);
        assert_eq!(history.past(&job("eve", "a", 1, 6)).model, None);
    }
}
