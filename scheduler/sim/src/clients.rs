//! The users: they submit jobs, repeat a request without a reply, and change their jobs.
//!
//! A repeated submission carries the same idempotency key: whatever the head forgets or repeats, it must
//! become one job.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{
    AttemptId, ChangeResult, ClientRequestId, Dependency, Entrypoint, JobChange, JobId, Principal, Refusal,
    RefusalCode, Reply, Request, Role, Submit, Time,
};

use crate::hostile::{ExpectedReply, HostileRequest, check_refused};
use crate::program::SimProgram;
use crate::scenario::ScenarioSubmission;

/// All clients of the cluster.
#[derive(Debug)]
pub(crate) struct Clients {
    submissions: Vec<(ScenarioSubmission, SubmissionStatus)>,
    /// How many submissions have no reply yet.
    open: usize,
    /// The submission of each job.
    submission_of: BTreeMap<JobId, usize>,
    /// Requests that were sent and not answered.
    pending: BTreeMap<ClientRequestId, Subject>,
    /// Jobs whose cancellation was confirmed before anybody requeued them.
    cancelled: BTreeMap<JobId, Time>,
    /// Jobs that somebody ever asked to requeue.
    requeued: BTreeSet<JobId>,
    /// The attempt of its root to which each child that was submitted belongs.
    applications: BTreeMap<usize, AttemptId>,
    /// What the hostile user was granted.
    hostile: Vec<JobId>,
    keys: u64,
}

/// The subject of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    Submission(usize),
    Change(JobChange, JobId),
    Hostile(ExpectedReply),
}

/// The state of the root of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootStatus {
    /// It waits, or nobody can tell now.
    Waiting,
    /// This attempt runs.
    Running(AttemptId),
    /// It has ended.
    Ended,
}

/// What is known of a submission.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SubmissionStatus {
    /// No reply has arrived.
    Open,
    Accepted(JobId),
    Refused(Refusal),
}

/// A request with its id and sender.
pub(crate) type ClientRequest = (ClientRequestId, Principal, Request);

impl Clients {
    pub(crate) fn new(submissions: Vec<ScenarioSubmission>) -> Clients {
        let submissions: Vec<_> =
            submissions.into_iter().map(|submission| (submission, SubmissionStatus::Open)).collect();
        Clients {
            open: submissions.len(),
            submission_of: BTreeMap::new(),
            submissions,
            pending: BTreeMap::new(),
            cancelled: BTreeMap::new(),
            requeued: BTreeSet::new(),
            applications: BTreeMap::new(),
            hostile: Vec::new(),
            keys: 0,
        }
    }

    pub(crate) fn is_open(&self, index: usize) -> bool {
        self.submissions[index].1 == SubmissionStatus::Open
    }

    /// Whether every submission was answered.
    pub(crate) const fn all_answered(&self) -> bool {
        self.open == 0
    }

    /// The accepted jobs and arrays in the order of submission.
    pub(crate) fn accepted(&self) -> Vec<JobId> {
        self.submissions.iter().filter_map(|(_, status)| status.job()).collect()
    }

    /// The first submission that was refused, with the reason.
    #[cfg(feature = "learned")]
    pub(crate) fn first_refused(&self) -> Option<(usize, String)> {
        self.submissions.iter().enumerate().find_map(|(index, (_, status))| match status {
            SubmissionStatus::Refused(refusal) => Some((index, refusal.message.clone())),
            SubmissionStatus::Open | SubmissionStatus::Accepted(_) => None,
        })
    }

    /// Accepted jobs that only end when they are cancelled.
    pub(crate) fn endless(&self) -> Vec<JobId> {
        let endless = self.submissions.iter().filter(|(it, _)| SimProgram::of(&it.spec).is_endless());
        endless.filter_map(|(_, status)| status.job()).collect()
    }

    /// The request for a submission; `None` while it depends on an unanswered one, or while no attempt runs
    /// of the application of which it is a child.
    pub(crate) fn submit(
        &mut self,
        index: usize,
        root_status: impl Fn(JobId) -> RootStatus,
    ) -> Option<ClientRequest> {
        if let Some(parent) = self.submissions[index].0.parent {
            self.choose_application(index, parent, root_status)?;
        }
        let (submission, _) = &self.submissions[index];
        let mut spec = submission.spec.clone();
        for (earlier, when) in &submission.after {
            match &self.submissions[*earlier].1 {
                SubmissionStatus::Open => return None,
                SubmissionStatus::Accepted(job) => {
                    spec.depends_on.push(Dependency { job: *job, when: *when })
                }
                SubmissionStatus::Refused(_) => {}
            }
        }
        let by = Principal::new(submission.user.clone(), Role::User);
        let submit = Submit { spec, idempotency_key: Some(format!("submission {index}")), estimate: None };
        // The client no longer waits for the reply to its earlier request.
        self.pending.retain(|_, subject| *subject != Subject::Submission(index));
        let key = self.next_key();
        self.pending.insert(key, Subject::Submission(index));
        Some((key, by, Request::Submit(Box::new(submit))))
    }

