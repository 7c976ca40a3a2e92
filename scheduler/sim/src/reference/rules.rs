//! The rules that each step of a job has to keep.

use cohabit_scheduler_core::Event;
use cohabit_types::{
    ApplicationRole, DependencyKind, Entrypoint, JobId, JobSpec, JobState, ReasonCode, RunnerRole, Time,
};

use super::observed::{ObservedAttempt, ObservedJob};
use super::{HandledEvent, JobEnd, JobTransition, ReferenceModel};

/// So many of the attempts that ended are kept.
const KEPT_ATTEMPTS: usize = 256;

impl ReferenceModel {
    /// Checks every rule for one step of a job.
    pub(super) fn check_step(&self, it: &HandledEvent<'_>, step: &JobTransition) -> Result<(), String> {
        let wrong = |what: String| format!("job {}: {what}", step.id);
        check_history_unchanged(step).map_err(wrong)?;
        self.check_state(step).map_err(wrong)?;
        if let Some(attempt) = started(step) {
            self.check_start(it, step, attempt).map_err(wrong)?;
        }
        self.check_outcomes(it, step).map_err(wrong)?;
        self.check_end(step).map_err(wrong)
    }

    /// Checks that the state agrees with the attempts and with the requests of users.
    fn check_state(&self, step: &JobTransition) -> Result<(), String> {
        let (after, requests) = (&step.after, &self.jobs[&step.id].requests);
        let is_placed = matches!(after.state, JobState::Running | JobState::Completing);
        if is_placed != after.live().is_some() {
            return Err(format!("it is {} and has {} attempts", after.state, after.attempts.len()));
        }
        let is = |state| after.state == state;
        let why_not = match () {
            () if is(JobState::Held) && !requests.held => "it is held, but nobody asked for that",
            () if is(JobState::Pending) && requests.held => "it is pending, but should be held",
            () if is(JobState::Pending) && requests.cancelled && !self.prefetched.contains_key(&step.id) => {
                "it is pending, but was cancelled"
            }
            () => return Ok(()),
        };
        Err(why_not.into())
    }

    /// Checks that a new attempt was started by a plan, or took the place of another member of its array, for
    /// a job that only waited for resources.
    fn check_start(
        &self,
        it: &HandledEvent<'_>,
        step: &JobTransition,
        attempt: &ObservedAttempt,
    ) -> Result<(), String> {
        let (spec, requests) = (&self.specs[&step.id.number], &self.jobs[&step.id].requests);
        let user = &self.users[&step.id.number];
        let is_store = spec.entrypoint.role() == Some(ApplicationRole::Runner(RunnerRole::Store));
        let by_plan = is_store || matches!(it.event, Event::Planned(..));
        let was_prefetched = self.follows_an_end(step.id, attempt);
        let unplanned = !by_plan && !was_prefetched;
        let unplanned = unplanned.then(|| self.why_no_successor(it, step.id, attempt)).flatten();
        let ordered = (0..attempt.ranks.len() as u32)
            .all(|rank| self.ordered.contains_key(&step.id.attempt(attempt.number).rank(rank)));
        let why_not = match () {
            () if unplanned.is_some() => unplanned.as_deref().unwrap_or_default(),
            () if attempt.started_at != it.at => "at another time",
            // A store may end and be started again by one event.
            () if !is_store && step.before.state != JobState::Pending => "it was not pending",
            () if requests.cancelled && !was_prefetched => "it was cancelled",
            () if requests.held => "it is held",
            () if !was_prefetched
                && !requests.requeued_after_end
                && spec.begin.is_some_and(|begin| begin > it.at) =>
            {
                "its begin time has not come"
            }
            () if !self.are_dependencies_met(step.id) => "its dependencies are not met",
            () if !ordered => "not all of its ranks were ordered",
            () if !self.array_has_room(step.id.number) => "its array is at its limit",
            () if is_store && self.reserved.forbid_store(user, spec, attempt, it.at) => {
                "its node is reserved for others, or will be so soon that it is stopped at once"
            }
            () if !is_store && !was_prefetched && self.runs_into_a_reservation(step.id, attempt, it.at) => {
                "a node of it is reserved for others before it may have left"
            }
            () if !self.is_on_its_node(spec, attempt) => "it is on a node on which it may not run",
            () => return Ok(()),
        };
        Err(format!("attempt {} was started, but {why_not}", attempt.number))
    }

    /// A child of an application ends with its root.
    fn runs_into_a_reservation(&self, id: JobId, attempt: &ObservedAttempt, at: Time) -> bool {
        let spec = &self.specs[&id.number];
        let ends_it = match &spec.entrypoint {
            Entrypoint::Runner(work) => self.specs.get(&work.application.job.number).unwrap_or(spec),
            Entrypoint::Command(_) | Entrypoint::Application(_) => spec,
        };
        self.reserved.forbid_start(&self.users[&id.number], ends_it, attempt, at)
    }

