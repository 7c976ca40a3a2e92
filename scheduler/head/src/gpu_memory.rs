//! How much GPU memory jobs hold, and how much a new job will need.
//!
//! A job that completed has done everything that such a job does, so the most memory that it held is what
//! another one like it needs. The forecast enters the journal with the submission; a figure that the user
//! gives is never replaced.

use std::collections::BTreeMap;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{
    Certainty, Footprints, GpuKind, SetMember, SoloMetricsTable, build_member,
};
use cohabit_types::{Bytes, Demand, Estimate, JobId, JobRecord, JobState, Submit};

use crate::job_description::demand_and_traits_of;

/// The GPU memory of jobs, observed and expected.
#[derive(Debug, Default)]
pub(crate) struct GpuMemoryTracker {
    past: Footprints,
    /// The most memory that a rank held, for each job that has not ended.
    held: BTreeMap<JobId, BTreeMap<GpuKind, Bytes>>,
}

impl GpuMemoryTracker {
    /// Notes that a rank of the job holds this much memory on a GPU of this model.
    pub(crate) fn observe(&mut self, job: JobId, gpu: &str, memory: Bytes) {
        let most = self.held.entry(job).or_default().entry(GpuKind::named(gpu)).or_insert(memory);
        *most = memory.max(*most);
    }

    /// Learns from a job that ended.
    pub(crate) fn finish_job(&mut self, record: &JobRecord) {
        let held = self.held.remove(&record.id).unwrap_or_default();
        if record.state == JobState::Completed {
            let (demand, traits) = demand_and_traits_of(record);
            let configuration = describe_member(&demand, &traits).configuration();
            held.iter().for_each(|(gpu, most)| self.past.note(gpu, &configuration, *most));
        }
    }

    /// Forgets all running jobs but these.
    pub(crate) fn retain(&mut self, alive: impl Fn(JobId) -> bool) {
        self.held.retain(|job, _| alive(*job));
    }

    /// Adds the expected memory to the estimate of a job that would share a GPU and gives no figure itself,
    /// if it is known for all these GPU models.
    pub(crate) fn fill(&self, user: &str, submit: &mut Submit, gpus: &[GpuKind]) {
        if !would_share(&submit.spec.demand) {
            return;
        }
        let job = describe_member(&submit.spec.demand, &JobTraits::of(user, &submit.spec, None));
        let expected = self.past.expect(gpus, &job.configuration(), &job.features);
        let Some(known) = expected.filter(|it| it.certainty == Certainty::Known) else { return };
        let estimate = submit.estimate.get_or_insert_default();
        let separator = if estimate.basis.is_empty() { "" } else { "; " };
        *estimate = Estimate {
            gpu_memory: Some(known.bytes),
            basis: format!("{}{separator}memory from {}", estimate.basis, known.basis),
            ..estimate.clone()
        };
    }
}

/// Whether the job may have neighbors once its memory is known.
fn would_share(demand: &Demand) -> bool {
    let known = Demand { gpu_memory: Some(Bytes(1)), ..*demand };
    demand.gpu_memory.is_none() && known.may_have_neighbors()
}

/// The job as it describes itself, without measurements and without a GPU model.
fn describe_member(demand: &Demand, traits: &JobTraits) -> SetMember {
    build_member(demand, traits, &GpuKind::default(), &SoloMetricsTable::default())
}

#[cfg(test)]
mod tests {
    use cohabit_types::{GpuRequest, ModelDescription, Share, TrainingSpec};

    use super::*;
    use crate::test_kit::{ran, submit};

    const GIB: u64 = 1 << 30;

    /// Job 1, which trained a ResNet and ended in this state.
    fn ended(state: JobState) -> JobRecord {
        let trained = TrainingSpec {
            model: Some("resnet".into()),
            batch_size: Some(32),
            precision: Some("bf16".into()),
            ..TrainingSpec::default()
        };
        JobRecord { state, trained, ..ran(1, cohabit_types::Span::from_secs(60)) }
    }

    /// The estimate of the next job, with this change to it.
    fn expected(memory_tracker: &GpuMemoryTracker, change: impl FnOnce(&mut Submit)) -> Option<Estimate> {
        let mut submit = submit();
        submit.spec.demand.gpus = GpuRequest::Part(Share(500));
        submit.spec.model = Some(ModelDescription {
            name: Some("resnet".into()),
            batch_size: Some(32),
            precision: Some("bf16".into()),
            ..Default::default()
        });
        change(&mut submit);
        memory_tracker.fill("ada", &mut submit, &[GpuKind::named("v100")]);
        submit.estimate
    }

    fn after(state: JobState) -> GpuMemoryTracker {
        let mut memory_tracker = GpuMemoryTracker::default();
        memory_tracker.observe(JobId::new(1), "V100", Bytes(3 * GIB));
        memory_tracker.observe(JobId::new(1), "V100", Bytes(2 * GIB));
        memory_tracker.finish_job(&ended(state));
        memory_tracker
    }

    #[test]
    fn a_completed_job_predicts_the_memory_of_the_next_one() {
        let estimate = expected(&after(JobState::Completed), |_| {}).unwrap();
        assert!(estimate.gpu_memory.unwrap() >= Bytes(3 * GIB + (256 << 20)), "{estimate:?}");
        assert_eq!(estimate.basis, "memory from a run of resnet (32)");
        assert_eq!(expected(&after(JobState::Failed), |_| {}), None);
        let other = |submit: &mut Submit| submit.spec.model.as_mut().unwrap().name = Some("bert".into());
        assert_eq!(expected(&after(JobState::Completed), other), None);
        let wider = |submit: &mut Submit| submit.spec.model.as_mut().unwrap().precision = Some("fp32".into());
        assert_eq!(expected(&after(JobState::Completed), wider), None);
    }

    #[test]
    fn a_job_that_gives_its_memory_or_shares_nothing_gets_no_forecast() {
        let memory_tracker = after(JobState::Completed);
        assert_eq!(
            expected(&memory_tracker, |submit| submit.spec.demand.gpu_memory = Some(Bytes(GIB))),
            None
        );
        assert_eq!(expected(&memory_tracker, |submit| submit.spec.demand.gpus = GpuRequest::Whole(1)), None);
    }

    #[test]
    fn other_fields_of_the_estimate_are_kept() {
        let own_estimate = Estimate { iterations: Some(7), basis: "its word".into(), ..Estimate::default() };
        let estimate =
            expected(&after(JobState::Completed), |submit| submit.estimate = Some(own_estimate)).unwrap();
        assert_eq!((estimate.iterations, estimate.gpu_memory.is_some()), (Some(7), true));
        assert_eq!(estimate.basis, "its word; memory from a run of resnet (32)");
    }

    #[test]
    fn a_job_that_is_not_retained_is_forgotten() {
        let mut memory_tracker = GpuMemoryTracker::default();
        memory_tracker.observe(JobId::new(1), "V100", Bytes(GIB));
        memory_tracker.retain(|_| false);
        memory_tracker.finish_job(&ended(JobState::Completed));
        assert_eq!(expected(&memory_tracker, |_| {}), None);
    }
}
