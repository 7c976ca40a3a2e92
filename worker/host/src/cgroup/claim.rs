//! Finds out whether a part of the cgroup tree is ours, and makes it ready for ranks.
//!
//! Only what was handed to this worker is touched: a cgroup in which other processes live, or that systemd
//! keeps for itself, is left as it is.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use cohabit_types::{Demand, RankId};
use procfs::process::Process;

use super::rank::RankCgroup;
use super::tree::{CgroupTree, Kernel, ensure};

/// What limits need.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// Tells a cgroup to pass them on to those within it.
const SUBTREE_CONTROL: &str = "+cpu +memory +pids";

/// Where the daemon and its executors live.
const DAEMON: &str = "daemon";

/// By one of these systemd says that it has handed over a cgroup.
const DELEGATED: [&str; 2] = ["trusted.delegate", "user.delegate"];

/// The part of the tree that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    ranks: PathBuf,
    /// How many processes and threads one job may have: half of what the machine has room for.
    processes: u64,
}

impl Cgroups {
    /// Takes what is delegated to this process.
    ///
    /// # Errors
    /// Why there is nothing; for people.
    pub fn claim() -> Result<Cgroups, String> {
        let own = own_cgroup()?;
        let delegated = delegated(&Kernel, &own);
        if is_of_systemd(&delegated) && !DELEGATED.iter().any(|name| is_marked(&delegated, name)) {
            return Err(none(format!(
                "systemd keeps '{}' for itself: set Delegate=yes",
                delegated.display()
            )));
        }
        Cgroups::claim_in(&Kernel, &own, std::process::id().cast_signed(), room_for_processes())
    }

    /// The same for a process that lives in this cgroup.
    pub(super) fn claim_in(
        tree: &impl CgroupTree,
        own: &Path,
        process: i32,
        processes: u64,
    ) -> Result<Cgroups, String> {
        let delegated = delegated(tree, own);
        let shown = delegated.display();
        let missing = missing_controllers(tree, &delegated).map_err(|error| none(unusable(&shown, error)))?;
        if !missing.is_empty() {
            return Err(none(format!("'{shown}' lacks the controllers {}", missing.join(", "))));
        }
        if living(tree, &delegated).iter().any(|other| *other != process) {
            return Err(none(format!("other programs live in '{shown}', too")));
        }
        let cgroups = Cgroups { ranks: delegated.join("ranks"), processes };
        match cgroups.settle(tree, &delegated, process) {
            Ok(()) => Ok(cgroups),
            Err(error) => {
                // As it was, as far as that goes.
                let _ = tree.write(&delegated.join("cgroup.procs"), &process.to_string());
                let _ = tree.remove(&delegated.join(DAEMON));
                Err(none(unusable(&shown, error)))
            }
        }
    }

    fn settle(&self, tree: &impl CgroupTree, delegated: &Path, process: i32) -> std::io::Result<()> {
        let daemon = delegated.join(DAEMON);
        ensure(tree, &daemon)?;
        tree.write(&daemon.join("cgroup.procs"), &process.to_string())?;
        tree.write(&delegated.join("cgroup.subtree_control"), SUBTREE_CONTROL)?;
        ensure(tree, &self.ranks)?;
        tree.write(&self.ranks.join("cgroup.subtree_control"), SUBTREE_CONTROL)?;
        self.sweep(tree);
        Ok(())
    }

    /// Removes what ranks of earlier times have left; where something still lives, nothing happens.
    fn sweep(&self, tree: &impl CgroupTree) {
        for attempt in tree.children(&self.ranks) {
            for rank in tree.children(&attempt) {
                let _ = tree.remove(&rank);
            }
            let _ = tree.remove(&attempt);
        }
    }

    /// The cgroup of a rank whose job claims this; it is not made yet.
    pub fn of(&self, rank: RankId, demand: &Demand) -> RankCgroup {
        RankCgroup {
            attempt: self.ranks.join(rank.attempt.to_string()),
            rank: rank.rank,
            cpus: demand.cpus,
            memory: Some(demand.memory).filter(|memory| memory.0 > 0),
            processes: self.processes,
        }
    }
}

