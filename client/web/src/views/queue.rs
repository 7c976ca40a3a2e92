//! The queue: jobs that pass a filter, 200 on a page.

use askama::Template;
use cohabit_client::types::{JobId, JobPhase, JobRecord, JobState};
use serde::Deserialize;

use super::encoded;
use super::job_row::JobRow;
use crate::cluster::Cluster;

/// Rows on a page.
pub(crate) const PAGE_ROWS: usize = 200;

/// What the address says of the jobs to show.
#[derive(Debug, Default, Clone, Deserialize)]
pub(crate) struct QueueQuery {
    #[serde(default)]
    pub(crate) state: StateFilter,
    /// A user's name; none shows all users.
    #[serde(default)]
    pub(crate) user: String,
    /// A part of a name.
    #[serde(default)]
    pub(crate) name: String,
    /// From 1.
    #[serde(default)]
    pub(crate) page: usize,
}

/// Which states.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StateFilter {
    /// Not ended.
    #[default]
    Live,
    Running,
    Waiting,
    Ended,
    Failed,
    All,
}

/// A choice of the filter by state.
#[derive(Debug)]
pub(crate) struct StateChoice {
    pub(crate) value: &'static str,
    pub(crate) label: &'static str,
    pub(crate) is_chosen: bool,
}

/// One page of the queue.
#[derive(Template)]
#[template(path = "queue.html")]
pub(crate) struct Queue {
    pub(crate) query: QueueQuery,
    pub(crate) choices: Vec<StateChoice>,
    /// The address of the jobs of whoever looks.
    pub(crate) mine: String,
    pub(crate) rows: Vec<JobRow>,
    pub(crate) total: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// Addresses of the pages before and after.
    pub(crate) previous: Option<String>,
    pub(crate) next: Option<String>,
}

impl StateFilter {
    const ALL: [StateFilter; 6] = [
        StateFilter::Live,
        StateFilter::Running,
        StateFilter::Waiting,
        StateFilter::Ended,
        StateFilter::Failed,
        StateFilter::All,
    ];

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            StateFilter::Live => ("live", "Running and waiting"),
            StateFilter::Running => ("running", "Running"),
            StateFilter::Waiting => ("waiting", "Waiting"),
            StateFilter::Ended => ("ended", "Ended"),
            StateFilter::Failed => ("failed", "Failed"),
            StateFilter::All => ("all", "All"),
        }
    }

    fn passes(self, state: JobState) -> bool {
        match self {
            StateFilter::Live => !state.is_terminal(),
            StateFilter::Running => state.phase() == JobPhase::Placed,
            StateFilter::Waiting => state.phase() == JobPhase::Waiting,
            StateFilter::Ended => state.is_terminal(),
            StateFilter::Failed => {
                let is_chosen = matches!(state, JobState::Completed | JobState::Cancelled);
                state.is_terminal() && !is_chosen
            }
            StateFilter::All => true,
        }
    }
}

impl QueueQuery {
    fn passes(&self, job: &JobRecord) -> bool {
        self.state.passes(job.state)
            && (self.user.is_empty() || job.user == self.user)
            && (self.name.is_empty() || job.name.contains(&self.name))
    }

    /// The address of another page.
    fn address(&self, page: usize) -> String {
        let state = self.state.words().0;
        format!("/queue?state={state}&user={}&name={}&page={page}", encoded(&self.user), encoded(&self.name))
    }
}

impl Queue {
    pub(crate) fn new(cluster: &Cluster, query: QueueQuery, me: &str) -> Queue {
        let mut jobs: Vec<&JobRecord> = cluster.jobs.submissions().filter(|job| query.passes(job)).collect();
        jobs.sort_by_key(|job| place(job));
        let pages = jobs.len().div_ceil(PAGE_ROWS).max(1);
        let page = query.page.clamp(1, pages);
        let first = (page - 1) * PAGE_ROWS;
        let now = cluster.as_of();
        let rows: Vec<JobRow> =
            jobs.iter().skip(first).take(PAGE_ROWS).map(|job| JobRow::new(job, now)).collect();
        let choice = |filter: StateFilter| {
            let (value, label) = filter.words();
            StateChoice { value, label, is_chosen: filter == query.state }
        };
        Queue {
            choices: StateFilter::ALL.into_iter().map(choice).collect(),
            mine: queue_of(me),
            total: jobs.len(),
            first: (first + 1).min(jobs.len()),
            last: first + rows.len(),
            rows,
            previous: (page > 1).then(|| query.address(page - 1)),
            next: (page < pages).then(|| query.address(page + 1)),
            query,
        }
    }

    /// The jobs on it that wait.
    pub(crate) fn waiting(&self, cluster: &Cluster) -> Vec<JobId> {
        let ids = self.rows.iter().filter_map(|row| row.id.parse().ok());
        let waits =
            |id: &JobId| cluster.jobs.get(*id).is_some_and(|job| job.state.phase() == JobPhase::Waiting);
        ids.filter(waits).collect()
    }
}

/// The address of the live jobs of a user.
pub(crate) fn queue_of(user: &str) -> String {
    format!("/queue?user={}", encoded(user))
}

/// Running jobs first, then those that wait in the order of the queue, then the latest ends.
fn place(job: &JobRecord) -> (u8, i64, i64) {
    let number = job.id.number.cast_signed();
    match job.state.phase() {
        JobPhase::Placed => (0, 0, number),
        JobPhase::Waiting => (1, -i64::from(job.priority), number),
        JobPhase::Ended => (2, -job.ended_at.map_or(0, |at| at.as_micros().cast_signed()), -number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failed_are_those_that_did_not_end_as_someone_chose() {
        let failed: Vec<JobState> =
            JobState::ALL.into_iter().filter(|state| StateFilter::Failed.passes(*state)).collect();
        let expected = [
            JobState::Failed,
            JobState::Timeout,
            JobState::NodeFail,
            JobState::OutOfMemory,
            JobState::Preempted,
        ];
        assert_eq!(failed, expected);
    }
}
