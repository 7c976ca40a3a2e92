//! What the cluster lived through before this start, from the history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{ColocationHistory, SoloMetricsTable};
use cohabit_scheduler_core::Head;
use cohabit_types::{Demand, JobId, JobRecord};

use super::{demand_and_traits_of, lived};
use crate::HeadError;
use crate::footprints::GpuMemoryTracker;
use crate::history::{HistoryReader, StoredSample};

/// How many of the newest stretches are gone through: a few weeks of a small cluster, in a second or two.
pub(crate) const MAX_PAST_SAMPLES: u32 = 20_000;

/// What is left of the past.
#[derive(Debug, Default)]
pub(crate) struct PastObservations {
    /// How jobs got on beside each other.
    pub(crate) experience: ColocationHistory,
    /// What they held of GPUs.
    pub(crate) memory_tracker: GpuMemoryTracker,
}

impl PastObservations {
    /// Goes through the history; jobs that have not ended are known by the head.
    pub(crate) fn read(
        history: &HistoryReader,
        head: &Head,
        solos: &SoloMetricsTable,
    ) -> Result<PastObservations, HeadError> {
        let stretches = history.newest_samples(MAX_PAST_SAMPLES)?;
        let records = history.records(jobs_of(&stretches))?;
        Ok(PastObservations {
            experience: experience(&stretches, head, &records, solos),
            memory_tracker: memory_tracker(&stretches, head, &records),
        })
    }
}

fn jobs_of(stretches: &[StoredSample]) -> BTreeSet<JobId> {
    let of_stretch = |it: &StoredSample| {
        let own = it.stretch.rank.attempt.job;
        it.neighbours.iter().copied().chain([own]).collect::<Vec<_>>()
    };
    stretches.iter().flat_map(of_stretch).collect()
}

fn experience(
    stretches: &[StoredSample],
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
    let told = |job: JobId| head.demand_and_traits(job).or_else(|| ended.get(&job).cloned());
    let mut experience = ColocationHistory::default();
    for StoredSample { stretch, neighbours } in stretches {
        let lived = lived(stretch, neighbours.iter().copied(), &told, solos);
        lived.iter().for_each(|lived| experience.note(lived));
    }
    experience
}

fn memory_tracker(
    stretches: &[StoredSample],
    head: &Head,
    records: &BTreeMap<JobId, JobRecord>,
) -> GpuMemoryTracker {
    let mut memory_tracker = GpuMemoryTracker::default();
    for StoredSample { stretch, .. } in stretches {
        let job = stretch.rank.attempt.job;
        stretch.memory.iter().for_each(|held| memory_tracker.see(job, &stretch.gpu, *held));
    }
    let mut ended: Vec<&JobRecord> = records.values().collect();
    ended.sort_by_key(|record| record.ended_at);
    ended.into_iter().for_each(|record| memory_tracker.end(record));
    let alive: BTreeSet<JobId> = head.live_jobs().collect();
    memory_tracker.keep(|job| alive.contains(&job));
    memory_tracker
}
