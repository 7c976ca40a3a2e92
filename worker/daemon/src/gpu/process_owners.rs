//! Which rank a process belongs to that the driver or an MPS server names.
//!
//! A rank's processes are those in its cgroup; without cgroups, the descendants of its executor, which keeps
//! orphans as their subreaper. A job can change neither, so it can neither pass its processes off as
//! another's nor hide them. The environment of a process says nothing, because its job sets it.
//!
//! Nothing of this can be read any more once a process is dead. So known processes are cached, for questions
//! about dead ones. All calls read `/proc`, and so block.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cohabit_gpu::mps::MpsDirectory;
use cohabit_host::cgroup::Cgroups;
use cohabit_host::process::{ProcessIdentity, ProcessStart, ancestors_of, exists, started_at_ticks};
use cohabit_types::RankId;

/// Dead processes are dropped from the cache when it is larger than this.
const MAX_CACHED: usize = 4096;

/// How often the ancestors of a process are read while they change.
const MAX_READS: u32 = 3;

/// The owner of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessOwner {
    /// A rank of this worker.
    Rank(RankId),
    /// This worker itself, or one of its MPS daemons.
    Worker,
    /// Another program.
    Foreign,
    /// Unknown: the process is gone, or this is a container and the driver reports the process ids of the
    /// host.
    Unknown,
}

/// The cache of owners; clones share it.
#[derive(Debug, Default, Clone)]
pub(crate) struct ProcessOwners {
    /// Where ranks have cgroups.
    cgroups: Option<Cgroups>,
    /// The directories of our MPS daemons.
    mps: Vec<MpsDirectory>,
    state: Arc<Mutex<OwnersState>>,
}

#[derive(Debug, Default)]
struct OwnersState {
    /// The executor of each rank that runs.
    executors: BTreeMap<RankId, ProcessStart>,
    known: BTreeMap<i32, CachedOwner>,
}

/// A known process of ours.
#[derive(Debug, Clone, Copy)]
struct CachedOwner {
    /// Distinguishes it from a later process with the same id.
    started_at_ticks: u64,
    owner: ProcessOwner,
}

impl ProcessOwners {
    pub(crate) fn new(cgroups: Option<Cgroups>, mps: Vec<MpsDirectory>) -> ProcessOwners {
        ProcessOwners { cgroups, mps, state: Arc::default() }
    }

    /// Notes that this executor runs that rank.
    pub(crate) fn rank_started(&self, rank: RankId, executor: &ProcessIdentity) {
        let executor = ProcessStart { pid: executor.pid(), started_at_ticks: executor.started_at_ticks() };
        self.lock().executors.insert(rank, executor);
    }

    /// Where ranks have cgroups.
    pub(crate) const fn cgroups(&self) -> Option<&Cgroups> {
        self.cgroups.as_ref()
    }

    /// The executor of a rank that runs.
    pub(crate) fn executor_of(&self, rank: RankId) -> Option<ProcessStart> {
        self.lock().executors.get(&rank).copied()
    }

    /// Notes that no process of the rank is left: its executor may run another one from now on.
    pub(crate) fn rank_ended(&self, rank: RankId) {
        self.lock().executors.remove(&rank);
    }

    /// Notes that this process belongs to that rank, as its executor reports.
    pub(crate) fn note(&self, pid: i32, rank: RankId) {
        // 0 if the process is gone already.
        let started_at_ticks = started_at_ticks(pid).unwrap_or_default();
        let noted = CachedOwner { started_at_ticks, owner: ProcessOwner::Rank(rank) };
        self.lock().known.insert(pid, noted);
    }

    /// The owner of this process, or its last known owner.
    pub(crate) fn owner_of(&self, pid: i32) -> ProcessOwner {
        let mut state = self.lock();
        let earlier = state.known.get(&pid).copied();
        let Some(started_at_ticks) = started_at_ticks(pid) else {
            let gone = earlier.map_or(ProcessOwner::Unknown, |earlier| earlier.owner);
            return if exists(pid) { ProcessOwner::Foreign } else { gone };
        };
        if let Some(earlier) = earlier.filter(|earlier| earlier.started_at_ticks == started_at_ticks) {
            return earlier.owner;
        }
        let owner = self.look_up(pid, &state.executors);
        match owner {
            ProcessOwner::Rank(_) | ProcessOwner::Worker => {
                state.known.insert(pid, CachedOwner { started_at_ticks, owner });
            }
            // What was known of an earlier process with this id is past.
            ProcessOwner::Foreign | ProcessOwner::Unknown => _ = state.known.remove(&pid),
        }
        if state.known.len() > MAX_CACHED {
            state.known.retain(|pid, _| exists(*pid));
        }
        owner
    }

    /// The rank of this process, or its last known rank.
    pub(crate) fn rank_of(&self, pid: i32) -> Option<RankId> {
        match self.owner_of(pid) {
            ProcessOwner::Rank(rank) => Some(rank),
            ProcessOwner::Worker | ProcessOwner::Foreign | ProcessOwner::Unknown => None,
        }
    }

    fn look_up(&self, pid: i32, executors: &BTreeMap<RankId, ProcessStart>) -> ProcessOwner {
        if u32::try_from(pid).is_ok_and(|pid| pid == std::process::id()) {
            return ProcessOwner::Worker;
        }
        if let Some(rank) = self.cgroups.as_ref().and_then(|cgroups| cgroups.rank_of(pid)) {
            return ProcessOwner::Rank(rank);
        }
        let Some(ancestors) = (0..MAX_READS).find_map(|_| ancestors_of(pid)) else {
            return ProcessOwner::Unknown;
        };
        let runs_it = |(_, executor): &(&RankId, &ProcessStart)| ancestors.contains(executor);
        if let Some((rank, _)) = executors.iter().find(runs_it) {
            return ProcessOwner::Rank(*rank);
        }
        if self.is_of_mps(pid, &ancestors) { ProcessOwner::Worker } else { ProcessOwner::Foreign }
    }

    /// Whether it is one of our MPS daemons, or a server that one of them started.
    fn is_of_mps(&self, pid: i32, ancestors: &[ProcessStart]) -> bool {
        let own = self.mps.iter().flat_map(MpsDirectory::processes);
        own.filter(ProcessIdentity::is_alive).any(|own| {
            own.pid() == pid
                || ancestors
                    .contains(&ProcessStart { pid: own.pid(), started_at_ticks: own.started_at_ticks() })
        })
    }

    fn lock(&self) -> MutexGuard<'_, OwnersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
