//! A job as a row of a table.

use cohabit_client::types::{JobRecord, Time};
use cohabit_console::records::expected_times::eta;
use cohabit_console::records::job_cells::{detail, gpus, runtime};
use cohabit_console::records::short_name::{LONGEST_LISTED_NAME, short_name};

use super::line;
use super::state_badge::StateBadge;

/// A job as a row of a table.
#[derive(Debug)]
pub(crate) struct JobRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) state: StateBadge,
    pub(crate) gpus: String,
    pub(crate) runtime: String,
    pub(crate) eta: String,
    pub(crate) nodes: String,
    pub(crate) detail: String,
}

impl JobRow {
    pub(crate) fn new(job: &JobRecord, now: Time) -> JobRow {
        JobRow {
            id: job.id.to_string(),
            name: short_name(&job.name, LONGEST_LISTED_NAME),
            user: line(&job.user),
            state: job.state.into(),
            gpus: gpus(&job.demand),
            runtime: runtime(job, now).map_or(String::new(), |span| span.to_string()),
            eta: eta(job, now),
            nodes: line(&job.nodes().join(", ")),
            detail: line(&detail(job, now)),
        }
    }
}
