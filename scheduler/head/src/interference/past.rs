//! What the cluster lived through before this start, from the history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{Experience, SoloBook};
use cohabit_scheduler_core::Head;
use cohabit_types::{Demand, JobId, JobRecord};

use super::{lived, told_by};
use crate::HeadError;
use crate::footprints::Memories;
use crate::history::{History, PastStretch};

/// How many of the newest stretches are gone through: a few weeks of a small cluster, in a second or two.
pub(crate) const NEWEST: u32 = 20_000;

/// What is left of the past.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// How jobs got on beside each other.
    pub(crate) experience: Experience,
    /// What they held of GPUs.
    pub(crate) memories: Memories,
}

impl Past {
    /// Goes through the history; jobs that have not ended are known by the head.
    pub(crate) fn read(history: &History, head: &Head, solos: &SoloBook) -> Result<Past, HeadError> {
        let stretches = history.newest_stretches(NEWEST)?;
        let records = history.records(jobs_of(&stretches))?;
        Ok(Past {
            experience: experience(&stretches, head, &records, solos),
            memories: memories(&stretches, head, &records),
        })
    }
}

fn jobs_of(stretches: &[PastStretch]) -> BTreeSet<JobId> {
    let of_stretch = |it: &PastStretch| {
        let own = it.stretch.rank.attempt.job;
        it.neighbours.iter().copied().chain([own]).collect::<Vec<_>>()
    };
    stretches.iter().flat_map(of_stretch).collect()
}

fn experience(
    stretches: &[PastStretch],
    head: &Head,
    records: &BTreeMap<JobId, JobRecord>,
    solos: &SoloBook,
) -> Experience {
    let ended: BTreeMap<JobId, (Demand, Arc<JobTraits>)> = records
        .iter()
        .map(|(job, record)| {
            let (demand, traits) = told_by(record);
            (*job, (demand, Arc::new(traits)))
        })
        .collect();
    let told = |job: JobId| head.told_of(job).or_else(|| ended.get(&job).cloned());
    let mut experience = Experience::default();
    for PastStretch { stretch, neighbours } in stretches {
        let lived = lived(stretch, neighbours.iter().copied(), &told, solos);
        lived.iter().for_each(|lived| experience.note(lived));
    }
    experience
}

fn memories(stretches: &[PastStretch], head: &Head, records: &BTreeMap<JobId, JobRecord>) -> Memories {
    let mut memories = Memories::default();
    for PastStretch { stretch, .. } in stretches {
        let job = stretch.rank.attempt.job;
        stretch.memory.iter().for_each(|held| memories.see(job, &stretch.gpu, *held));
    }
    let mut ended: Vec<&JobRecord> = records.values().collect();
    ended.sort_by_key(|record| record.ended_at);
    ended.into_iter().for_each(|record| memories.end(record));
    let alive: BTreeSet<JobId> = head.live_jobs().collect();
    memories.keep(|job| alive.contains(&job));
    memories
}