/// What was handed over to a process that lives here: a daemon that was started in a leaf of its own, or that
/// was here before, has what is around it.
fn delegated(tree: &impl CgroupTree, own: &Path) -> PathBuf {
    let around = own.parent().filter(|_| own.file_name().is_some_and(|name| name == DAEMON));
    let is_free = |around: &&Path| living(tree, around).is_empty();
    around.filter(is_free).unwrap_or(own).to_owned()
}

/// Whether a worker on this machine could be given a part of the tree. Nothing is changed.
///
/// # Errors
/// Why not; for people.
pub fn check_delegation() -> Result<(), String> {
    let missing = missing_controllers(&Kernel, &mounted()?.1).map_err(|error| error.to_string())?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("cgroups of version 2 lack the controllers {} here", missing.join(", ")))
}

fn missing_controllers(tree: &impl CgroupTree, cgroup: &Path) -> std::io::Result<Vec<&'static str>> {
    let there = tree.read(&cgroup.join("cgroup.controllers"))?;
    Ok(CONTROLLERS.into_iter().filter(|name| !there.split_whitespace().any(|it| it == *name)).collect())
}

fn living(tree: &impl CgroupTree, cgroup: &Path) -> Vec<i32> {
    let text = tree.read(&cgroup.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Where this process lives in the tree of version 2.
fn own_cgroup() -> Result<PathBuf, String> {
    let (root, mounted) = mounted().map_err(none)?;
    let cgroups = Process::myself().and_then(|process| process.cgroups());
    let cgroups = cgroups.map_err(|error| none(error.to_string()))?;
    let unified = cgroups.into_iter().find(|cgroup| cgroup.hierarchy == 0);
    let below = unified.and_then(|it| Some(Path::new(&it.pathname).strip_prefix(root).ok()?.to_owned()));
    Ok(mounted.join(below.ok_or_else(|| none("the cgroup of this process cannot be seen".into()))?))
}

/// Which part of the tree of version 2 is mounted, and where.
fn mounted() -> Result<(String, PathBuf), String> {
    let mounts = Process::myself().and_then(|process| process.mountinfo());
    let mut mounts = mounts.map_err(|error| error.to_string())?.into_iter();
    let found = mounts.find(|mount| mount.fs_type == "cgroup2");
    let found = found.ok_or("cgroups of version 2 are not mounted here")?;
    Ok((found.root, found.mount_point))
}

fn is_of_systemd(cgroup: &Path) -> bool {
    let is_unit = |name: &str| [".service", ".scope", ".slice"].iter().any(|kind| name.ends_with(kind));
    cgroup.file_name().and_then(|name| name.to_str()).is_some_and(is_unit)
}

fn is_marked(cgroup: &Path, name: &str) -> bool {
    let mut value = [0; 8];
    rustix::fs::getxattr(cgroup, name, &mut value).is_ok_and(|length| value[..length] == *b"1")
}

fn room_for_processes() -> u64 {
    let limit = |name: &str| std::fs::read_to_string(name).ok()?.trim().parse::<u64>().ok();
    let limits = [limit("/proc/sys/kernel/pid_max"), limit("/proc/sys/kernel/threads-max")];
    limits.into_iter().flatten().min().map_or(16_384, |room| (room / 2).max(1))
}

fn unusable(shown: &impl Display, error: impl Display) -> String {
    format!("'{shown}' cannot be used: {error}")
}

fn none(why: String) -> String {
    format!("no delegated cgroup: {why}")
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Bytes, JobId};

    use super::super::fake_kernel::FakeKernel;
    use super::*;

    const OWN: &str = "/cg/worker";
    const ALL: &str = "cpu memory pids io";

    fn claim(tree: &FakeKernel, own: &str) -> Result<Cgroups, String> {
        Cgroups::claim_in(tree, Path::new(own), 7, 100)
    }

    #[test]
    fn a_delegated_cgroup_is_made_ready_and_the_daemon_moves_to_a_leaf() {
        let tree = FakeKernel::new(OWN, ALL, &[7]);
        let cgroups = claim(&tree, OWN).unwrap();
        assert_eq!(cgroups.ranks, Path::new("/cg/worker/ranks"));
        assert!(tree.processes("/cg/worker").is_empty());
        assert_eq!(tree.processes("/cg/worker/daemon"), [7]);
        let passed_on = tree.read(Path::new("/cg/worker/ranks/cgroup.subtree_control")).unwrap();
        assert_eq!(passed_on.split_whitespace().collect::<Vec<_>>(), CONTROLLERS);
    }

    #[test]
    fn the_next_daemon_takes_what_the_one_before_had_wherever_it_is_started() {
        let tree = FakeKernel::new(OWN, ALL, &[7]);
        let first = claim(&tree, OWN).unwrap();
        assert_eq!(claim(&tree, "/cg/worker/daemon").unwrap(), first);
        assert_eq!(tree.processes("/cg/worker/daemon"), [7]);
    }

    #[test]
    fn what_ranks_of_earlier_times_left_is_removed_unless_it_lives() {
        let tree = FakeKernel::new(OWN, ALL, &[7]);
        let cgroups = claim(&tree, OWN).unwrap();
        for (job, lives) in [(1, true), (2, false)] {
            let rank = JobId::new(job).attempt(1).rank(0);
            let cgroup = cgroups.of(rank, &Demand::default());
            cgroup.make(&tree).unwrap();
            if lives {
                tree.add(&cgroup.folder(), 50);
            }
        }
        claim(&tree, "/cg/worker/daemon").unwrap();
        assert_eq!(tree.children(Path::new("/cg/worker/ranks")), [Path::new("/cg/worker/ranks/1#1")]);
    }

    #[test]
    fn what_is_not_ours_is_left_as_it_is_and_named() {
        let shared = FakeKernel::new(OWN, ALL, &[7, 8]);
        assert_eq!(
            claim(&shared, OWN).unwrap_err(),
            "no delegated cgroup: other programs live in '/cg/worker', too"
        );
        let poor = FakeKernel::new(OWN, "memory pids", &[7]);
        assert_eq!(
            claim(&poor, OWN).unwrap_err(),
            "no delegated cgroup: '/cg/worker' lacks the controllers cpu"
        );
        for tree in [shared, poor] {
            assert_eq!(tree.children(Path::new(OWN)), Vec::<PathBuf>::new());
        }
        let nowhere = FakeKernel::new(OWN, ALL, &[7]);
        assert!(claim(&nowhere, "/cg/other").unwrap_err().contains("cannot be used"));
    }

    #[test]
    fn a_tree_that_refuses_is_left_as_it_was() {
        let tree = FakeKernel::new(OWN, ALL, &[7]).read_only_control();
        let refusal = claim(&tree, OWN).unwrap_err();
        assert!(refusal.contains("'/cg/worker' cannot be used"), "{refusal}");
        assert_eq!(tree.processes(OWN), [7]);
        assert_eq!(tree.children(Path::new(OWN)), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_rank_gets_what_its_job_claims() {
        let tree = FakeKernel::new(OWN, ALL, &[7]);
        let demand = Demand { cpus: 3, memory: Bytes(1 << 30), ..Demand::default() };
        let cgroup = claim(&tree, OWN).unwrap().of(JobId::new(12).attempt(2).rank(1), &demand);
        assert_eq!(cgroup.folder(), Path::new("/cg/worker/ranks/12#2/1"));
        assert_eq!((cgroup.cpus, cgroup.memory, cgroup.processes), (3, Some(Bytes(1 << 30)), 100));
    }

    #[test]
    fn this_machine_says_what_it_has() {
        match own_cgroup() {
            Ok(own) => assert!(own.join("cgroup.procs").exists(), "{own:?}"),
            Err(why) => assert!(why.starts_with("no delegated cgroup: "), "{why}"),
        }
    }
}
