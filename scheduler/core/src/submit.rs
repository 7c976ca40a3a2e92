//! Submissions: a job is checked, gets its number, and enters the head's state.

use std::sync::Arc;

use cohabit_types::{JobId, JobSpec, Principal, Refusal, RefusalCode, Reply, Submit};

use crate::alarm::Alarm;
use crate::archived_submission::work_digest;
use crate::head::Head;
use crate::job::Job;
use crate::submission::SubmissionState;
use crate::transition::Transition;
use crate::user_usage::UserUsage;

impl Transition<'_> {
    /// Takes in a job that was checked.
    pub(crate) fn submit(&mut self, by: &Principal, submit: Submit) -> Reply {
        self.head.last_number += 1;
        let number = self.head.last_number;
        self.register(number, by, submit);
        self.head.accepted(number)
    }

    fn register(&mut self, number: u64, by: &Principal, submit: Submit) {
        if let Some(key) = &submit.idempotency_key {
            self.head.idempotency_keys.entry(by.user.clone()).or_default().insert(key.clone(), number);
        }
        let mut submission = SubmissionState::new(by, submit, self.now);
        self.head.volatile.pool.share(&mut submission);
        let jobs = submission.jobs(number);
        let job = self.head.new_job(&submission, self.now);
        self.head.submissions.insert(number, Arc::new(submission));
        self.head.keep_traits(number);
        let job = Arc::new(job);
        self.head
            .submission_mut(number)
            .expect("it was just inserted")
            .count_new(job.state(), jobs.len() as u64);
        self.head.volatile.usage.add(&self.head.submissions[&number]);
        for id in &jobs {
            self.add(*id, Arc::clone(&job));
        }
        self.await_dependencies(number);
        for id in jobs {
            self.refresh_eligibility(id);
        }
    }

    fn add(&mut self, id: JobId, job: Arc<Job>) {
        if let Some(at) = job.waiting().and_then(|waiting| waiting.not_before) {
            self.set_alarm(at, Alarm::JobEligible(id));
        }
        self.head.jobs.insert(id, job);
        self.head.active.insert(id);
        if let Some(submission) = self.head.submissions.get(&id.number) {
            self.head.volatile.applications.insert(id, submission);
            self.head.volatile.applications.insert_main(id, submission);
        }
    }
}

impl Head {
    /// Refuses a specification that is invalid, or that can never run on this cluster.
    pub(crate) fn check_submission(&self, by: &Principal, spec: &JobSpec) -> Result<(), Refusal> {
        spec.check().map_err(|why| Refusal::new(RefusalCode::Invalid, why))?;
        self.check_project(&by.user, spec.project.as_deref())?;
        self.check_running_limits(by, &spec.demand)?;
        self.check_dependencies(&spec.depends_on)?;
        let refused = self.check_satisfiable(&self.on_nodes_of_application(spec, spec.demand));
        refused.map_err(|refusal| match self.stays_reason(spec) {
            Some(why) => Refusal::new(refusal.code, format!("{}; {why}", refusal.message)),
            None => refusal,
        })
    }

    /// Refuses a project that its user is not in.
    fn check_project(&self, user: &str, named: Option<&str>) -> Result<(), Refusal> {
        let Some(named) = named else { return Ok(()) };
        let own = self.shares.project_of(user).map(|(name, _)| name);
        if own == Some(named) {
            return Ok(());
        }
        let is_known = self.shares.table().projects.contains_key(named);
        let unknown = if is_known { "" } else { ", and there is no such project" };
        let remedy = match own {
            Some(own) => {
                format!("user {user} is in project {own}{unknown}: say --project {own}, or leave it out")
            }
            None => {
                format!("user {user} is in no project{unknown}: leave --project out, or ask an admin for one")
            }
        };
        let code = if is_known { RefusalCode::NotAllowed } else { RefusalCode::Invalid };
        Err(Refusal::new(code, remedy))
    }

    /// What a user has in memory.
    pub fn usage(&self, user: &str) -> UserUsage {
        self.volatile.usage.of_user(user)
    }

    /// How many jobs these are, members of arrays one by one.
    pub fn members_of(&self, jobs: &[JobId]) -> u64 {
        let members = |job: &JobId| {
            let whole = || Some(self.submissions.get(&job.number)?.spec.members());
            let archived = || Some(self.archive.get(job.number)?.jobs());
            job.index.is_none().then(|| whole().or_else(archived)).flatten().unwrap_or(1)
        };
        jobs.iter().map(members).fold(0, u64::saturating_add)
    }

    /// The reply to the submission with this number.
    pub(crate) fn accepted(&self, number: u64) -> Reply {
        let in_memory = self.submissions.get(&number).map(|it| it.state_counts.values().sum());
        let members = in_memory.or_else(|| Some(self.archive.get(number)?.jobs())).unwrap_or(1);
        let job = JobId::new(number);
        let submission = self.submissions.get(&number);
        let first = submission.and_then(|submission| submission.jobs(number).first().copied()).unwrap_or(job);
        let notes = submission.zip(self.jobs.get(&first)).map(|(it, job)| self.submission_notes(it, job));
        Reply::Accepted { job, members, notes: notes.unwrap_or_default() }
    }

    /// Whether this is what the submission with this number asked for. Times and environments may differ
    /// where a script is run again.
    pub(crate) fn is_repeated(&self, number: u64, spec: &JobSpec) -> bool {
        match (self.submissions.get(&number), self.archive.get(number)) {
            (Some(it), _) => {
                let it = &it.spec;
                it.entrypoint == spec.entrypoint && it.array == spec.array && it.entries == spec.entries
            }
            (None, Some(archived)) => archived.work == work_digest(spec),
            (None, None) => true,
        }
    }

    /// The number of an earlier submission of this user with this key.
    pub(crate) fn earlier_submission(&self, user: &str, key: Option<&str>) -> Option<u64> {
        self.idempotency_keys.get(user)?.get(key?).copied()
    }
}
