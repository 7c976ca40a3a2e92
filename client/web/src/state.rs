//! What all requests share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_client::types::{
    AttemptId, AttemptRecord, Explanation, Filter, JobId, JobRecord, Principal, Role, Time, UsageRecord,
};
use cohabit_client::{Client, Error};
use cohabit_http::TlsIdentity;
use futures::future::join_all;
use jiff::tz::TimeZone;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::access::entry::EntryKeys;
use crate::cluster::Cluster;
use crate::cluster::answer_cache::{AnswerCache, AnswerError};
use crate::cluster::metric_digest::SeriesDigest;
use crate::cluster::viewers::Viewers;

/// Logs that are followed at once, over all tabs.
const MOST_LOG_FOLLOWERS: usize = 32;

/// A page that comes after nobody looked waits for a new look for so long.
const FRESH_WITHIN: Duration = Duration::from_millis(800);
/// What was seen so lately is shown without a new look.
const FRESH_FOR: Duration = Duration::from_secs(3);

/// The latest attempts whose metrics are shown.
const MOST_ATTEMPTS: usize = 8;
/// The metrics of an attempt are read so often at most, and a page waits for them for so long.
const METRICS_EVERY: Duration = Duration::from_secs(2);
const METRICS_WITHIN: Duration = Duration::from_secs(3);

/// What all requests share.
#[derive(Debug)]
pub(crate) struct WebState {
    pub(crate) client: Client,
    /// Whose token it is.
    pub(crate) by: Principal,
    /// The port that browsers come to.
    pub(crate) port: u16,
    /// None if pages travel as plain HTTP.
    pub(crate) tls: Option<Arc<TlsIdentity>>,
    pub(crate) zone: TimeZone,
    pub(crate) entry: EntryKeys,
    pub(crate) cluster: Arc<watch::Sender<Cluster>>,
    pub(crate) viewers: Arc<Viewers>,
    pub(crate) log_followers: Semaphore,
    explanations: AnswerCache<JobId, JobAnswer>,
    members: AnswerCache<(u64, Option<JobId>), Vec<JobRecord>>,
    earlier_attempts: AnswerCache<Vec<JobId>, Vec<JobRecord>>,
    metrics: AnswerCache<AttemptId, AttemptMetrics>,
}

/// The metrics of an attempt, as its worker told.
#[derive(Debug, Default)]
pub(crate) struct AttemptMetrics {
    pub(crate) digest: SeriesDigest,
    /// Why they are missing, or not the present ones.
    pub(crate) problem: Option<String>,
    /// What the head knew of the attempt when they were read.
    known: ReportMark,
    /// Whether they were read again since that was known: nothing of it can be missing.
    is_settled: bool,
}

/// When the attempt last reported, and whether it has ended.
type ReportMark = (Option<Time>, bool);

impl AttemptMetrics {
    /// Whether they need not be read again, this long after they were, when this is known of the attempt.
    fn is_fresh(&self, age: Duration, known: ReportMark) -> bool {
        age < METRICS_EVERY || self.is_settled && self.known == known
    }

    /// What was read, before anything is known of its attempt.
    #[cfg(test)]
    pub(crate) fn of(digest: SeriesDigest) -> AttemptMetrics {
        AttemptMetrics { digest, ..AttemptMetrics::default() }
    }
}

/// What the head says of one job.
#[derive(Debug)]
pub(crate) struct JobAnswer {
    pub(crate) record: JobRecord,
    pub(crate) explanation: Explanation,
    /// What it did with its GPUs.
    pub(crate) usage: Vec<UsageRecord>,
}

impl WebState {
    pub(crate) fn new(client: Client, by: Principal, port: u16, tls: Option<Arc<TlsIdentity>>) -> WebState {
        WebState {
            client,
            by,
            port,
            tls,
            zone: TimeZone::system(),
            entry: EntryKeys::default(),
            cluster: Arc::new(watch::Sender::default()),
            viewers: Arc::default(),
            log_followers: Semaphore::new(MOST_LOG_FOLLOWERS),
            explanations: AnswerCache::default(),
            members: AnswerCache::default(),
            earlier_attempts: AnswerCache::default(),
            metrics: AnswerCache::default(),
        }
    }

    /// What the addresses of pages begin with.
    pub(crate) const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Whether the job may be changed and its output be read with this token. The head decides; this spares
    /// questions and buttons that it would refuse.
    pub(crate) fn is_ours(&self, job: &JobRecord) -> bool {
        match self.by.role {
            Role::Admin => true,
            Role::User => self.by.user == job.user,
            Role::Viewer | Role::Worker => false,
        }
    }

