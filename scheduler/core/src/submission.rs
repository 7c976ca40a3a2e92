//! What was submitted: shared by all members of an array.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cohabit_policy::{JobTraits, PendingJob};
use cohabit_types::{ArraySummary, Estimate, JobId, JobSpec, JobState, Principal, Role, Submit, Time};
use serde::{Deserialize, Serialize};

use crate::job::Job;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Submission {
    #[serde(with = "cohabit_types::shared")]
    pub(crate) spec: Arc<JobSpec>,
    pub(crate) user: String,
    /// The account as which it runs, where it is not named like the user.
    #[serde(default)]
    pub(crate) account: Option<String>,
    #[serde(default = "role_of_earlier_versions")]
    pub(crate) role: Role,
    pub(crate) submitted_at: Time,
    pub(crate) estimate: Option<Estimate>,
    pub(crate) idempotency_key: Option<String>,
    /// Jobs by state: the members of an array, or the one plain job.
    pub(crate) states: BTreeMap<JobState, u64>,
    /// When the first of them was placed.
    pub(crate) started_at: Option<Time>,
    /// The member whose end was the worst so far: it speaks for an array as a whole.
    pub(crate) speaker: Option<(JobId, JobState)>,
    #[serde(skip)]
    pub(crate) traits: OnceLock<Arc<JobTraits>>,
}

/// What was submitted before roles were kept was promised to run with the rights of the worker.
const fn role_of_earlier_versions() -> Role {
    Role::Admin
}

impl Submission {
    /// As it is before any of its jobs is known.
    pub(crate) fn new(by: &Principal, submit: Submit, now: Time) -> Submission {
        Submission {
            spec: Arc::new(submit.spec),
            user: by.user.clone(),
            account: by.account.clone(),
            role: by.role,
            submitted_at: now,
            estimate: submit.estimate,
            idempotency_key: submit.idempotency_key,
            states: BTreeMap::new(),
            started_at: None,
            speaker: None,
            traits: OnceLock::new(),
        }
    }

    /// A job as it is before anything happened to it; all members of an array begin alike.
    pub(crate) fn initial_job(&self, now: Time) -> Job {
        let spec = &self.spec;
        let mut job = Job::new(if spec.held { JobState::Held } else { JobState::Pending }, now);
        job.not_before = spec.begin.filter(|at| *at > now);
        job.waits_for = spec.depends_on.iter().map(|dependency| dependency.job).collect();
        job
    }

    /// What a policy sees of one of its jobs that could have run since `eligible_at`.
    pub(crate) fn pending(&self, id: JobId, job: &Job, eligible_at: Time) -> PendingJob {
        PendingJob {
            id,
            priority: self.spec.priority,
            submitted_at: self.submitted_at,
            eligible_at,
            demand: job.demand(self),
            traits: self.traits(),
        }
    }

    /// The account as which it runs, where a worker can choose.
    pub(crate) fn account(&self) -> &str {
        self.account.as_ref().unwrap_or(&self.user)
    }

    /// The ids of its jobs.
    pub(crate) fn jobs(&self, number: u64) -> Vec<JobId> {
        match &self.spec.array {
            Some(array) => array.indices().map(|index| JobId::member(number, index)).collect(),
            None => vec![JobId::new(number)],
        }
    }

    pub(crate) fn traits(&self) -> Arc<JobTraits> {
        let make = || Arc::new(JobTraits::of(&self.user, &self.spec, self.estimate.clone()));
        self.traits.get_or_init(make).clone()
    }

    /// Counts new jobs in this state.
    pub(crate) fn count_new(&mut self, state: JobState, jobs: u64) {
        *self.states.entry(state).or_default() += jobs;
    }

    /// Counts a job's change of state.
    pub(crate) fn count(&mut self, from: JobState, to: JobState) {
        if let Some(count) = self.states.get_mut(&from) {
            *count -= 1;
        }
        self.count_new(to, 1);
        self.states.retain(|_, count| *count > 0);
    }

    fn in_state(&self, state: JobState) -> u64 {
        self.states.get(&state).copied().unwrap_or(0)
    }

    /// How many of its members hold devices.
    pub(crate) fn placed(&self) -> u64 {
        self.in_state(JobState::Running) + self.in_state(JobState::Completing)
    }

    /// How many more of its members may be placed.
    pub(crate) fn array_slots_left(&self) -> u64 {
        let limit = self.spec.array.as_ref().and_then(|array| array.at_once);
        limit.map_or(u64::MAX, |limit| u64::from(limit).saturating_sub(self.placed()))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.states.keys().all(|state| state.is_terminal())
    }

    pub(crate) fn summary(&self) -> ArraySummary {
        ArraySummary { members: self.states.values().sum(), states: self.states.clone() }
    }

    /// One state for all members: what most needs saying while some live, the worst end afterwards.
    pub(crate) fn state(&self) -> JobState {
        BY_URGENCY.into_iter().find(|state| self.in_state(*state) > 0).unwrap_or(JobState::Pending)
    }

    /// Lets a member that ended speak for the array, if its end is worse than those before.
    pub(crate) fn note_member_end(&mut self, member: JobId, state: JobState) {
        if self.speaker.is_none_or(|(_, worst)| urgency(state) < urgency(worst)) {
            self.speaker = Some((member, state));
        }
    }
}

/// What most needs saying comes first.
const BY_URGENCY: [JobState; 11] = [
    JobState::Running,
    JobState::Completing,
    JobState::Pending,
    JobState::Held,
    JobState::Failed,
    JobState::NodeFail,
    JobState::OutOfMemory,
    JobState::Timeout,
    JobState::Preempted,
    JobState::Cancelled,
    JobState::Completed,
];

fn urgency(state: JobState) -> Option<usize> {
    BY_URGENCY.iter().position(|it| *it == state)
}
