//! What policies learn from jobs that ended before the head started.

use std::sync::Arc;

use cohabit_policy::{EndedRun, JobFeatures, work_time};
use cohabit_types::JobRecord;

use crate::planner::PolicyFactory;

/// How many of the newest ended jobs a policy starts with.
const MAX_RUNS: usize = 5_000;

/// The runs of ended jobs, the oldest end first, from records with the oldest end first.
pub(crate) fn ended_runs(past: &[JobRecord]) -> Vec<EndedRun> {
    let newest = past.len().saturating_sub(MAX_RUNS);
    past[newest..].iter().filter_map(ended_run).collect()
}

/// The run of a job that held devices.
fn ended_run(record: &JobRecord) -> Option<EndedRun> {
    let estimated = record.predicted.as_ref().and_then(|it| it.runtime);
    Some(EndedRun { features: JobFeatures::from_record(record), worked: work_time(record)?, estimated })
}

/// Policies that begin with the knowledge of these runs.
pub(crate) fn remembering(policy: PolicyFactory, ended: Vec<EndedRun>) -> PolicyFactory {
    Arc::new(move || {
        let mut policy = policy();
        policy.recall(&ended);
        policy
    })
}
