//! From what workers reported, which names jobs, to what was observed, which names what the jobs train.

use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{
    GpuKind, MeasuredSet, ObservedMisfit, ObservedSample, SetMember, SoloMetricsTable, build_member,
};
use cohabit_scheduler_core::MemoryMisfit;
use cohabit_types::{ColocationSample, Demand, JobId};

use super::observation::Observation;

/// Finds a job's demand and traits.
type JobLookup<'a> = dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)> + 'a;

/// Resolves the jobs of a sample; `None` unless the job itself and all its neighbors are known.
pub(crate) fn resolve_sample(
    sample: &ColocationSample,
    neighbors: impl IntoIterator<Item = JobId>,
    lookup: &JobLookup<'_>,
    solos: &SoloMetricsTable,
) -> Option<Observation> {
    let gpu = GpuKind::named(&sample.gpu);
    let (member, neighbors) = members(sample.rank.attempt.job, neighbors, &gpu, lookup, solos)?;
    Some(Observation::Sample(ObservedSample {
        member,
        neighbors,
        sharing: sample.sharing,
        until: sample.to,
        length: sample.to.since(sample.from),
        steps: sample.steps,
        rate: sample.rate,
        memory: sample.memory.map(|memory| memory.0 as f64),
        utilization: sample.utilization,
        gpu,
    }))
}

/// Resolves the jobs of a misfit; `None` unless all of them are known.
pub(crate) fn resolve_misfit(
    misfit: &MemoryMisfit,
    lookup: &JobLookup<'_>,
    solos: &SoloMetricsTable,
) -> Option<Observation> {
    let gpu = GpuKind::named(&misfit.gpu);
    let neighbors = misfit.neighbors.iter().copied();
    let (member, neighbors) = members(misfit.rank.attempt.job, neighbors, &gpu, lookup, solos)?;
    Some(Observation::Misfit(ObservedMisfit {
        member,
        neighbors,
        sharing: misfit.sharing,
        at: misfit.at,
        gpu,
    }))
}

/// A job and its neighbors as members of a set.
fn members(
    job: JobId,
    neighbors: impl IntoIterator<Item = JobId>,
    gpu: &GpuKind,
    lookup: &JobLookup<'_>,
    solos: &SoloMetricsTable,
) -> Option<(SetMember, Vec<SetMember>)> {
    let member = |job: JobId| -> Option<SetMember> {
        lookup(job).map(|(demand, traits)| build_member(&demand, &traits, gpu, solos))
    };
    Some((member(job)?, neighbors.into_iter().map(member).collect::<Option<_>>()?))
}

/// The number of members of the sets: each is one training sample.
pub(super) fn member_count<'a>(sets: impl IntoIterator<Item = &'a MeasuredSet>) -> u64 {
    sets.into_iter().map(|it| it.set.members.len() as u64).sum()
}
