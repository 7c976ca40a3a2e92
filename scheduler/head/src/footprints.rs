//! The memory that jobs hold of GPUs: the most of each that runs now, and what is expected of those to come.
//!
//! A run that came to its end well has done everything that such a job does, so the most that it held is what
//! another one needs. What is expected of a job enters the journal with its submission; a user's own figure
//! is never replaced.

use std::collections::BTreeMap;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{
    Certainty, Footprints, GpuKind, SetMember, SoloMetricsTable, build_member,
};
use cohabit_types::{Bytes, Demand, Estimate, JobId, JobRecord, JobState, Submit};

use crate::interference::demand_and_traits_of;

/// What is known of the memory of jobs.
#[derive(Debug, Default)]
pub(crate) struct GpuMemoryTracker {
    past: Footprints,
    /// The most that a rank of each job that has not ended was seen to hold.
    held: BTreeMap<JobId, BTreeMap<GpuKind, Bytes>>,
}

impl GpuMemoryTracker {
    /// A rank of the job holds so much on a GPU of this model.
    pub(crate) fn see(&mut self, job: JobId, gpu: &str, memory: Bytes) {
        let most = self.held.entry(job).or_default().entry(GpuKind::named(gpu)).or_insert(memory);
        *most = memory.max(*most);
    }

    /// Learns from a job that ended.
    pub(crate) fn end(&mut self, record: &JobRecord) {
        let held = self.held.remove(&record.id).unwrap_or_default();
        if record.state == JobState::Completed {
            let (demand, traits) = demand_and_traits_of(record);
            let configuration = describe_member(&demand, &traits).configuration();
            held.iter().for_each(|(gpu, most)| self.past.note(gpu, &configuration, *most));
        }
    }

    /// Forgets what jobs hold that are none of these.
    pub(crate) fn keep(&mut self, alive: impl Fn(JobId) -> bool) {
        self.held.retain(|job, _| alive(*job));
    }

    /// Notes how much memory is expected of a job that would share a GPU and does not say how much it needs,
    /// where that is known on all of these.
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
            basis: format!("{}{separator}memory by {}", estimate.basis, known.basis),
            ..estimate.clone()
        };
    }
}

/// Whether nothing but its memory, which nobody knows, keeps the job from having neighbours.
fn would_share(demand: &Demand) -> bool {
    let known = Demand { gpu_memory: Some(Bytes(1)), ..*demand };
    demand.gpu_memory.is_none() && known.may_have_neighbours()
}

/// The job by its own words, whatever was measured of others: on whatever GPU.
fn describe_member(demand: &Demand, traits: &JobTraits) -> SetMember {
    build_member(demand, traits, &GpuKind::default(), &SoloMetricsTable::default())
}

#[cfg(test)]
mod tests {
    use cohabit_types::{GpuRequest, ModelDescription, Share, TrainingSpec};

    use super::*;
    use crate::kit::{ran, submit};

    const GIB: u64 = 1 << 30;

    /// Job 1, which trained a ResNet and ended so.
    fn ended(state: JobState) -> JobRecord {
        let trained = TrainingSpec {
            model: Some("resnet".into()),
            batch_size: Some(32),
            precision: Some("bf16".into()),
            ..TrainingSpec::default()
        };
        JobRecord { state, trained, ..ran(1, cohabit_types::Span::from_secs(60)) }
    }

    /// What is expected of the next one, with this change to it.
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
        memory_tracker.see(JobId::new(1), "V100", Bytes(3 * GIB));
        memory_tracker.see(JobId::new(1), "V100", Bytes(2 * GIB));
        memory_tracker.end(&ended(state));
        memory_tracker
    }

    #[test]
    fn who_ended_well_tells_what_the_next_one_needs() {
        let estimate = expected(&after(JobState::Completed), |_| {}).unwrap();
        assert!(estimate.gpu_memory.unwrap() >= Bytes(3 * GIB + (256 << 20)), "{estimate:?}");
        assert_eq!(estimate.basis, "memory by a run of resnet (32)");
        assert_eq!(expected(&after(JobState::Failed), |_| {}), None);
        let other = |submit: &mut Submit| submit.spec.model.as_mut().unwrap().name = Some("bert".into());
        assert_eq!(expected(&after(JobState::Completed), other), None);
        let wider = |submit: &mut Submit| submit.spec.model.as_mut().unwrap().precision = Some("fp32".into());
        assert_eq!(expected(&after(JobState::Completed), wider), None);
    }

    #[test]
    fn who_says_what_it_needs_or_shares_nothing_is_left_alone() {
        let memory_tracker = after(JobState::Completed);
        assert_eq!(
            expected(&memory_tracker, |submit| submit.spec.demand.gpu_memory = Some(Bytes(GIB))),
            None
        );
        assert_eq!(expected(&memory_tracker, |submit| submit.spec.demand.gpus = GpuRequest::Whole(1)), None);
    }

    #[test]
    fn what_else_is_expected_stays() {
        let told = Estimate { iterations: Some(7), basis: "its word".into(), ..Estimate::default() };
        let estimate = expected(&after(JobState::Completed), |submit| submit.estimate = Some(told)).unwrap();
        assert_eq!((estimate.iterations, estimate.gpu_memory.is_some()), (Some(7), true));
        assert_eq!(estimate.basis, "its word; memory by a run of resnet (32)");
    }

    #[test]
    fn who_is_gone_without_an_end_is_forgotten() {
        let mut memory_tracker = GpuMemoryTracker::default();
        memory_tracker.see(JobId::new(1), "V100", Bytes(GIB));
        memory_tracker.keep(|_| false);
        memory_tracker.end(&ended(JobState::Completed));
        assert_eq!(expected(&memory_tracker, |_| {}), None);
    }
}
