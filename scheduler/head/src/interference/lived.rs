//! From a stretch, which names jobs, to what was lived through, which names what they train.

use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{GpuKind, ObservedSample, SetMember, SoloMetricsTable, build_member};
use cohabit_types::{ColocationSample, Demand, JobId, JobRecord, LaunchMode, ModelDescription};

/// What a job demands, and what it tells of itself.
type JobLookup<'a> = dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)> + 'a;

/// What the stretch tells, if everybody on the device is known: the job itself, and those of its neighbours.
pub(crate) fn lived(
    stretch: &ColocationSample,
    neighbours: impl IntoIterator<Item = JobId>,
    lookup: &JobLookup<'_>,
    solos: &SoloMetricsTable,
) -> Option<ObservedSample> {
    let gpu = GpuKind::named(&stretch.gpu);
    let member = |job: JobId| -> Option<SetMember> {
        lookup(job).map(|(demand, traits)| build_member(&demand, &traits, &gpu, solos))
    };
    Some(ObservedSample {
        member: member(stretch.rank.attempt.job)?,
        neighbours: neighbours.into_iter().map(member).collect::<Option<_>>()?,
        sharing: stretch.sharing,
        until: stretch.to,
        length: stretch.to.since(stretch.from),
        steps: stretch.steps,
        rate: stretch.rate,
        memory: stretch.memory.map(|memory| memory.0 as f64),
        utilisation: stretch.utilisation,
        gpu,
    })
}

/// What the record of a job that ended tells of it.
pub(crate) fn demand_and_traits_of(record: &JobRecord) -> (Demand, JobTraits) {
    let trained = &record.trained;
    let named = trained.model.is_some() || trained.batch_size.is_some();
    let model = named.then(|| ModelDescription {
        name: trained.model.clone(),
        batch_size: trained.batch_size,
        precision: trained.precision.clone(),
        ..ModelDescription::default()
    });
    let traits = JobTraits {
        user: record.user.clone(),
        group: record.group.clone(),
        model,
        estimate: None,
        time_limit: record.time_limit,
        launch: LaunchMode::default(),
    };
    (record.demand, traits)
}