    /// Chooses the attempt of its root to which a child belongs: the coordinator that submits it is a
    /// process of that attempt, and repeats the same request. `None` if there is nothing to send.
    fn choose_application(
        &mut self,
        index: usize,
        parent: usize,
        root_status: impl Fn(JobId) -> RootStatus,
    ) -> Option<()> {
        if self.applications.contains_key(&index) {
            return Some(());
        }
        let status = match &self.submissions[parent].1 {
            SubmissionStatus::Open => RootStatus::Waiting,
            SubmissionStatus::Accepted(root) => root_status(*root),
            SubmissionStatus::Refused(_) => RootStatus::Ended,
        };
        match status {
            RootStatus::Waiting => None,
            RootStatus::Running(application) => {
                self.applications.insert(index, application);
                let Entrypoint::Runner(work) = &mut self.submissions[index].0.spec.entrypoint else {
                    return None;
                };
                work.application = application;
                Some(())
            }
            RootStatus::Ended => {
                let refusal = Refusal::new(RefusalCode::WrongState, "its application has ended");
                self.open -= usize::from(self.submissions[index].1 == SubmissionStatus::Open);
                self.submissions[index].1 = SubmissionStatus::Refused(refusal);
                None
            }
        }
    }

    /// A change of an accepted job, requested by its owner.
    pub(crate) fn change(&mut self, change: JobChange, back: u64) -> Option<ClientRequest> {
        let accepted: Vec<_> = self.submissions.iter().filter_map(|(it, s)| Some((it, s.job()?))).collect();
        let back = back.checked_rem(accepted.len() as u64)? as usize;
        let (submission, job) = accepted[accepted.len() - 1 - back];
        let by = Principal::new(submission.user.clone(), Role::User);
        if change == JobChange::Requeue {
            self.cancelled.remove(&job);
            self.requeued.insert(job);
        }
        let key = self.next_key();
        self.pending.insert(key, Subject::Change(change, job));
        Some((key, by, Request::Change(change, vec![job])))
    }

    /// A request of an administrator.
    pub(crate) fn administer(&mut self, request: Request) -> ClientRequest {
        (self.next_key(), Principal::new("root", Role::Admin), request)
    }

    /// A request of the hostile user; `node` names a node by its number.
    pub(crate) fn hostile(
        &mut self,
        request: HostileRequest,
        node: impl Fn(usize) -> String,
    ) -> Option<ClientRequest> {
        let (by, request, deserves) = request.request(node, &self.accepted(), &self.hostile)?;
        let key = self.next_key();
        self.pending.insert(key, Subject::Hostile(deserves));
        Some((key, by, request))
    }

    /// Takes in a reply.
    ///
    /// # Errors
    /// If it contradicts an earlier reply, reports an internal error of the head, or grants a hostile
    /// request.
    pub(crate) fn reply(&mut self, now: Time, key: ClientRequestId, reply: Reply) -> Result<(), String> {
        if let Reply::Refused(Refusal { code: RefusalCode::Internal, message }) = &reply {
            return Err(format!("internal error of the head: {message}"));
        }
        match (self.pending.remove(&key), reply) {
            (Some(Subject::Submission(index)), Reply::Accepted { job, .. }) => {
                self.record_status(index, SubmissionStatus::Accepted(job))
            }
            // The client will repeat the request.
            (
                Some(Subject::Submission(_)),
                Reply::Refused(Refusal { code: RefusalCode::Unavailable, .. }),
            ) => Ok(()),
            (Some(Subject::Submission(index)), Reply::Refused(refusal)) => {
                self.record_status(index, SubmissionStatus::Refused(refusal))
            }
            (Some(Subject::Submission(_)), reply) => Err(format!("a submission was answered by {reply:?}")),
            (
                Some(Subject::Change(JobChange::Cancel | JobChange::Kill | JobChange::Withdraw, job)),
                Reply::Changed(verdicts),
            ) => {
                self.confirm(now, job, &verdicts);
                Ok(())
            }
            (Some(Subject::Hostile(ExpectedReply::Refusal)), reply) => check_refused(&reply),
            (Some(Subject::Hostile(ExpectedReply::Any)), Reply::Accepted { job, .. }) => {
                self.hostile.push(job);
                Ok(())
            }
            (Some(Subject::Change(..) | Subject::Hostile(ExpectedReply::Any)) | None, _) => Ok(()),
        }
    }

    /// Records a confirmed cancellation, unless the job was requeued meanwhile.
    fn confirm(&mut self, now: Time, job: JobId, verdicts: &[(JobId, ChangeResult)]) {
        let done = verdicts.contains(&(job, ChangeResult::Done));
        if done && !self.requeued.contains(&job) {
            self.cancelled.insert(job, now);
        }
    }

    /// Jobs with a confirmed cancellation and no requeue since: they must not get another attempt.
    pub(crate) const fn cancelled(&self) -> &BTreeMap<JobId, Time> {
        &self.cancelled
    }

    fn record_status(&mut self, index: usize, status: SubmissionStatus) -> Result<(), String> {
        let known = &self.submissions[index].1;
        if *known != SubmissionStatus::Open && *known != status {
            return Err(format!("submission {index} was {known:?} and is now {status:?}"));
        }
        if let Some(job) = status.job() {
            let other = *self.submission_of.entry(job).or_insert(index);
            if other != index {
                return Err(format!("submissions {index} and {other} became one job: {status:?}"));
            }
        }
        self.open -= usize::from(*known == SubmissionStatus::Open);
        self.submissions[index].1 = status;
        Ok(())
    }

    const fn next_key(&mut self) -> ClientRequestId {
        self.keys += 1;
        ClientRequestId(self.keys)
    }
}

impl SubmissionStatus {
    const fn job(&self) -> Option<JobId> {
        match self {
            SubmissionStatus::Accepted(job) => Some(*job),
            SubmissionStatus::Open | SubmissionStatus::Refused(_) => None,
        }
    }
}
