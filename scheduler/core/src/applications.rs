//! Applications: root jobs, and the child jobs that run parts of their programs.
//!
//! A child belongs to one attempt of its root. It counts against the ceiling of the application, and ends
//! when the attempt ends. What the children are for is decided by the application's own coordinator, which
//! submits them. On which nodes they run is decided in `application_nodes`.

use cohabit_types::{
    ApplicationRecord, ApplicationWork, AttemptId, Demand, Entrypoint, JobId, JobPhase, JobSpec, Principal,
    ReasonCode, Refusal, RefusalCode, RunnerCount, RunnerRole, RunnerWork, Share, StopReason,
};

use crate::application_index::ApplicationIndex;
use crate::head::Head;
use crate::job::JobStatus;
use crate::submission::SubmissionState;
use crate::terminal_state::TerminalState;
use crate::transition::Transition;

/// The most children of one application that have not ended.
const MOST_RUNNERS: usize = 1_000;

impl Transition<'_> {
    /// An attempt of the root of an application ended: its children end, too. They keep their grace, unless
    /// somebody did not want to wait.
    pub(crate) fn end_children(&mut self, application: AttemptId, stopped: Option<StopReason>) {
        let why = match stopped {
            Some(StopReason::Killed) => StopReason::Killed,
            Some(_) | None => StopReason::ApplicationEnded,
        };
        self.head.volatile.applications.forget_mains(application.job);
        let children = self.head.volatile.applications.children(application.job);
        for child in children.collect::<Vec<_>>() {
            if self.head.application_of(child) == Some(application) {
                self.end_child(child, why);
            }
        }
    }

    fn end_child(&mut self, id: JobId, why: StopReason) {
        match self.head.jobs.get(&id).map(|job| job.state().phase()) {
            Some(JobPhase::Waiting) => {
                self.end_job(id, TerminalState::Cancelled, ReasonCode::ApplicationEnded);
            }
            Some(JobPhase::Placed) => match &mut self.job_mut(id).status {
                JobStatus::Stopping(_, StopReason::Cancelled | StopReason::Killed) => {}
                JobStatus::Stopping(_, present) => *present = why,
                JobStatus::Running(_) | JobStatus::Waiting(_) | JobStatus::Ended(_) => {
                    self.stop_attempt(id, why);
                }
            },
            Some(JobPhase::Ended) | None => {}
        }
    }
}

impl Head {
    /// The attempt of the root to which a child belongs.
    pub(crate) fn application_of(&self, child: JobId) -> Option<AttemptId> {
        self.submissions.get(&child.number)?.spec.entrypoint.parent()
    }

    /// Refuses a part of an application that may not be submitted.
    pub(crate) fn check_application(&self, by: &Principal, spec: &JobSpec) -> Result<(), Refusal> {
        match &spec.entrypoint {
            Entrypoint::Command(_) => Ok(()),
            Entrypoint::Application(_) => self.check_name(&by.user, &spec.name),
            Entrypoint::Runner(work) => self.check_runner(by, work, spec),
        }
    }

    /// Refuses a second live application of this user with this name.
    fn check_name(&self, user: &str, name: &str) -> Result<(), Refusal> {
        let Some(root) = self.volatile.applications.root(user, name) else { return Ok(()) };
        Err(wrong_state(format!(
            "application '{name}' of {user} has not ended: it is job {root}. Launch the same program to join it, wait \
             for its end, or cancel it"
        )))
    }

