//! What earlier runs of the head observed, read from the history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{ColocationHistory, SoloMetricsTable};
use cohabit_scheduler_core::{Head, MemoryMisfit};
use cohabit_types::{Demand, JobId, JobRecord, RankId};

use super::samples::{resolve_misfit, resolve_sample};
use crate::HeadError;
use crate::gpu_memory::GpuMemoryTracker;
use crate::history::{HistoryReader, StoredSample};
use crate::job_description::demand_and_traits_of;

/// How many of the newest samples are read: a few weeks of a small cluster, which takes a second or two.
pub(crate) const MAX_PAST_SAMPLES: u32 = 20_000;
/// How many of the newest misfits are read: more than the experience remembers sets.
const MAX_PAST_MISFITS: u32 = 10_000;

/// The observations in the history of jobs that shared GPUs.
#[derive(Debug, Default)]
pub(crate) struct PastObservations {
    /// How much jobs slowed each other down, and which did not fit together.
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
        let misfits = history.newest_misfits(MAX_PAST_MISFITS)?;
        let records = history.records(jobs_of(&samples, &misfits))?;
        Ok(PastObservations {
            experience: experience(&samples, &misfits, head, &records, solos),
            memory_tracker: memory_tracker(&samples, head, &records),
        })
    }
}

fn jobs_of(samples: &[StoredSample], misfits: &[MemoryMisfit]) -> BTreeSet<JobId> {
    let of_samples = samples.iter().map(|it| (it.sample.rank, &it.neighbors));
    let of_misfits = misfits.iter().map(|it| (it.rank, &it.neighbors));
    let jobs = |(rank, neighbors): (RankId, &Vec<JobId>)| {
        neighbors.iter().copied().chain([rank.attempt.job]).collect::<Vec<_>>()
    };
    of_samples.chain(of_misfits).flat_map(jobs).collect()
}

fn experience(
    samples: &[StoredSample],
    misfits: &[MemoryMisfit],
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
    let resolve =
        |it: &StoredSample| resolve_sample(&it.sample, it.neighbors.iter().copied(), &lookup, solos);
    let samples = samples.iter().filter_map(resolve);
    let misfits = misfits.iter().filter_map(|misfit| resolve_misfit(misfit, &lookup, solos));
    let mut experience = ColocationHistory::default();
    samples.chain(misfits).for_each(|observation| observation.add_to(&mut experience));
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
