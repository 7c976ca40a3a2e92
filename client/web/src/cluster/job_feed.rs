//! Keeps up with all jobs: lists them once, and then asks for what has changed.

use cohabit_client::types::{Filter, JobId, JobRecord, JobState, NodeRecord, Time, UpdateCursor};
use cohabit_client::{Client, Error};
use futures::{StreamExt, TryStreamExt};

use super::job_table::ENDED_FOR;

/// Live jobs that are listed at the start, and ended ones.
const MOST_LIVE: usize = 50_000;
const MOST_ENDED: usize = 5_000;
/// Arrays whose members are listed at the start, and members of each.
const MOST_ARRAYS: usize = 20;
const MOST_MEMBERS: usize = 500;
/// Answers with updates that are taken at one look; the next look goes on.
const MOST_PARTS: usize = 64;

/// What has changed.
#[derive(Debug, Default)]
pub(crate) struct FeedChanges {
    /// Whether these are all jobs, and what was known before is to be forgotten.
    pub(crate) is_complete: bool,
    pub(crate) jobs: Vec<JobRecord>,
}

/// The place in the updates of the head.
#[derive(Debug, Default)]
pub(crate) struct JobFeed {
    cursor: Option<UpdateCursor>,
}

impl JobFeed {
    /// What has changed since the last call; everything at the first one, and when the head has restarted.
    pub(crate) async fn changes(&mut self, client: &Client, now: Time) -> Result<FeedChanges, Error> {
        let mut changes = FeedChanges::default();
        for _ in 0..MOST_PARTS {
            let updates = client.job_updates(self.cursor).await?;
            if updates.gap {
                changes = FeedChanges { is_complete: true, jobs: list(client, now).await? };
            }
            changes.jobs.extend(updates.jobs);
            self.cursor = Some(updates.next);
            if !updates.more && !updates.gap {
                break;
            }
        }
        Ok(changes)
    }

    /// Begins anew with the next call: what the last one brought was not used.
    pub(crate) fn restart(&mut self) {
        self.cursor = None;
    }
}

/// All live jobs, and those that ended lately.
async fn list(client: &Client, now: Time) -> Result<Vec<JobRecord>, Error> {
    let states = |is_ended: bool| -> Vec<JobState> {
        JobState::ALL.into_iter().filter(|state| state.is_terminal() == is_ended).collect()
    };
    let live = Filter { states: states(false), ..Filter::default() };
    let ended = Filter { states: states(true), ended_after: Some(now - ENDED_FOR), ..Filter::default() };
    let mut jobs = first(client, live, MOST_LIVE).await?;
    jobs.extend(first(client, ended.clone(), MOST_ENDED).await?);
    let arrays = jobs.iter().rev().filter(|record| record.array.is_some() && record.started_at.is_some());
    let arrays: Vec<JobId> = arrays.map(|record| record.id).take(MOST_ARRAYS).collect();
    let placed = Filter { states: [JobState::Running, JobState::Completing].into(), ..Filter::default() };
    for array in arrays {
        let members_of = Some(array.number);
        for filter in [placed.clone(), ended.clone()] {
            jobs.extend(first(client, Filter { members_of, ..filter }, MOST_MEMBERS).await?);
        }
    }
    Ok(jobs)
}

async fn first(client: &Client, filter: Filter, most: usize) -> Result<Vec<JobRecord>, Error> {
    client.list(filter).take(most).try_collect().await
}

/// The jobs that sit on devices of these nodes, by number.
pub(crate) fn residents(nodes: &[NodeRecord]) -> Vec<JobId> {
    let devices = nodes.iter().flat_map(|node| &node.devices);
    let mut residents: Vec<JobId> = devices.flat_map(|device| device.jobs.iter().copied()).collect();
    residents.sort_unstable();
    residents.dedup();
    residents
}
