//! Jobs as a snapshot has them: one that is as the job before it is `null`. An array that waits is one job
//! and a long run of them, in the file as in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_proto::JobId;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

use crate::job::Job;

/// Jobs that are one in memory become a run.
pub(crate) fn serialize<S: Serializer>(
    jobs: &BTreeMap<JobId, Arc<Job>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let before = std::iter::once(None).chain(jobs.values().map(Some));
    let runs = jobs.iter().zip(before).map(|((id, job), before)| {
        let goes_on = before.is_some_and(|before| Arc::ptr_eq(before, job));
        (id, Some(job).filter(|_| !goes_on))
    });
    serializer.collect_map(runs)
}

/// The jobs of a run are one in memory again.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<JobId, Arc<Job>>, D::Error> {
    let runs = BTreeMap::<JobId, Option<Job>>::deserialize(deserializer)?;
    let mut before: Option<Arc<Job>> = None;
    let mut shared = |(id, job): (JobId, Option<Job>)| {
        before = job.map(Arc::new).or_else(|| before.take());
        let job = before.clone().ok_or_else(|| D::Error::custom("there is no job before the first"))?;
        Ok((id, job))
    };
    runs.into_iter().map(&mut shared).collect()
}
