//! From a stretch, which names jobs, to what was lived through, which names what they train.

use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{GpuKind, Lived, Member, SoloBook, member_of};
use cohabit_types::{Demand, JobId, JobRecord, Launch, ModelDescription, Stretch};

/// What a job demands, and what it tells of itself.
type Told<'a> = dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)> + 'a;

/// What the stretch tells, if everybody on the device is known: the job itself, and those of its neighbours.
pub(crate) fn lived(
    stretch: &Stretch,
    neighbours: impl IntoIterator<Item = JobId>,
    told: &Told<'_>,
    solos: &SoloBook,
) -> Option<Lived> {
    let gpu = GpuKind::named(&stretch.gpu);
    let member = |job: JobId| -> Option<Member> {
        told(job).map(|(demand, traits)| member_of(&demand, &traits, &gpu, solos))
    };
    Some(Lived {
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
pub(crate) fn told_by(record: &JobRecord) -> (Demand, JobTraits) {
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
        launch: Launch::default(),
    };
    (record.demand, traits)
}
