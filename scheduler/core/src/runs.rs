//! Jobs as a snapshot has them: one that is as the job before it is `null`. An array that waits is one job
//! and a long run of them, in the file as in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::JobId;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

use crate::job::Job;

/// Jobs that are one in memory become a run.
pub(crate) fn serialize<S: Serializer>(
    jobs: &BTreeMap<JobId, Arc<Job>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut before = None;
    serializer.collect_map(jobs.iter().map(|(id, job)| (id, unless_same(job, &mut before))))
}

/// The jobs of a run are one in memory again.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<JobId, Arc<Job>>, D::Error> {
    expand_runs(BTreeMap::<JobId, Option<Arc<Job>>>::deserialize(deserializer)?)
}

/// The job, if it is not the one before it, which it becomes.
pub(crate) fn unless_same(job: &Arc<Job>, before: &mut Option<Arc<Job>>) -> Option<Arc<Job>> {
    if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, job)) {
        return None;
    }
    *before = Some(Arc::clone(job));
    Some(Arc::clone(job))
}

/// Gives each job of a run what its first one has.
///
/// # Errors
/// If the first run has no beginning.
pub(crate) fn expand_runs<E: Error>(
    runs: impl IntoIterator<Item = (JobId, Option<Arc<Job>>)>,
) -> Result<BTreeMap<JobId, Arc<Job>>, E> {
    let mut before: Option<Arc<Job>> = None;
    let mut shared = |(id, job): (JobId, Option<Arc<Job>>)| {
        before = job.or_else(|| before.take());
        let job = before.clone().ok_or_else(|| E::custom("there is no job before the first"))?;
        Ok((id, job))
    };
    runs.into_iter().map(&mut shared).collect()
}