    /// Whether a child of an application is where it has to be: a main on the node of its root, a store on
    /// the one that it names, and the others anywhere.
    fn is_on_its_node(&self, spec: &JobSpec, attempt: &ObservedAttempt) -> bool {
        let Entrypoint::Runner(work) = &spec.entrypoint else { return true };
        let node = |attempt: &ObservedAttempt| attempt.ranks.first().map(|rank| rank.node.clone());
        match work.role {
            RunnerRole::Actor | RunnerRole::Tasks => true,
            RunnerRole::Store => node(attempt) == work.node,
            RunnerRole::Main => {
                let root = self.jobs.get(&work.application.job).map(|root| &root.observed.attempts);
                let root = root.and_then(|all| all.iter().find(|it| it.number == work.application.attempt));
                root.is_some_and(|root| node(root) == node(attempt))
            }
        }
    }

    /// Whether the dependencies of a job are met; a requeued job has none.
    pub(super) fn are_dependencies_met(&self, id: JobId) -> bool {
        let depends_on = &self.specs[&id.number].depends_on;
        self.jobs[&id].requests.requeued_after_end
            || depends_on.iter().all(|it| self.has_ended(it.job, it.when))
    }

    fn has_ended(&self, job: JobId, when: DependencyKind) -> bool {
        let ended = |end: JobEnd| self.ends.get(&job).is_some_and(|ends| ends.contains(&end));
        match when {
            DependencyKind::AfterAny => ended(JobEnd::Succeeded) || ended(JobEnd::Failed),
            DependencyKind::AfterOk => ended(JobEnd::Succeeded),
            DependencyKind::AfterNotOk => ended(JobEnd::Failed),
        }
    }

    /// Whether a job may be cancelled because a dependency can no longer be met.
    pub(super) fn has_failed_dependency(&self, id: JobId) -> bool {
        self.specs[&id.number].depends_on.iter().any(|it| match it.when {
            DependencyKind::AfterAny => false,
            DependencyKind::AfterOk => self.has_ended(it.job, DependencyKind::AfterNotOk),
            DependencyKind::AfterNotOk => self.has_ended(it.job, DependencyKind::AfterOk),
        })
    }

    /// Whether a job is a child, and the attempt of its root to which it belongs has ended.
    pub(super) fn has_application_ended(&self, id: JobId) -> bool {
        let parent = self.specs.get(&id.number).and_then(|spec| spec.entrypoint.parent());
        let root = parent.and_then(|parent| Some((parent, self.jobs.get(&parent.job)?)));
        root.is_some_and(|(parent, root)| {
            let mut attempts = root.observed.attempts.iter();
            attempts.any(|attempt| attempt.number == parent.attempt && attempt.ended_at.is_some())
        })
    }

    fn array_has_room(&self, number: u64) -> bool {
        let limit = self.specs[&number].array.as_ref().and_then(|array| array.at_once);
        let members = JobId::new(number)..=JobId::member(number, u32::MAX);
        let live = self.jobs.range(members).filter(|(_, job)| job.observed.live().is_some()).count();
        limit.is_none_or(|limit| live <= limit as usize)
    }

    /// Checks the end of a job that had no live attempt.
    pub(super) fn check_end_without_attempt(&self, id: JobId, after: &ObservedJob) -> Result<(), String> {
        let cancelled = self.jobs[&id].requests.cancelled;
        match (after.state, after.reason) {
            (JobState::Cancelled, ReasonCode::DependencyFailed) if self.has_failed_dependency(id) => Ok(()),
            (JobState::Cancelled, ReasonCode::CancelledByUser) if cancelled => Ok(()),
            (JobState::Cancelled, ReasonCode::ApplicationEnded) if self.has_application_ended(id) => Ok(()),
            (state, reason) => Err(format!("it was waiting and is now {state} ({reason:?}) without a cause")),
        }
    }
}

/// The attempt that began in this step.
pub(super) fn started(step: &JobTransition) -> Option<&ObservedAttempt> {
    step.after.attempts.last().filter(|attempt| attempt.number > step.before.latest_number())
}

/// Checks that attempts are numbered without gaps, only the last one is live, the latest ones are kept, and
/// nothing known of them has changed.
fn check_history_unchanged(step: &JobTransition) -> Result<(), String> {
    let (before, after) = (&step.before.attempts, &step.after.attempts);
    let numbers: Vec<u32> = after.iter().map(|attempt| attempt.number).collect();
    let (known, latest) = (step.before.latest_number(), step.after.latest_number());
    let oldest = numbers.first().copied().unwrap_or(1);
    if !numbers.iter().copied().eq(oldest..=latest) || !(known..=known + 1).contains(&latest) {
        return Err(format!("after attempt {known} they are numbered {numbers:?}"));
    }
    let ended = after.iter().filter(|attempt| attempt.ended_at.is_some()).count();
    let is_whole = oldest == 1 && ended <= KEPT_ATTEMPTS;
    if !is_whole && ended != KEPT_ATTEMPTS {
        return Err(format!("of {latest} attempts {ended} that ended are kept"));
    }
    let earlier = &after[..after.len().saturating_sub(1)];
    if let Some(alive) = earlier.iter().find(|attempt| attempt.ended_at.is_none()) {
        return Err(format!("attempt {} has not ended, and there is another", alive.number));
    }
    let is_as_known =
        |it: &ObservedAttempt| step.after.attempt(it.number).is_some_and(|now| now.continues(it));
    if !before.iter().filter(|it| it.number >= oldest).all(is_as_known) {
        return Err(format!("what was known of its attempts has changed: {before:?} is now {after:?}"));
    }
    Ok(())
}