    /// Notes that a page is looked at, and waits a moment for what is known to be fresh.
    pub(crate) async fn freshen(&self) {
        let now = Instant::now();
        self.viewers.look(now, []);
        let is_fresh = |cluster: &Cluster| {
            let is_new = |(at, _): (Instant, _)| now.saturating_duration_since(at) < FRESH_FOR;
            cluster.seen.is_some_and(is_new) || cluster.failure.is_some()
        };
        let mut cluster = self.cluster.subscribe();
        // What is older then is shown as such.
        let _ = timeout(FRESH_WITHIN, cluster.wait_for(is_fresh)).await;
    }

    /// The record of a job and why it is in its state.
    pub(crate) async fn job(&self, job: JobId) -> Result<Arc<JobAnswer>, AnswerError> {
        let ask = async {
            let mut records = self.client.show(&[job]).await?;
            let record = records.pop().ok_or_else(|| missing("the record of the job"))?;
            let (explanation, usage) =
                tokio::try_join!(self.client.explain(job), self.client.usage(vec![job]))?;
            Ok(JobAnswer { record, explanation, usage })
        };
        self.explanations.get(job, ask).await
    }

    /// A page of the members of an array.
    pub(crate) async fn members(
        &self,
        array: u64,
        after: Option<JobId>,
        most: u32,
    ) -> Result<Arc<Vec<JobRecord>>, AnswerError> {
        let filter = Filter { members_of: Some(array), after, limit: most, ..Filter::default() };
        self.members.get((array, after), self.client.list_all(filter)).await
    }

    /// The records of these jobs with all their attempts.
    pub(crate) async fn with_attempts(&self, jobs: Vec<JobId>) -> Result<Arc<Vec<JobRecord>>, AnswerError> {
        self.earlier_attempts.get(jobs.clone(), self.client.show(&jobs)).await
    }

    /// The metrics of the job's latest attempts with their numbers, the earliest first. A worker is asked
    /// only after its attempt has reported again; none are there for who may not read them.
    pub(crate) async fn metrics(&self, job: &JobRecord) -> Vec<(u32, Arc<AttemptMetrics>)> {
        if job.array.is_some() || !self.is_ours(job) {
            return Vec::new();
        }
        let attempts = &job.attempts[job.attempts.len().saturating_sub(MOST_ATTEMPTS)..];
        let asked = attempts.iter().map(|attempt| async {
            let metrics = timeout(METRICS_WITHIN, self.attempt_metrics(job, attempt)).await;
            (attempt.attempt, metrics.unwrap_or(Err(AnswerError::Late)))
        });
        let answers = join_all(asked).await.into_iter();
        let missing = |error: AnswerError| {
            Arc::new(AttemptMetrics { problem: Some(error.to_string()), ..AttemptMetrics::default() })
        };
        answers.map(|(number, answer)| (number, answer.unwrap_or_else(missing))).collect()
    }

    async fn attempt_metrics(
        &self,
        job: &JobRecord,
        attempt: &AttemptRecord,
    ) -> Result<Arc<AttemptMetrics>, AnswerError> {
        let id = job.id.attempt(attempt.attempt);
        let reported = job.progress.as_ref().map(|it| it.at).filter(|_| attempt.attempt == job.attempt);
        let known = (reported, attempt.ended_at.is_some() || job.state.is_terminal());
        let is_fresh = |age: Duration, answer: &AttemptMetrics| answer.is_fresh(age, known);
        let ask = |last: Option<Arc<AttemptMetrics>>| async move {
            let is_settled = last.as_ref().is_some_and(|last| last.known == known);
            match self.client.metrics(id.rank(0)).await {
                Ok(series) => {
                    let digest = SeriesDigest::of(&series);
                    Ok(AttemptMetrics { digest, problem: None, known, is_settled })
                }
                // Its node is away, or they are no longer kept.
                Err(Error::Refused(refusal)) => {
                    let digest = last.map(|last| last.digest.clone()).unwrap_or_default();
                    Ok(AttemptMetrics { digest, problem: Some(refusal.message), known, is_settled: false })
                }
                Err(error) => Err(error),
            }
        };
        self.metrics.renew(id, is_fresh, ask).await
    }
}

fn missing(what: &str) -> Error {
    Error::Protocol(format!("the answer of the head lacks {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_once_more_after_a_report_and_then_not_until_the_next() {
        let (first, second) = ((Some(Time::EPOCH), false), (Some(Time::NEVER), false));
        let read = |known, is_settled| AttemptMetrics { known, is_settled, ..AttemptMetrics::default() };
        let long = METRICS_EVERY * 1_000;
        assert!(read(first, false).is_fresh(METRICS_EVERY / 2, second), "not more often than this");
        assert!(!read(first, false).is_fresh(METRICS_EVERY, first), "the worker may have had more");
        assert!(read(first, true).is_fresh(long, first), "nothing has been reported since");
        assert!(!read(first, true).is_fresh(METRICS_EVERY, second), "there was a report");
        assert!(!read(first, true).is_fresh(METRICS_EVERY, (first.0, true)), "it has ended");
    }
}
