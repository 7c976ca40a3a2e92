//! What earlier runs of the head observed, read from the history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{ColocationHistory, SoloMetricsTable};
use cohabit_scheduler_core::Head;
use cohabit_types::{Demand, JobId, JobRecord};

use super::samples::resolve_sample;
use crate::HeadError;
use crate::gpu_memory::GpuMemoryTracker;
use crate::history::{HistoryReader, StoredSample};
use crate::job_description::demand_and_traits_of;

/// How many of the newest samples are read: a few weeks of a small cluster, which takes a second or two.
pub(crate) const MAX_PAST_SAMPLES: u32 = 20_000;

/// The observations in the history of jobs that shared GPUs.
#[derive(Debug, Default)]
pub(crate) struct PastObservations {
    /// How much jobs slowed each other down.
    pub(crate) experience: ColocationHistory,
    /// How much GPU memory jobs held.
    pub(crate) memory_tracker: GpuMemoryTracker,
}

impl PastObservations {
    /// Reads the history; the head describes the jobs that have not ended.
    pub(crate) fn read(
        history: &HistoryReader,
        head: &Head,
        solos: &SoloMetricsTable,
    ) -> Result<PastObservations, HeadError> {
        let samples = history.newest_samples(MAX_PAST_SAMPLES)?;
        let records = history.records(jobs_of(&samples))?;
        Ok(PastObservations {
            experience: experience(&samples, head, &records, solos),
            memory_tracker: memory_tracker(&samples, head, &records),
        })
    }
}

fn jobs_of(samples: &[StoredSample]) -> BTreeSet<JobId> {
    let of_sample = |it: &StoredSample| {
        let own = it.sample.rank.attempt.job;
        it.neighbors.iter().copied().chain([own]).collect::<Vec<_>>()
    };
    samples.iter().flat_map(of_sample).collect()
}

fn experience(
    samples: &[StoredSample],
    head: &Head,
    records: &BTreeMap<JobId, JobRecord>,
    solos: &SoloMetricsTable,
) -> ColocationHistory {
    let ended: BTreeMap<JobId, (Demand, Arc<JobTraits>)> = records
        .iter()
        .map(|(job, record)| {
            let (demand, traits) = demand_and_traits_of(record);
            (*job, (demand, Arc::new(traits)))
        })
        .collect();
    let lookup = |job: JobId| head.demand_and_traits(job).or_else(|| ended.get(&job).cloned());
    let mut experience = ColocationHistory::default();
    for StoredSample { sample, neighbors } in samples {
        let observed = resolve_sample(sample, neighbors.iter().copied(), &lookup, solos);
        observed.iter().for_each(|sample| experience.note(sample));
    }
    experience
}

fn memory_tracker(
    samples: &[StoredSample],
    head: &Head,
    records: &BTreeMap<JobId, JobRecord>,
) -> GpuMemoryTracker {
    let mut memory_tracker = GpuMemoryTracker::default();
    for StoredSample { sample, .. } in samples {
        let job = sample.rank.attempt.job;
        sample.memory.iter().for_each(|held| memory_tracker.observe(job, &sample.gpu, *held));
    }
    let mut ended: Vec<&JobRecord> = records.values().collect();
    ended.sort_by_key(|record| record.ended_at);
    ended.into_iter().for_each(|record| memory_tracker.finish_job(record));
    let alive: BTreeSet<JobId> = head.live_jobs().collect();
    memory_tracker.retain(|job| alive.contains(&job));
    memory_tracker
}