    fn check_runner(&self, by: &Principal, work: &RunnerWork, spec: &JobSpec) -> Result<(), Refusal> {
        let root = work.application.job;
        let owner = self.submissions.get(&root.number);
        let Some((owner, application)) = owner.and_then(|it| Some((it, application_work(it)?))) else {
            return Err(Refusal::new(RefusalCode::NotFound, format!("there is no application {root}")));
        };
        if owner.user != by.user {
            let message = format!(
                "application {root} belongs to {}: only {} can run parts of it",
                owner.user, owner.user
            );
            return Err(Refusal::new(RefusalCode::NotAllowed, message));
        }
        if self.live_application(work.application).is_none() {
            let message =
                format!("attempt {} of application {root} does not run (any more)", work.application.attempt);
            return Err(wrong_state(message));
        }
        let hash = |spec: &JobSpec| spec.code.as_ref().map(|code| code.manifest);
        if hash(&owner.spec) != hash(spec) || application.program != work.program {
            let message = format!("application {root} runs another program: all its parts run one file");
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        if self.volatile.applications.children(root).count() >= MOST_RUNNERS {
            let message =
                format!("application {root} has {MOST_RUNNERS} runners, the most that one may have");
            return Err(Refusal::new(RefusalCode::Unsatisfiable, message));
        }
        self.check_second_store(work)?;
        self.check_ceiling(work.application, application, &spec.demand)
    }

    /// Refuses a second store on a node: stores do not count for the limit of their user.
    fn check_second_store(&self, work: &RunnerWork) -> Result<(), Refusal> {
        let Some(node) = work.node.as_ref().filter(|_| work.role == RunnerRole::Store) else { return Ok(()) };
        let is_like_it =
            |child: &JobId| match self.submissions.get(&child.number).map(|it| &it.spec.entrypoint) {
                Some(Entrypoint::Runner(other)) => {
                    other.application == work.application && other.node.as_ref() == Some(node)
                }
                Some(Entrypoint::Command(_) | Entrypoint::Application(_)) | None => false,
            };
        let goes_on = |child: &JobId| self.jobs.get(child).is_some_and(|job| job.stop_requested().is_none());
        let mut stores = self.volatile.applications.children(work.application.job).filter(is_like_it);
        match stores.find(goes_on) {
            Some(store) => Err(wrong_state(format!(
                "application {} has a store on node {node} already: it is job {store}",
                work.application.job
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a child with which an application would hold more GPUs than it may.
    fn check_ceiling(
        &self,
        application: AttemptId,
        work: &ApplicationWork,
        demand: &Demand,
    ) -> Result<(), Refusal> {
        let Some(max_gpus) = work.max_gpus else { return Ok(()) };
        let children = self.volatile.applications.children(application.job);
        let siblings = children.filter(|child| self.application_of(*child) == Some(application));
        let held: u64 = siblings
            .filter_map(|it| self.submissions.get(&it.number))
            .map(|it| thousandths(&it.spec.demand))
            .sum();
        let wanted = thousandths(demand);
        if held + wanted <= u64::from(max_gpus) * u64::from(Share::WHOLE.0) {
            return Ok(());
        }
        let gpus = |thousandths: u64| thousandths as f64 / f64::from(Share::WHOLE.0);
        Err(Refusal::new(
            RefusalCode::Unsatisfiable,
            format!(
                "the runners of application {} hold {} GPUs and this one needs {}, but together they may hold \
                 {max_gpus}: end some, or raise max_gpus",
                application.job,
                gpus(held),
                gpus(wanted)
            ),
        ))
    }

    /// Refuses to queue an ended part of an application again.
    pub(crate) fn check_application_requeue(&self, id: JobId) -> Result<(), Refusal> {
        let Some(submission) = self.submissions.get(&id.number) else { return Ok(()) };
        match &submission.spec.entrypoint {
            Entrypoint::Command(_) => Ok(()),
            Entrypoint::Application(_) => self.check_name(&submission.user, &submission.spec.name),
            Entrypoint::Runner(work) => Err(wrong_state(format!(
                "job {id} was a part of application {}, which no longer waits for it: launch the application again",
                work.application.job
            ))),
        }
    }

    /// The user of an application and its account, if this attempt of its root runs and is not being stopped.
    #[must_use]
    pub fn live_application(&self, application: AttemptId) -> Option<Principal> {
        let submission = self.submissions.get(&application.job.number)?;
        application_work(submission)?;
        let job = self.jobs.get(&application.job)?;
        let is_live = job.stop_requested().is_none()
            && job.live_attempt().is_some_and(|attempt| attempt.number == application.attempt);
        let account = submission.account.clone();
        is_live.then(|| Principal { account, ..Principal::new(submission.user.clone(), submission.role) })
    }

    /// The attempt of an application that runs and is not being stopped, and on whose behalf.
    #[must_use]
    pub fn running_application(&self, root: JobId) -> Option<(AttemptId, Principal)> {
        let attempt = root.attempt(self.jobs.get(&root)?.live_attempt()?.number);
        Some((attempt, self.live_application(attempt)?))
    }

    /// Whether a job is the root of an application.
    #[must_use]
    pub fn is_application(&self, job: JobId) -> bool {
        self.submissions.get(&job.number).is_some_and(|submission| application_work(submission).is_some())
    }

    /// The root jobs of all applications that have not ended.
    pub fn live_roots(&self) -> impl Iterator<Item = JobId> + '_ {
        self.volatile.applications.roots()
    }

    /// Whether a job is a child of this attempt of an application.
    #[must_use]
    pub fn is_child(&self, job: JobId, application: AttemptId) -> bool {
        self.application_of(job) == Some(application)
    }

    /// The applications of a user that have not ended, in the order of their names.
    #[must_use]
    pub fn applications(&self, user: &str) -> Vec<ApplicationRecord> {
        let roots = self.volatile.applications.roots_of(user);
        roots.filter_map(|root| self.application_record(root)).collect()
    }

    /// The applications of all users that have not ended, by user and name.
    #[must_use]
    pub fn all_applications(&self) -> Vec<ApplicationRecord> {
        self.live_roots().filter_map(|root| self.application_record(root)).collect()
    }

    /// The application with this root job, if it has not ended.
    #[must_use]
    pub fn application(&self, root: JobId) -> Option<ApplicationRecord> {
        self.application_record(root).filter(|application| !application.state.is_terminal())
    }

    fn application_record(&self, root: JobId) -> Option<ApplicationRecord> {
        let (submission, job) = (self.submissions.get(&root.number)?, self.jobs.get(&root)?);
        let work = application_work(submission)?;
        let live = job.live_attempt();
        let attempt = live.map(|attempt| root.attempt(attempt.number));
        let runners: Vec<JobId> = self.volatile.applications.children(root).collect();
        Some(ApplicationRecord {
            job: root,
            name: submission.spec.name.clone(),
            user: submission.user.clone(),
            state: job.state(),
            attempt: attempt.filter(|attempt| self.live_application(*attempt).is_some()),
            code: submission.spec.code.clone(),
            program: work.program.clone(),
            mains: self.volatile.applications.mains(root).collect(),
            counts: self.count_runners(&runners),
            submitted_at: submission.submitted_at,
            started_at: live.map(|attempt| attempt.started_at),
            node: live.and_then(|attempt| Some(attempt.ranks.first()?.node_name.clone())),
            gpus: self.held_gpus(&runners),
            max_gpus: work.max_gpus,
            runners,
        })
    }

    fn count_runners(&self, runners: &[JobId]) -> Vec<RunnerCount> {
        let count = |role| {
            let mut count = RunnerCount { role, placed: 0, waiting: 0 };
            for runner in runners.iter().filter(|runner| self.runner_role(**runner) == Some(role)) {
                match self.jobs.get(runner).map(|job| job.state().phase()) {
                    Some(JobPhase::Placed) => count.placed += 1,
                    Some(JobPhase::Waiting) => count.waiting += 1,
                    Some(JobPhase::Ended) | None => {}
                }
            }
            count
        };
        let counts = RunnerRole::ALL.map(count).into_iter();
        counts.filter(|count| count.placed + count.waiting > 0).collect()
    }

    fn runner_role(&self, runner: JobId) -> Option<RunnerRole> {
        match &self.submissions.get(&runner.number)?.spec.entrypoint {
            Entrypoint::Runner(work) => Some(work.role),
            Entrypoint::Command(_) | Entrypoint::Application(_) => None,
        }
    }

    /// What those of these jobs hold that have a place.
    fn held_gpus(&self, jobs: &[JobId]) -> Share {
        let is_placed =
            |id: &&JobId| self.jobs.get(*id).is_some_and(|job| job.state().phase() == JobPhase::Placed);
        let placed = jobs.iter().filter(is_placed).filter_map(|id| self.submissions.get(&id.number));
        let held: u64 = placed.map(|submission| thousandths(&submission.spec.demand)).sum();
        Share(u32::try_from(held).unwrap_or(u32::MAX))
    }

    /// The applications as they follow from the jobs.
    pub(crate) fn live_applications(&self) -> ApplicationIndex {
        let submission = |id: &JobId| Some((*id, self.submissions.get(&id.number)?.as_ref()));
        let mut index = ApplicationIndex::of(self.active.iter().filter_map(submission));
        for (id, submission) in self.jobs.keys().filter_map(submission) {
            if submission.spec.entrypoint.parent().is_some_and(|it| self.has_live_attempt(it)) {
                index.insert_main(id, submission);
            }
        }
        index
    }

    /// A job is in memory again.
    pub(crate) fn remember_main(&mut self, id: JobId) {
        if self.application_of(id).is_some_and(|application| self.has_live_attempt(application))
            && let Some(submission) = self.submissions.get(&id.number)
        {
            self.volatile.applications.insert_main(id, submission);
        }
    }

    fn has_live_attempt(&self, attempt: AttemptId) -> bool {
        let live = self.jobs.get(&attempt.job).and_then(|root| root.live_attempt());
        live.is_some_and(|live| live.number == attempt.attempt)
    }
}

fn application_work(submission: &SubmissionState) -> Option<&ApplicationWork> {
    match &submission.spec.entrypoint {
        Entrypoint::Application(work) => Some(work),
        Entrypoint::Command(_) | Entrypoint::Runner(_) => None,
    }
}

/// The part of GPUs that a demand takes, in thousandths.
fn thousandths(demand: &Demand) -> u64 {
    u64::from(demand.devices()) * u64::from(demand.share().0)
}

fn wrong_state(message: String) -> Refusal {
    Refusal::new(RefusalCode::WrongState, message)
}
