//! The cgroup of one rank, within that of its attempt: what its job claims on this node is the limit of all
//! its ranks here together.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cohabit_types::{Bytes, Outcome};
use tokio::time::sleep;

use super::tree::{CgroupTree, Kernel, count, ensure};
use crate::files::{FileContext, FileError};

/// The time in which a job may use its cores for as long again, in microseconds.
const PERIOD_US: u64 = 100_000;

/// The weight of one core: what a cgroup has that nobody gave another.
const CORE_WEIGHT: u64 = 100;

/// The largest weight there is.
const LARGEST_WEIGHT: u64 = 10_000;

/// How often, a moment apart, it is tried to remove a cgroup: the kernel may not be done with what lived
/// there.
const MAX_REMOVALS: u32 = 100;

const PAUSE: Duration = Duration::from_millis(10);

/// Where a rank's processes live, and what its attempt may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankCgroup {
    pub(crate) attempt: PathBuf,
    pub(crate) rank: u32,
    /// Cores; 0 limits none.
    pub(crate) cpus: u32,
    pub(crate) memory: Option<Bytes>,
    /// Processes and threads.
    pub(crate) processes: u64,
}

impl RankCgroup {
    /// Makes it, and opens the way into it.
    ///
    /// # Errors
    /// When the kernel refuses a limit: a rank without it must not run.
    pub fn open(&self) -> Result<File, FileError> {
        self.make(&Kernel).at("set limits in", &self.attempt)?;
        let procs = self.folder().join("cgroup.procs");
        OpenOptions::new().write(true).open(&procs).at("open", &procs)
    }

    /// How the rank really ended, where want of memory was the reason.
    pub fn explain(&self, outcome: Outcome) -> Outcome {
        self.explain_with(&Kernel, outcome)
    }

    /// Kills whatever still lives there.
    fn kill(&self) {
        // Kernels before 5.14 have no such file; processes are found in other ways, too.
        let _ = Kernel.write(&self.folder().join("cgroup.kill"), "1");
    }

