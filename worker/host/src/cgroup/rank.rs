//! The cgroup of one rank, inside that of its attempt: what its job claims on this node limits all its ranks
//! here together.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cohabit_gpu::DeviceRange;
use cohabit_types::{Bytes, Outcome};
use tokio::time::sleep;

use super::limits::{core_limit, core_weight, memory_limit};
use super::tree::{CgroupTree, Kernel, count, ensure};
use crate::files::{FileContext, FileError};

/// How many times removing a cgroup is tried: the kernel may need a moment after its last process has ended.
const MAX_REMOVALS: u32 = 100;

const PAUSE: Duration = Duration::from_millis(10);

/// The cgroup of a rank, and the limits of its attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankCgroup {
    pub(crate) attempt: PathBuf,
    pub(crate) rank: u32,
    /// Cores; 0 is no limit.
    pub(crate) cpus: u32,
    pub(crate) memory: Option<Bytes>,
    /// The most processes and threads.
    pub(crate) processes: u64,
    /// Device files that reach GPUs of others.
    pub(crate) closed_devices: Vec<DeviceRange>,
}

impl RankCgroup {
    /// Creates it, and opens its `cgroup.procs`.
    ///
    /// # Errors
    /// When the kernel refuses a limit. The rank must not run then.
    pub fn open(&self) -> Result<File, FileError> {
        self.make(&Kernel).at("set limits in", &self.attempt)?;
        let procs = self.folder().join("cgroup.procs");
        OpenOptions::new().write(true).open(&procs).at("open", &procs)
    }

    /// Replaces the outcome if the kernel killed the rank for lack of memory.
    #[must_use]
    pub fn explain(&self, outcome: Outcome) -> Outcome {
        self.explain_with(&Kernel, outcome)
    }

    /// Kills all processes in it.
    fn kill(&self) {
        // Kernels before 5.14 lack this file; the processes are also found in other ways.
        let _ = Kernel.write(&self.folder().join("cgroup.kill"), "1");
    }

    /// Kills all processes in it and removes it.
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
        tree.write(&self.folder().join("memory.oom.group"), "1")?;
        match &*self.closed_devices {
            [] => Ok(()),
            closed => tree.close_devices(&self.folder(), closed),
        }
    }

    fn limits(&self) -> Vec<(&'static str, String)> {
        let cores = (self.cpus > 0).then(|| ("cpu.max", core_limit(self.cpus)));
        let memory = self.memory.map(|memory| ("memory.max", memory.0.to_string()));
        let mut limits =
            vec![("cpu.weight", core_weight(self.cpus)), ("pids.max", self.processes.to_string())];
        limits.extend(cores.into_iter().chain(memory));
        limits
    }

    /// With swap, the job could use more memory than it claims. A kernel without swap lacks this file.
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
            limit: self.memory_limit(tree).filter(|_| own_limit),
            peak: peak.and_then(|bytes| bytes.trim().parse().ok()).map(Bytes),
        }
    }

    /// The limit in force: it may have changed since the rank started.
    fn memory_limit(&self, tree: &impl CgroupTree) -> Option<Bytes> {
        let in_force = memory_limit(tree, &self.attempt).ok().filter(|limit| *limit > Bytes::ZERO);
        self.memory.map(|started_with| in_force.unwrap_or(started_with))
    }

    /// The cgroup of the attempt stays as long as it contains other ranks.
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
        RankCgroup {
            attempt: "/cg/ranks/12#1".into(),
            rank,
            cpus: 2,
            memory,
            processes: 100,
            closed_devices: Vec::new(),
        }
    }

    fn read(tree: &FakeKernel, file: &str) -> String {
        tree.read(&Path::new("/cg/ranks/12#1").join(file)).unwrap()
    }

    #[test]
    fn the_claim_of_a_job_limits_all_its_ranks_together() {
        let tree = tree();
        rank(0).make(&tree).unwrap();
        rank(1).make(&tree).unwrap();
        let limits = ["cpu.max", "cpu.weight", "memory.max", "memory.swap.max", "pids.max"];
        let values = limits.map(|file| read(&tree, file));
        assert_eq!(values, ["200000 100000", "200", "1073741824", "0", "100"]);
        assert_eq!(
            (read(&tree, "0/memory.oom.group"), read(&tree, "1/memory.oom.group")),
            ("1".into(), "1".into())
        );
    }

    #[test]
    fn unclaimed_resources_are_not_limited() {
        let tree = tree();
        RankCgroup { cpus: 0, memory: None, ..rank(0) }.make(&tree).unwrap();
        assert_eq!((read(&tree, "cpu.max"), read(&tree, "memory.max")), ("max 100000".into(), "max".into()));
        assert_eq!(read(&tree, "cpu.weight"), "100");
    }

    #[test]
    fn an_empty_cgroup_is_removed_and_that_of_the_attempt_with_the_last_rank() {
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
    fn a_rank_killed_for_its_memory_limit_reports_the_figures() {
        let tree = tree();
        rank(0).make(&tree).unwrap();
        assert_eq!(rank(0).explain_with(&tree, KILLED), KILLED);
        tree.out_of_memory(&rank(0).folder(), &rank(0).attempt);
        let (limit, peak) = (Some(Bytes(1 << 30)), Some(Bytes(1 << 30)));
        assert_eq!(rank(0).explain_with(&tree, KILLED), Outcome::OutOfMemory { code: 137, limit, peak });
        assert_eq!(rank(0).explain_with(&tree, Outcome::Exited(0)), Outcome::Exited(0));
    }

    #[test]
    fn other_ranks_of_the_attempt_are_not_reported_as_out_of_memory() {
        let tree = tree();
        rank(0).make(&tree).unwrap();
        rank(1).make(&tree).unwrap();
        tree.out_of_memory(&rank(0).folder(), &rank(0).attempt);
        assert_eq!(rank(1).explain_with(&tree, KILLED), KILLED);
    }

    #[test]
    fn a_host_without_memory_is_distinguished_from_a_job_over_its_limit() {
        let tree = tree();
        rank(0).make(&tree).unwrap();
        tree.out_of_memory(&rank(0).folder(), Path::new("/cg"));
        let Outcome::OutOfMemory { limit, .. } = rank(0).explain_with(&tree, KILLED) else { panic!() };
        assert_eq!(limit, None);
    }
}
