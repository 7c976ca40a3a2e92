//! Whose a process is that the driver or an MPS server names.
//!
//! Ranks are known by their environment, which nobody can read any more once the process is dead; so those
//! that were once seen are remembered, for whoever asks whose a dead one was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_types::RankId;

use crate::process::{exists, started_at_ticks, variable_of};
use crate::rank_folder::RankDirectory;

/// When so many processes are known, the dead ones are forgotten.
const MAX_CACHED: usize = 4096;

/// Whose a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessOwner {
    /// A rank's of this worker.
    Rank(RankId),
    /// This worker's itself, or that of one of its MPS daemons.
    Worker,
    /// Somebody else's.
    Foreign,
    /// Nobody's that can be seen from here: it is gone, or the numbers that the driver tells are those of a
    /// machine of which this is only a container.
    Unknown,
}

/// What is known of processes; clones know the same.
#[derive(Debug, Clone)]
pub(crate) struct ProcessOwners {
    /// The folder of all ranks.
    ranks: PathBuf,
    /// The pipe directories of our MPS daemons.
    pipes: Vec<PathBuf>,
    known: Arc<Mutex<BTreeMap<i32, CachedOwner>>>,
}

/// A process that was once seen, and was ours.
#[derive(Debug, Clone, Copy)]
struct CachedOwner {
    /// Tells it from another that has got its number since.
    started_at_ticks: u64,
    owner: ProcessOwner,
}

impl ProcessOwners {
    pub(crate) fn new(ranks: PathBuf, pipes: Vec<PathBuf>) -> ProcessOwners {
        ProcessOwners { ranks, pipes, known: Arc::default() }
    }

    /// This process is of that rank, by the word of the rank's executor.
    pub(crate) fn note(&self, pid: i32, rank: RankId) {
        // One that is gone by now had no time of its own to tell.
        let started_at_ticks = started_at_ticks(pid).unwrap_or_default();
        let noted = CachedOwner { started_at_ticks, owner: ProcessOwner::Rank(rank) };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, noted);
    }

    /// Whose this process is, or was when it was last seen.
    pub(crate) fn of(&self, pid: i32) -> ProcessOwner {
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

    /// The rank of this process, or whose it was when it was last seen.
    pub(crate) fn rank_of(&self, pid: i32) -> Option<RankId> {
        match self.of(pid) {
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
        // Until its program is started a new process still shows our environment.
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
    fn a_rank_is_known_by_its_environment_and_remembered_after_its_death() {
        let (child, pid) = process("COHABIT_PROGRESS", "/state/ranks/12/1/0/progress");
        let (owners, rank) = (owners(), JobId::new(12).attempt(1).rank(0));
        assert_eq!(owners.of(pid), ProcessOwner::Rank(rank));
        end(child);
        assert_eq!(owners.rank_of(pid), Some(rank));
    }

    #[test]
    fn a_rank_that_died_before_anybody_saw_it_is_known_by_the_word_of_its_executor() {
        let (child, pid) = process("COHABIT_PROGRESS", "/elsewhere");
        end(child);
        let (owners, rank) = (owners(), JobId::new(12).attempt(1).rank(0));
        owners.note(pid, rank);
        assert_eq!(owners.rank_of(pid), Some(rank));
    }

    #[test]
    fn who_was_never_seen_alive_is_unseen() {
        let (child, pid) = process("COHABIT_PROGRESS", "/state/ranks/12/1/0/progress");
        end(child);
        assert_eq!(owners().of(pid), ProcessOwner::Unknown);
    }

    #[test]
    fn our_mps_servers_and_we_ourselves_are_no_strangers() {
        for (pipe, owner) in
            [("/state/mps/p", ProcessOwner::Worker), ("/tmp/nvidia-mps", ProcessOwner::Foreign)]
        {
            let (child, pid) = process("CUDA_MPS_PIPE_DIRECTORY", pipe);
            assert_eq!(owners().of(pid), owner);
            end(child);
        }
        assert_eq!(owners().of(std::process::id().cast_signed()), ProcessOwner::Worker);
    }

    #[test]
    fn the_rank_of_another_worker_is_a_stranger() {
        let (child, pid) = process("COHABIT_PROGRESS", "/other/ranks/12/1/0/progress");
        assert_eq!(owners().of(pid), ProcessOwner::Foreign);
        end(child);
    }
}
