//! A submission: what all members of an array share.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_policy::{JobTraits, PendingJob};
use cohabit_types::{
    ApplicationRole, ArraySummary, Demand, Estimate, JobId, JobSpec, JobState, Principal, Role, RunnerRole,
    Submit, Time,
};

use crate::job::{Job, WaitingJob};
use crate::terminal_state::TerminalState;

/// An array with more members stays in memory for the whole retention: nobody should have to restore it at
/// once.
const MOST_ARCHIVED_MEMBERS: u64 = 10_000;

/// What a user submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmissionState {
    /// The specification.
    pub spec: Arc<JobSpec>,
    /// Who submitted it.
    pub user: String,
    /// The account that it runs as, if that differs from the user's name.
    pub account: Option<String>,
    /// The role of the user's token.
    pub role: Role,
    /// When.
    pub submitted_at: Time,
    /// What was predicted for it at its submission.
    pub estimate: Option<Estimate>,
    /// The key under which the user may submit it again without a second job.
    pub idempotency_key: Option<String>,
    /// How many of its jobs are in each state: the members of an array, or the one plain job.
    pub state_counts: BTreeMap<JobState, u64>,
    /// When the first of its jobs was placed.
    pub first_started_at: Option<Time>,
    /// The member whose end was the worst so far: it represents the array as a whole.
    pub worst_member: Option<(JobId, TerminalState)>,
}

impl SubmissionState {
    /// A submission none of whose jobs is known yet.
    pub(crate) fn new(by: &Principal, submit: Submit, now: Time) -> SubmissionState {
        SubmissionState {
            spec: Arc::new(submit.spec),
            user: by.user.clone(),
            account: by.account.clone(),
            role: by.role,
            submitted_at: now,
            estimate: submit.estimate,
            idempotency_key: submit.idempotency_key,
            state_counts: BTreeMap::new(),
            first_started_at: None,
            worst_member: None,
        }
    }

    /// A job of it to which nothing has happened yet; all members of an array begin alike.
    pub(crate) fn initial_job(&self, now: Time) -> Job {
        let spec = &self.spec;
        Job::new(WaitingJob {
            held: spec.held,
            has_dependencies: !spec.depends_on.is_empty(),
            not_before: spec.begin.filter(|at| *at > now),
            eligible_at: now,
            prefetched: None,
        })
    }

    /// What a policy sees of a job of it that has been eligible since `eligible_at`.
    pub(crate) fn pending(
        &self,
        id: JobId,
        job: &Job,
        eligible_at: Time,
        traits: Arc<JobTraits>,
        demand: Demand,
    ) -> PendingJob {
        PendingJob {
            id,
            priority: self.spec.priority,
            submitted_at: self.submitted_at,
            eligible_at,
            demand,
            attained: job.attained(),
            traits,
        }
    }

    /// The account that it runs as, where the worker may switch accounts.
    pub(crate) fn account(&self) -> &str {
        self.account.as_ref().unwrap_or(&self.user)
    }

    /// Whether its jobs are stores of applications, which claim nothing and start without a plan.
    pub(crate) fn is_store(&self) -> bool {
        self.spec.entrypoint.role() == Some(ApplicationRole::Runner(RunnerRole::Store))
    }

    /// The ids of its jobs.
    pub(crate) fn jobs(&self, number: u64) -> Vec<JobId> {
        match &self.spec.array {
            Some(array) => array.indices().map(|index| JobId::member(number, index)).collect(),
            None => vec![JobId::new(number)],
        }
    }

    /// What a policy knows of its jobs besides their demand.
    pub(crate) fn traits(&self) -> JobTraits {
        JobTraits::of(&self.user, &self.spec, self.estimate.clone())
    }

    /// About how many bytes it and its members take in memory and in the journal.
    pub(crate) fn weight(&self) -> u64 {
        let key = self.idempotency_key.as_ref().map_or(0, String::len);
        self.spec.footprint() + key as u64
    }

    /// Counts new jobs in this state.
    pub(crate) fn count_new(&mut self, state: JobState, jobs: u64) {
        *self.state_counts.entry(state).or_default() += jobs;
    }

    /// Counts a job's change of state.
    pub(crate) fn count(&mut self, from: JobState, to: JobState) {
        if let Some(count) = self.state_counts.get_mut(&from) {
            *count -= 1;
        }
        self.count_new(to, 1);
        self.state_counts.retain(|_, count| *count > 0);
    }

    fn in_state(&self, state: JobState) -> u64 {
        self.state_counts.get(&state).copied().unwrap_or(0)
    }

    /// How many of its members hold devices.
    pub(crate) fn placed(&self) -> u64 {
        self.in_state(JobState::Running).saturating_add(self.in_state(JobState::Completing))
    }

    /// How many more of its members may be placed.
    pub(crate) fn array_slots_left(&self) -> u64 {
        let limit = self.spec.array.as_ref().and_then(|array| array.at_once);
        limit.map_or(u64::MAX, |limit| u64::from(limit).saturating_sub(self.placed()))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state_counts.keys().all(|state| state.is_terminal())
    }

    /// Whether it may leave memory: all its jobs have ended, and they are not too many to be restored.
    pub(crate) fn may_be_archived(&self) -> bool {
        self.end_state().is_some() && self.spec.members() <= MOST_ARCHIVED_MEMBERS
    }

    pub(crate) fn summary(&self) -> ArraySummary {
        ArraySummary { members: self.state_counts.values().sum(), states: self.state_counts.clone() }
    }

    /// One state for all its jobs: the most urgent to know while some are live, the worst end afterwards.
    pub(crate) fn state(&self) -> JobState {
        let present = self.state_counts.iter().filter(|(_, count)| **count > 0).map(|(state, _)| *state);
        present.min_by_key(|state| urgency(*state)).unwrap_or(JobState::Pending)
    }

    /// How it ended, an array as its worst member; none while one of its jobs has not.
    pub(crate) fn end_state(&self) -> Option<TerminalState> {
        TerminalState::of(self.state())
    }

    /// Lets a member that ended represent the array, if its end is worse than those before.
    pub(crate) fn note_member_end(&mut self, member: JobId, state: TerminalState) {
        let urgency_of = |state: TerminalState| urgency(state.job_state());
        if self.worst_member.is_none_or(|(_, worst)| urgency_of(state) < urgency_of(worst)) {
            self.worst_member = Some((member, state));
        }
    }
}

/// How urgent it is to know that a job of an array is in this state; 0 is the most urgent.
const fn urgency(state: JobState) -> u8 {
    match state {
        JobState::Running => 0,
        JobState::Completing => 1,
        JobState::Pending => 2,
        JobState::Held => 3,
        JobState::Failed => 4,
        JobState::NodeFail => 5,
        JobState::OutOfMemory => 6,
        JobState::Timeout => 7,
        JobState::Preempted => 8,
        JobState::Cancelled => 9,
        JobState::Completed => 10,
    }
}
