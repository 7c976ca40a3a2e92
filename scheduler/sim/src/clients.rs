//! The people: they submit, ask again when no reply comes, and change their minds.
//!
//! A submission that is asked twice carries the same idempotency key, so whatever the head forgets or
//! repeats, it must become one job.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{
    ChangeResult, ClientRequestId, Dependency, JobChange, JobId, Principal, Refusal, RefusalCode, Reply,
    Request, Role, Submit, Time,
};

use crate::program::SimProgram;
use crate::scenario::ScenarioSubmission;

/// All clients of the cluster.
#[derive(Debug)]
pub(crate) struct Clients {
    submissions: Vec<(ScenarioSubmission, SubmissionStatus)>,
    /// How many of them were not answered yet.
    open: usize,
    /// The submission that became this job.
    became: BTreeMap<JobId, usize>,
    /// Requests that were sent.
    asked: BTreeMap<ClientRequestId, Subject>,
    /// Jobs whose cancellation was confirmed before anybody queued them again.
    cancelled: BTreeMap<JobId, Time>,
    /// Jobs that somebody ever wanted to queue again.
    requeued: BTreeSet<JobId>,
    keys: u64,
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    ScenarioSubmission(usize),
    Change(JobChange, JobId),
}

/// What is known of a submission.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SubmissionStatus {
    /// No reply came yet.
    Open,
    Accepted(JobId),
    Refused(Refusal),
}

/// A request with its sender.
pub(crate) type ClientRequest = (ClientRequestId, Principal, Request);

impl Clients {
    pub(crate) fn new(submissions: Vec<ScenarioSubmission>) -> Clients {
        let submissions: Vec<_> =
            submissions.into_iter().map(|submission| (submission, SubmissionStatus::Open)).collect();
        Clients {
            open: submissions.len(),
            became: BTreeMap::new(),
            submissions,
            asked: BTreeMap::new(),
            cancelled: BTreeMap::new(),
            requeued: BTreeSet::new(),
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

    /// Jobs, and arrays as a whole, by the order of submission.
    pub(crate) fn accepted(&self) -> Vec<JobId> {
        self.submissions.iter().filter_map(|(_, status)| status.job()).collect()
    }

    /// The first submission that was refused, and why.
    #[cfg(feature = "learned")]
    pub(crate) fn first_refused(&self) -> Option<(usize, String)> {
        self.submissions.iter().enumerate().find_map(|(index, (_, status))| match status {
            SubmissionStatus::Refused(refusal) => Some((index, refusal.message.clone())),
            SubmissionStatus::Open | SubmissionStatus::Accepted(_) => None,
        })
    }

    /// What was accepted and only ends if it is cancelled.
    pub(crate) fn endless(&self) -> Vec<JobId> {
        let endless = self.submissions.iter().filter(|(it, _)| SimProgram::of(&it.spec).is_endless());
        endless.filter_map(|(_, status)| status.job()).collect()
    }

    /// The request for a submission; none while it depends on one that is not answered yet.
    pub(crate) fn submit(&mut self, index: usize) -> Option<ClientRequest> {
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
        // Who asks again no longer listens for the answer to the earlier question.
        self.asked.retain(|_, subject| *subject != Subject::ScenarioSubmission(index));
        let key = self.next_key();
        self.asked.insert(key, Subject::ScenarioSubmission(index));
        Some((key, by, Request::Submit(Box::new(submit))))
    }

    /// A change of one job that was accepted; by its owner, who may do that.
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
        self.asked.insert(key, Subject::Change(change, job));
        Some((key, by, Request::Change(change, vec![job])))
    }

    /// What an admin asks.
    pub(crate) fn administer(&mut self, request: Request) -> ClientRequest {
        (self.next_key(), Principal::new("root", Role::Admin), request)
    }

    /// A reply came.
    ///
    /// # Errors
    /// If it contradicts an earlier one, or blames the head.
    pub(crate) fn reply(&mut self, now: Time, key: ClientRequestId, reply: Reply) -> Result<(), String> {
        if let Reply::Refused(Refusal { code: RefusalCode::Internal, message }) = &reply {
            return Err(format!("the head blames itself: {message}"));
        }
        match (self.asked.remove(&key), reply) {
            (Some(Subject::ScenarioSubmission(index)), Reply::Accepted { job, .. }) => {
                self.conclude(index, SubmissionStatus::Accepted(job))
            }
            // It asks again.
            (
                Some(Subject::ScenarioSubmission(_)),
                Reply::Refused(Refusal { code: RefusalCode::Unavailable, .. }),
            ) => Ok(()),
            (Some(Subject::ScenarioSubmission(index)), Reply::Refused(refusal)) => {
                self.conclude(index, SubmissionStatus::Refused(refusal))
            }
            (Some(Subject::ScenarioSubmission(_)), reply) => {
                Err(format!("a submission was answered by {reply:?}"))
            }
            (Some(Subject::Change(JobChange::Cancel, job)), Reply::Changed(verdicts)) => {
                self.confirm(now, job, &verdicts);
                Ok(())
            }
            (Some(Subject::Change(..)) | None, _) => Ok(()),
        }
    }

    /// A cancellation was confirmed; nobody must have asked for the opposite meanwhile.
    fn confirm(&mut self, now: Time, job: JobId, verdicts: &[(JobId, ChangeResult)]) {
        let done = verdicts.contains(&(job, ChangeResult::Done));
        if done && !self.requeued.contains(&job) {
            self.cancelled.insert(job, now);
        }
    }

    /// Jobs that may get no new attempt since then: their cancellation was confirmed, nobody queued them
    /// again.
    pub(crate) const fn cancelled(&self) -> &BTreeMap<JobId, Time> {
        &self.cancelled
    }

    fn conclude(&mut self, index: usize, status: SubmissionStatus) -> Result<(), String> {
        let known = &self.submissions[index].1;
        if *known != SubmissionStatus::Open && *known != status {
            return Err(format!("submission {index} is {known:?}, and now it shall be {status:?}"));
        }
        if let Some(job) = status.job() {
            let twin = *self.became.entry(job).or_insert(index);
            if twin != index {
                return Err(format!("submissions {index} and {twin} are one job: {status:?}"));
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
