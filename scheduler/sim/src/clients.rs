//! The people: they submit, ask again when no reply comes, and change their minds.
//!
//! A submission that is asked twice carries the same idempotency key, so whatever the head forgets or
//! repeats, it must become one job.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{
    By, ClientKey, Dependency, JobChange, JobId, Refusal, RefusalCode, Reply, Request, Role, Submit, Time,
    Verdict,
};

use crate::program::Program;
use crate::scenario::Submission;

/// All clients of the cluster.
#[derive(Debug)]
pub(crate) struct Clients {
    submissions: Vec<(Submission, Status)>,
    /// How many of them were not answered yet.
    open: usize,
    /// The submission that became this job.
    became: BTreeMap<JobId, usize>,
    /// Requests that were sent.
    asked: BTreeMap<ClientKey, Subject>,
    /// Jobs whose cancellation was confirmed before anybody queued them again.
    cancelled: BTreeMap<JobId, Time>,
    /// Jobs that somebody ever wanted to queue again.
    requeued: BTreeSet<JobId>,
    keys: u64,
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    Submission(usize),
    Change(JobChange, JobId),
}

/// What is known of a submission.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Status {
    /// No reply came yet.
    Open,
    Accepted(JobId),
    Refused(Refusal),
}

/// A request with its sender.
pub(crate) type Asked = (ClientKey, By, Request);

impl Clients {
    pub(crate) fn new(submissions: Vec<Submission>) -> Clients {
        let submissions: Vec<_> =
            submissions.into_iter().map(|submission| (submission, Status::Open)).collect();
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
        self.submissions[index].1 == Status::Open
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
            Status::Refused(refusal) => Some((index, refusal.message.clone())),
            Status::Open | Status::Accepted(_) => None,
        })
    }

    /// What was accepted and only ends if it is cancelled.
    pub(crate) fn endless(&self) -> Vec<JobId> {
        let endless = self.submissions.iter().filter(|(it, _)| Program::of(&it.spec).is_endless());
        endless.filter_map(|(_, status)| status.job()).collect()
    }

    /// The request for a submission; none while it depends on one that is not answered yet.
    pub(crate) fn submit(&mut self, index: usize) -> Option<Asked> {
        let (submission, _) = &self.submissions[index];
        let mut spec = submission.spec.clone();
        for (earlier, when) in &submission.after {
            match &self.submissions[*earlier].1 {
                Status::Open => return None,
                Status::Accepted(job) => spec.depends_on.push(Dependency { job: *job, when: *when }),
                Status::Refused(_) => {}
            }
        }
        let by = By::new(submission.user.clone(), Role::User);
        let submit = Submit { spec, idempotency_key: Some(format!("submission {index}")), estimate: None };
        // Who asks again no longer listens for the answer to the earlier question.
        self.asked.retain(|_, subject| *subject != Subject::Submission(index));
        let key = self.next_key();
        self.asked.insert(key, Subject::Submission(index));
        Some((key, by, Request::Submit(Box::new(submit))))
    }

    /// A change of one job that was accepted; by its owner, who may do that.
    pub(crate) fn change(&mut self, change: JobChange, back: u64) -> Option<Asked> {
        let accepted: Vec<_> = self.submissions.iter().filter_map(|(it, s)| Some((it, s.job()?))).collect();
        let back = back.checked_rem(accepted.len() as u64)? as usize;
        let (submission, job) = accepted[accepted.len() - 1 - back];
        let by = By::new(submission.user.clone(), Role::User);
        if change == JobChange::Requeue {
            self.cancelled.remove(&job);
            self.requeued.insert(job);
        }
        let key = self.next_key();
        self.asked.insert(key, Subject::Change(change, job));
        Some((key, by, Request::Change(change, vec![job])))
    }

    /// What an admin asks.
    pub(crate) fn administer(&mut self, request: Request) -> Asked {
        (self.next_key(), By::new("root", Role::Admin), request)
    }

    /// A reply came.
    ///
    /// # Errors
    /// If it contradicts an earlier one, or blames the head.
    pub(crate) fn reply(&mut self, now: Time, key: ClientKey, reply: Reply) -> Result<(), String> {
        if let Reply::Refused(Refusal { code: RefusalCode::Internal, message }) = &reply {
            return Err(format!("the head blames itself: {message}"));
        }
        match (self.asked.remove(&key), reply) {
            (Some(Subject::Submission(index)), Reply::Accepted { job, .. }) => {
                self.conclude(index, Status::Accepted(job))
            }
            // It asks again.
            (
                Some(Subject::Submission(_)),
                Reply::Refused(Refusal { code: RefusalCode::Unavailable, .. }),
            ) => Ok(()),
            (Some(Subject::Submission(index)), Reply::Refused(refusal)) => {
                self.conclude(index, Status::Refused(refusal))
            }
            (Some(Subject::Submission(_)), reply) => Err(format!("a submission was answered by {reply:?}")),
            (Some(Subject::Change(JobChange::Cancel, job)), Reply::Changed(verdicts)) => {
                self.confirm(now, job, &verdicts);
                Ok(())
            }
            (Some(Subject::Change(..)) | None, _) => Ok(()),
        }
    }

    /// A cancellation was confirmed; nobody must have asked for the opposite meanwhile.
    fn confirm(&mut self, now: Time, job: JobId, verdicts: &[(JobId, Verdict)]) {
        let done = verdicts.contains(&(job, Verdict::Done));
        if done && !self.requeued.contains(&job) {
            self.cancelled.insert(job, now);
        }
    }

    /// Jobs that may get no new attempt since then: their cancellation was confirmed, nobody queued them
    /// again.
    pub(crate) const fn cancelled(&self) -> &BTreeMap<JobId, Time> {
        &self.cancelled
    }

    fn conclude(&mut self, index: usize, status: Status) -> Result<(), String> {
        let known = &self.submissions[index].1;
        if *known != Status::Open && *known != status {
            return Err(format!("submission {index} is {known:?}, and now it shall be {status:?}"));
        }
        if let Some(job) = status.job() {
            let twin = *self.became.entry(job).or_insert(index);
            if twin != index {
                return Err(format!("submissions {index} and {twin} are one job: {status:?}"));
            }
        }
        self.open -= usize::from(*known == Status::Open);
        self.submissions[index].1 = status;
        Ok(())
    }

    const fn next_key(&mut self) -> ClientKey {
        self.keys += 1;
        ClientKey(self.keys)
    }
}

impl Status {
    const fn job(&self) -> Option<JobId> {
        match self {
            Status::Accepted(job) => Some(*job),
            Status::Open | Status::Refused(_) => None,
        }
    }
}
