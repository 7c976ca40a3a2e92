//! From a co-location sample, which names jobs, to an observed sample, which names what the jobs train.

use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{
    GpuKind, MeasuredSet, ObservedSample, SetMember, SoloMetricsTable, build_member,
};
use cohabit_types::{ColocationSample, Demand, JobId};

/// Finds a job's demand and traits.
type JobLookup<'a> = dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)> + 'a;

/// Resolves the jobs of a sample; `None` unless the job itself and all its neighbors are known.
pub(crate) fn resolve_sample(
    sample: &ColocationSample,
    neighbors: impl IntoIterator<Item = JobId>,
    lookup: &JobLookup<'_>,
    solos: &SoloMetricsTable,
) -> Option<ObservedSample> {
    let gpu = GpuKind::named(&sample.gpu);
    let member = |job: JobId| -> Option<SetMember> {
        lookup(job).map(|(demand, traits)| build_member(&demand, &traits, &gpu, solos))
    };
    Some(ObservedSample {
        member: member(sample.rank.attempt.job)?,
        neighbors: neighbors.into_iter().map(member).collect::<Option<_>>()?,
        sharing: sample.sharing,
        until: sample.to,
        length: sample.to.since(sample.from),
        steps: sample.steps,
        rate: sample.rate,
        memory: sample.memory.map(|memory| memory.0 as f64),
        utilization: sample.utilization,
        gpu,
    })
}

/// The number of members of the sets: each is one training sample.
pub(super) fn member_count<'a>(sets: impl IntoIterator<Item = &'a MeasuredSet>) -> u64 {
    sets.into_iter().map(|it| it.set.members.len() as u64).sum()
}
