//! What all requests share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_client::types::{Explanation, Filter, JobId, JobRecord, Principal};
use cohabit_client::{Client, Error};
use jiff::tz::TimeZone;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::access::entry::EntryKeys;
use crate::cluster::Cluster;
use crate::cluster::answer_cache::{AnswerCache, AnswerError};
use crate::cluster::viewers::Viewers;

/// Logs that are followed at once, over all tabs.
const MOST_LOG_FOLLOWERS: usize = 32;

/// A page that comes after nobody looked waits for a new look for so long.
const FRESH_WITHIN: Duration = Duration::from_millis(800);
/// What was seen so lately is shown without a new look.
const FRESH_FOR: Duration = Duration::from_secs(3);

/// What all requests share.
#[derive(Debug)]
pub(crate) struct WebState {
    pub(crate) client: Client,
    /// Whose token it is.
    pub(crate) by: Principal,
    /// The port that browsers come to.
    pub(crate) port: u16,
    pub(crate) zone: TimeZone,
    pub(crate) entry: EntryKeys,
    pub(crate) cluster: Arc<watch::Sender<Cluster>>,
    pub(crate) viewers: Arc<Viewers>,
    pub(crate) log_followers: Semaphore,
    explanations: AnswerCache<JobId, JobAnswer>,
    members: AnswerCache<(u64, Option<JobId>), Vec<JobRecord>>,
    earlier_attempts: AnswerCache<Vec<JobId>, Vec<JobRecord>>,
}

/// What the head says of one job.
#[derive(Debug)]
pub(crate) struct JobAnswer {
    pub(crate) record: JobRecord,
    pub(crate) explanation: Explanation,
}

impl WebState {
    pub(crate) fn new(client: Client, by: Principal, port: u16) -> WebState {
        WebState {
            client,
            by,
            port,
            zone: TimeZone::system(),
            entry: EntryKeys::default(),
            cluster: Arc::new(watch::Sender::default()),
            viewers: Arc::default(),
            log_followers: Semaphore::new(MOST_LOG_FOLLOWERS),
            explanations: AnswerCache::default(),
            members: AnswerCache::default(),
            earlier_attempts: AnswerCache::default(),
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
            Ok(JobAnswer { record, explanation: self.client.explain(job).await? })
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
}

fn missing(what: &str) -> Error {
    Error::Protocol(format!("the answer of the head lacks {what}"))
}
