//! Which rank a process belongs to that the driver or an MPS server names.
//!
//! The processes of ranks are recognised by their environment, which cannot be read any more once a process
//! is dead. So known processes are cached, for questions about dead ones. All calls read `/proc`, and so
//! block.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_host::process::{exists, started_at_ticks, variable_of};
use cohabit_host::rank_directory::RankDirectory;
use cohabit_types::RankId;

/// Dead processes are dropped from the cache when it is larger than this.
const MAX_CACHED: usize = 4096;

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
#[derive(Debug, Clone)]
pub(crate) struct ProcessOwners {
    /// The directory of all ranks.
    ranks: PathBuf,
    /// The pipe directories of our MPS daemons.
    pipes: Vec<PathBuf>,
    known: Arc<Mutex<BTreeMap<i32, CachedOwner>>>,
}

/// A known process of ours.
#[derive(Debug, Clone, Copy)]
struct CachedOwner {
    /// Distinguishes it from a later process with the same id.
    started_at_ticks: u64,
    owner: ProcessOwner,
}

impl ProcessOwners {
    pub(crate) fn new(ranks: PathBuf, pipes: Vec<PathBuf>) -> ProcessOwners {
        ProcessOwners { ranks, pipes, known: Arc::default() }
    }

    /// Notes that this process belongs to that rank, as its executor reports.
    pub(crate) fn note(&self, pid: i32, rank: RankId) {
        // 0 if the process is gone already.
        let started_at_ticks = started_at_ticks(pid).unwrap_or_default();
        let noted = CachedOwner { started_at_ticks, owner: ProcessOwner::Rank(rank) };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, noted);
    }

    /// The owner of this process, or its last known owner.
    pub(crate) fn owner_of(&self, pid: i32) -> ProcessOwner {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = known.get(&pid).copied();
        let Some(started_at_ticks) = started_at_ticks(pid) else {
            let gone = earlier.map_or(ProcessOwner::Unknown, |earlier| earlier.owner);
            return if exists(pid) { ProcessOwner::Foreign } else { gone };
        };
        if let Some(earlier) = earlier.filter(|earlier| earlier.started_at_ticks == started_at_ticks) {
            return earlier.owner;
        }
        let owner = self.look_up(pid);
        if owner != ProcessOwner::Foreign {
            known.insert(pid, CachedOwner { started_at_ticks, owner });
        }
        if known.len() > MAX_CACHED {
            known.retain(|pid, _| exists(*pid));
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

    fn look_up(&self, pid: i32) -> ProcessOwner {
        let progress = variable_of(pid, "COHABIT_PROGRESS");
        if let Some(rank) = progress.and_then(|path| RankDirectory::owner_of(&self.ranks, Path::new(&path))) {
            return ProcessOwner::Rank(rank);
        }
        let pipe = variable_of(pid, "CUDA_MPS_PIPE_DIRECTORY");
        let is_daemon = pipe.is_some_and(|pipe| self.pipes.iter().any(|own| *own == *pipe));
        if is_daemon || u32::try_from(pid).is_ok_and(|pid| pid == std::process::id()) {
            ProcessOwner::Worker
        } else {
            ProcessOwner::Foreign
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use cohabit_types::JobId;

    use super::*;

    fn owners() -> ProcessOwners {
        ProcessOwners::new("/state/ranks".into(), vec!["/state/mps/p".into()])
    }

    fn process(variable: &str, value: &str) -> (Child, i32) {
        let child = Command::new("sleep").arg("1000").env(variable, value).spawn().unwrap();
        let pid = child.id().cast_signed();
        // A new process shows our environment until it has started its program.
        while variable_of(pid, variable).is_none() {
            std::thread::yield_now();
        }
        (child, pid)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_rank_is_recognized_by_its_environment_and_remembered_after_its_death() {
        let (child, pid) = process("COHABIT_PROGRESS", "/state/ranks/12/1/0/progress");
        let (owners, rank) = (owners(), JobId::new(12).attempt(1).rank(0));
        assert_eq!(owners.owner_of(pid), ProcessOwner::Rank(rank));
        end(child);
        assert_eq!(owners.rank_of(pid), Some(rank));
    }

    #[test]
    fn a_process_that_died_before_it_was_seen_is_known_from_its_executor() {
        let (child, pid) = process("COHABIT_PROGRESS", "/elsewhere");
        end(child);
        let (owners, rank) = (owners(), JobId::new(12).attempt(1).rank(0));
        owners.note(pid, rank);
        assert_eq!(owners.rank_of(pid), Some(rank));
    }

    #[test]
    fn a_process_that_was_never_seen_alive_is_unknown() {
        let (child, pid) = process("COHABIT_PROGRESS", "/state/ranks/12/1/0/progress");
        end(child);
        assert_eq!(owners().owner_of(pid), ProcessOwner::Unknown);
    }

    #[test]
    fn our_mps_servers_and_the_worker_itself_are_not_foreign() {
        for (pipe, owner) in
            [("/state/mps/p", ProcessOwner::Worker), ("/tmp/nvidia-mps", ProcessOwner::Foreign)]
        {
            let (child, pid) = process("CUDA_MPS_PIPE_DIRECTORY", pipe);
            assert_eq!(owners().owner_of(pid), owner);
            end(child);
        }
        assert_eq!(owners().owner_of(std::process::id().cast_signed()), ProcessOwner::Worker);
    }

    #[test]
    fn the_rank_of_another_worker_is_foreign() {
        let (child, pid) = process("COHABIT_PROGRESS", "/other/ranks/12/1/0/progress");
        assert_eq!(owners().owner_of(pid), ProcessOwner::Foreign);
        end(child);
    }
}
