//! Looks at the head: once a second while anybody looks at a page, and seldom otherwise. All pages share
//! what one look brings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_client::types::JobId;
use cohabit_client::{Client, Error};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::job_feed::JobFeed;
use super::viewers::Viewers;
use super::{Cluster, Look};
use crate::clock::now;

/// The pause between looks while somebody looks, and while nobody does.
const PAUSE: Duration = Duration::from_secs(1);
const IDLE_PAUSE: Duration = Duration::from_secs(15);

/// Jobs whose reason to wait is asked for at one look in [`ROWS_EVERY`]: it changes with every other job, so
/// the head has to find it anew.
const ROWS_AT_ONCE: usize = 100;
const ROWS_EVERY: u32 = 2;

/// Jobs on devices that no update told of are asked for, so many at once.
const RESIDENTS_AT_ONCE: usize = 500;

/// How often the problems of the head are asked for, in looks.
const PROBLEMS_EVERY: u32 = 5;

/// Follows the head for ever.
pub(crate) async fn follow(client: Client, cluster: Arc<watch::Sender<Cluster>>, viewers: Arc<Viewers>) {
    let mut upstream = Upstream { client, feed: JobFeed::default(), looks: 0 };
    loop {
        match upstream.look(&cluster, &viewers).await {
            Ok(look) => cluster.send_modify(|cluster| cluster.apply(look, Instant::now(), now())),
            Err(error) => {
                upstream.feed.restart();
                cluster.send_modify(|cluster| cluster.failure = Some(error.to_string()));
            }
        }
        match viewers.is_watched(Instant::now()) {
            true => sleep(PAUSE).await,
            // Somebody may come meanwhile.
            false => drop(timeout(IDLE_PAUSE, viewers.woken()).await),
        }
    }
}

struct Upstream {
    client: Client,
    feed: JobFeed,
    looks: u32,
}

impl Upstream {
    async fn look(&mut self, cluster: &watch::Sender<Cluster>, viewers: &Viewers) -> Result<Look, Error> {
        let nodes = self.client.nodes().await?;
        let mut jobs = self.feed.changes(&self.client, now()).await?;
        let mut missing = cluster.borrow().unknown_residents(&nodes);
        missing.retain(|job| !jobs.jobs.iter().any(|record| record.id == *job));
        missing.truncate(RESIDENTS_AT_ONCE);
        if self.looks.is_multiple_of(ROWS_EVERY) {
            missing.extend(viewers.next_rows(Instant::now(), ROWS_AT_ONCE));
        }
        jobs.jobs.extend(self.records(&missing).await?);
        let problems = match self.looks.is_multiple_of(PROBLEMS_EVERY) {
            true => self.client.head_problems().await?,
            false => cluster.borrow().problems.clone(),
        };
        self.looks = self.looks.wrapping_add(1);
        Ok(Look { nodes, problems, jobs })
    }

    /// The records of these jobs as lists have them; none where one has gone meanwhile.
    async fn records(&self, jobs: &[JobId]) -> Result<Vec<cohabit_client::types::JobRecord>, Error> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        match self.client.show(jobs).await {
            Ok(records) => Ok(records.into_iter().map(|record| record.brief()).collect()),
            Err(Error::Refused(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