    /// Leaves nothing of it.
    pub async fn clear(&self) {
        self.kill();
        for _ in 0..MAX_REMOVALS {
            match self.remove(&Kernel) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(PAUSE).await,
                Ok(()) | Err(_) => return,
            }
        }
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.attempt.join(self.rank.to_string())
    }

    pub(super) fn make(&self, tree: &impl CgroupTree) -> io::Result<()> {
        ensure(tree, &self.attempt)?;
        for (file, value) in self.limits() {
            tree.write(&self.attempt.join(file), &value)?;
        }
        if self.memory.is_some() {
            self.forbid_swap(tree)?;
        }
        tree.write(&self.attempt.join("cgroup.subtree_control"), "+memory")?;
        ensure(tree, &self.folder())?;
        tree.write(&self.folder().join("memory.oom.group"), "1")
    }

    fn limits(&self) -> Vec<(&'static str, String)> {
        let weight = (u64::from(self.cpus) * CORE_WEIGHT).clamp(CORE_WEIGHT, LARGEST_WEIGHT);
        let cores = (self.cpus > 0).then(|| u64::from(self.cpus) * PERIOD_US);
        let cores = cores.map(|most| ("cpu.max", format!("{most} {PERIOD_US}")));
        let memory = self.memory.map(|memory| ("memory.max", memory.0.to_string()));
        let mut limits = vec![("cpu.weight", weight.to_string()), ("pids.max", self.processes.to_string())];
        limits.extend(cores.into_iter().chain(memory));
        limits
    }

    /// Memory that is swapped out would be more than the job claims. A kernel without swap has no such file.
    fn forbid_swap(&self, tree: &impl CgroupTree) -> io::Result<()> {
        match tree.write(&self.attempt.join("memory.swap.max"), "0") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            written => written,
        }
    }

    fn explain_with(&self, tree: &impl CgroupTree, outcome: Outcome) -> Outcome {
        let was_killed = count(tree, &self.folder().join("memory.events"), "oom_kill") > 0;
        if outcome.succeeded() || !was_killed {
            return outcome;
        }
        let own_limit = count(tree, &self.attempt.join("memory.events"), "oom") > 0;
        let peak = tree.read(&self.attempt.join("memory.peak")).ok();
        Outcome::OutOfMemory {
            code: outcome.shell_code(),
            limit: self.memory.filter(|_| own_limit),
            peak: peak.and_then(|bytes| bytes.trim().parse().ok()).map(Bytes),
        }
    }

    /// The attempt's own stays while it has other ranks here.
    fn remove(&self, tree: &impl CgroupTree) -> io::Result<()> {
        tree.remove(&self.folder())?;
        let _ = tree.remove(&self.attempt);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cohabit_types::Signal;

    use super::super::fake_kernel::FakeKernel;
    use super::*;

    const KILLED: Outcome = Outcome::Signalled(Signal::KILL);

    fn tree() -> FakeKernel {
        let tree = FakeKernel::new("/cg/ranks", "cpu memory pids", &[]);
        tree.write(Path::new("/cg/ranks/cgroup.subtree_control"), "+cpu +memory +pids").unwrap();
        tree
    }

    fn rank(rank: u32) -> RankCgroup {
        let memory = Some(Bytes(1 << 30));
        RankCgroup { attempt: "/cg/ranks/12#1".into(), rank, cpus: 2, memory, processes: 100 }
    }

    fn read(tree: &FakeKernel, file: &str) -> String {
        tree.read(&Path::new("/cg/ranks/12#1").join(file)).unwrap()
    }

    #[test]
    fn what_a_job_claims_limits_all_its_ranks_together() {
        let tree = tree();
        rank(0).make(&tree).unwrap();
        rank(1).make(&tree).unwrap();
        let limits = ["cpu.max", "cpu.weight", "memory.max", "memory.swap.max", "pids.max"];
        let told = limits.map(|file| read(&tree, file));
        assert_eq!(told, ["200000 100000", "200", "1073741824", "0", "100"]);
        assert_eq!(
            (read(&tree, "0/memory.oom.group"), read(&tree, "1/memory.oom.group")),
            ("1".into(), "1".into())
        );
    }

    #[test]
    fn what_is_not_claimed_is_not_limited() {
        let tree = tree();
        RankCgroup { cpus: 0, memory: None, ..rank(0) }.make(&tree).unwrap();
        assert_eq!((read(&tree, "cpu.max"), read(&tree, "memory.max")), ("max 100000".into(), "max".into()));
        assert_eq!(read(&tree, "cpu.weight"), "100");
    }

    #[test]
    fn a_cgroup_goes_when_nothing_lives_there_and_that_of_the_attempt_with_the_last() {
        let tree = tree();
        for number in [0, 1] {
            rank(number).make(&tree).unwrap();
            tree.add(&rank(number).folder(), 50 + number.cast_signed());
        }
        assert_eq!(rank(0).remove(&tree).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        for number in [0, 1] {
            tree.write(&rank(number).folder().join("cgroup.kill"), "1").unwrap();
            rank(number).remove(&tree).unwrap();
        }
        assert_eq!(tree.children(Path::new("/cg/ranks")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_limit_that_the_kernel_refuses_is_an_error() {
        let bare = FakeKernel::new("/cg/ranks", "cpu memory pids", &[]);
        assert!(rank(0).make(&bare).is_err(), "without controllers there are no limits");
    }

    #[test]
    fn a_rank_that_the_kernel_killed_for_its_limit_says_so_with_figures() {
        let tree = tree();
        rank(0).make(&tree).unwrap();
        assert_eq!(rank(0).explain_with(&tree, KILLED), KILLED);
        tree.out_of_memory(&rank(0).folder(), &rank(0).attempt);
        let (limit, peak) = (Some(Bytes(1 << 30)), Some(Bytes(1 << 30)));
        assert_eq!(rank(0).explain_with(&tree, KILLED), Outcome::OutOfMemory { code: 137, limit, peak });
        assert_eq!(rank(0).explain_with(&tree, Outcome::Exited(0)), Outcome::Exited(0));
    }

    #[test]
    fn the_other_ranks_of_a_gang_are_not_said_to_have_been_killed_for_memory() {
        let tree = tree();
        rank(0).make(&tree).unwrap();
        rank(1).make(&tree).unwrap();
        tree.out_of_memory(&rank(0).folder(), &rank(0).attempt);
        assert_eq!(rank(1).explain_with(&tree, KILLED), KILLED);
    }

    #[test]
    fn a_machine_without_memory_is_told_from_a_job_that_took_too_much() {
        let tree = tree();
        rank(0).make(&tree).unwrap();
        tree.out_of_memory(&rank(0).folder(), Path::new("/cg"));
        let Outcome::OutOfMemory { limit, .. } = rank(0).explain_with(&tree, KILLED) else { panic!() };
        assert_eq!(limit, None);
    }
}
