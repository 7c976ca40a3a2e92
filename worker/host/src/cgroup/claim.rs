//! Detects whether a cgroup subtree is delegated to this worker, and prepares it for ranks.
//!
//! Only a delegated cgroup is changed: one that contains other processes, or that systemd manages itself, is
//! left as it is.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use cohabit_gpu::DeviceRange;
use cohabit_types::{AttemptId, Bytes, Demand, HostShare, RankId, Span};
use procfs::Current;
use procfs::process::Process;

use super::rank::RankCgroup;
use super::share::{ChangedShare, change_share};
use super::tree::{CgroupTree, Kernel, ensure};

/// The controllers that limits need.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// Enables them for child cgroups.
const SUBTREE_CONTROL: &str = "+cpu +memory +pids";

/// The most memory that is kept for the daemon, its executors and the rest of the host, in bytes.
const MOST_MEMORY_KEPT: u64 = 2 << 30;

/// The cgroup of the daemon and its executors.
const DAEMON: &str = "daemon";

/// The cgroup on which a device filter is tried.
const FILTER_TRIAL: &str = "device-filter-trial";

/// The extended attributes by which systemd marks a delegated cgroup.
const DELEGATED: [&str; 2] = ["trusted.delegate", "user.delegate"];

/// The delegated subtree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    ranks: PathBuf,
    /// What the delegated cgroup may have.
    room: HostRoom,
    /// Whether device files can be closed to ranks, or why not.
    device_filter: Result<(), String>,
}

/// What a host, or a cgroup, may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostRoom {
    /// Processes and threads.
    pub(super) processes: u64,
    /// Bytes of memory.
    pub(super) memory: u64,
}

impl HostRoom {
    fn of_host() -> HostRoom {
        let memory = procfs::Meminfo::current().map_or(u64::MAX, |memory| memory.mem_total);
        HostRoom { processes: processes_of_host(), memory }
    }

    /// What this cgroup may have: what the host has, or less where it or one around it is limited, as systemd
    /// limits services.
    fn within(self, tree: &impl CgroupTree, cgroup: &Path) -> HostRoom {
        let least = |file: &str, host: u64| {
            let limit = |around: &Path| tree.read(&around.join(file)).ok()?.trim().parse().ok();
            cgroup.ancestors().filter_map(limit).chain([host]).min().unwrap_or(host)
        };
        HostRoom { processes: least("pids.max", self.processes), memory: least("memory.max", self.memory) }
    }

    /// What all ranks together may have, so that the daemon can go on and stop jobs, whatever they do.
    fn of_ranks(self) -> HostRoom {
        HostRoom {
            processes: self.processes - self.processes / 8,
            memory: self.memory - (self.memory / 16).min(MOST_MEMORY_KEPT),
        }
    }
}

impl Cgroups {
    /// Claims the cgroup that is delegated to this process. Blocks.
    ///
    /// # Errors
    /// Why there is none, as a text for people.
    pub fn claim() -> Result<Cgroups, String> {
        let own = own_cgroup()?;
        let delegated = delegated(&Kernel, &own);
        if is_of_systemd(&delegated) && !DELEGATED.iter().any(|name| is_marked(&delegated, name)) {
            return Err(none(format!(
                "systemd does not delegate '{}': set Delegate=yes",
                delegated.display()
            )));
        }
        if blocks_restarts(&own) {
            return Err(none(format!(
                "systemd could not start '{}' again while jobs run in it: set DelegateSubgroup=daemon (systemd 254 or \
                 later), or start the worker by systemd-run --scope (docs/OPERATIONS.md, Isolation)",
                own.display()
            )));
        }
        Cgroups::claim_in(&Kernel, &own, std::process::id().cast_signed(), HostRoom::of_host())
    }

    /// The same for a process in this cgroup.
    pub(super) fn claim_in(
        tree: &impl CgroupTree,
        own: &Path,
        process: i32,
        host: HostRoom,
    ) -> Result<Cgroups, String> {
        let delegated = delegated(tree, own);
        let room = host.within(tree, &delegated);
        let shown = delegated.display();
        let missing = missing_controllers(tree, &delegated).map_err(|error| none(unusable(&shown, error)))?;
        if !missing.is_empty() {
            return Err(none(format!("'{shown}' lacks the controllers {}", missing.join(", "))));
        }
        if living(tree, &delegated).iter().any(|other| *other != process) {
            return Err(none(format!("other processes are in '{shown}', too")));
        }
        let mut cgroups = Cgroups { ranks: delegated.join("ranks"), room, device_filter: Ok(()) };
        match cgroups.settle(tree, &delegated, process) {
            Ok(()) => {
                cgroups.device_filter = cgroups.try_device_filter(tree);
                Ok(cgroups)
            }
            Err(error) => {
                // Restores the former state as far as possible.
                let _ = tree.write(&delegated.join("cgroup.procs"), &process.to_string());
                let _ = tree.remove(&delegated.join(DAEMON));
                Err(none(unusable(&shown, error)))
            }
        }
    }

    fn settle(&self, tree: &impl CgroupTree, delegated: &Path, process: i32) -> io::Result<()> {
        let daemon = delegated.join(DAEMON);
        ensure(tree, &daemon)?;
        tree.write(&daemon.join("cgroup.procs"), &process.to_string())?;
        tree.write(&delegated.join("cgroup.subtree_control"), SUBTREE_CONTROL)?;
        ensure(tree, &self.ranks)?;
        tree.write(&self.ranks.join("cgroup.subtree_control"), SUBTREE_CONTROL)?;
        let room = self.room.of_ranks();
        tree.write(&self.ranks.join("pids.max"), &room.processes.to_string())?;
        tree.write(&self.ranks.join("memory.max"), &room.memory.to_string())?;
        self.sweep(tree);
        Ok(())
    }

    /// Tries a filter that closes nothing, on a cgroup that is removed again: filters of one cgroup add up.
    fn try_device_filter(&self, tree: &impl CgroupTree) -> Result<(), String> {
        let trial = self.ranks.join(FILTER_TRIAL);
        let tried = ensure(tree, &trial).and_then(|()| tree.close_devices(&trial, &[]));
        let _ = tree.remove(&trial);
        tried.map_err(|error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                return "only root, with the capability SYS_ADMIN, can close device files".to_owned();
            }
            format!("the kernel does not filter device files: {error}")
        })
    }

    /// How much memory all ranks together may have.
    #[must_use]
    pub fn memory_of_ranks(&self) -> Bytes {
        Bytes(self.room.of_ranks().memory)
    }

    /// Whether device files can be closed to ranks.
    ///
    /// # Errors
    /// Why not, as a text for people.
    pub fn device_filter(&self) -> Result<(), &str> {
        self.device_filter.as_ref().copied().map_err(String::as_str)
    }

    /// Removes empty cgroups that earlier ranks left.
    fn sweep(&self, tree: &impl CgroupTree) {
        for attempt in tree.children(&self.ranks) {
            for rank in tree.children(&attempt) {
                let _ = tree.remove(&rank);
            }
            let _ = tree.remove(&attempt);
        }
    }

    /// The cgroup of a rank with this demand, closed to these devices if they can be filtered. Does not
    /// create it.
    #[must_use]
    pub fn for_rank(&self, rank: RankId, demand: &Demand, closed_devices: Vec<DeviceRange>) -> RankCgroup {
        RankCgroup {
            attempt: self.folder_of(rank.attempt),
            rank: rank.rank,
            cpus: demand.cpus,
            memory: Some(demand.memory).filter(|memory| memory.0 > 0),
            processes: (self.room.processes / 2).max(1),
            closed_devices: if self.device_filter.is_ok() { closed_devices } else { Vec::new() },
        }
    }

    /// Limits the ranks of an attempt to this share, as far as the memory that they hold allows it. What
    /// cannot be changed stays as it was. Blocks while the kernel takes memory back.
    ///
    /// # Errors
    /// When the cgroup of the attempt is gone, or cannot be read.
    pub fn change_share(&self, attempt: AttemptId, share: HostShare) -> io::Result<ChangedShare> {
        change_share(&self.folder_of(attempt), share)
    }

    /// The processor time that the processes of this rank have taken since it started; `None` if its cgroup
    /// is gone. Blocks.
    #[must_use]
    pub fn processor_time(&self, rank: RankId) -> Option<Span> {
        let file = self.folder_of(rank.attempt).join(rank.rank.to_string()).join("cpu.stat");
        let text = std::fs::read_to_string(file).ok()?;
        let micros = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        Some(Span::from_micros(micros.trim().parse().ok()?))
    }

    /// The cgroup of an attempt.
    pub(super) fn folder_of(&self, attempt: AttemptId) -> PathBuf {
        self.ranks.join(attempt.to_string())
    }

    /// The rank in whose cgroup this process is. No process can leave the cgroup of its rank by itself.
    #[must_use]
    pub fn rank_of(&self, pid: i32) -> Option<RankId> {
        let process = Process::new(pid).ok()?;
        self.owner_of(&cgroup_of(&process).ok()?)
    }

    /// The rank to which this cgroup belongs, or the one around it.
    fn owner_of(&self, cgroup: &Path) -> Option<RankId> {
        let mut names = cgroup.strip_prefix(&self.ranks).ok()?.iter().filter_map(|name| name.to_str());
        let attempt: AttemptId = names.next()?.parse().ok()?;
        Some(attempt.rank(names.next()?.parse().ok()?))
    }
}

/// The cgroup that is delegated to a process in `own`: the parent, if the process is in the daemon's leaf
/// because it moved or was started there.
fn delegated(tree: &impl CgroupTree, own: &Path) -> PathBuf {
    let around = own.parent().filter(|_| own.file_name().is_some_and(|name| name == DAEMON));
    let is_free = |around: &&Path| living(tree, around).is_empty();
    around.filter(is_free).unwrap_or(own).to_owned()
}

/// Checks whether a cgroup could be delegated to a worker on this host. Changes nothing.
///
/// # Errors
/// Why not, as a text for people.
pub fn check_delegation() -> Result<(), String> {
    let missing = missing_controllers(&Kernel, &mounted()?.1).map_err(|error| error.to_string())?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("cgroup version 2 lacks the controllers {} on this host", missing.join(", ")))
}

fn missing_controllers(tree: &impl CgroupTree, cgroup: &Path) -> io::Result<Vec<&'static str>> {
    let there = tree.read(&cgroup.join("cgroup.controllers"))?;
    Ok(CONTROLLERS.into_iter().filter(|name| !there.split_whitespace().any(|it| it == *name)).collect())
}

fn living(tree: &impl CgroupTree, cgroup: &Path) -> Vec<i32> {
    let text = tree.read(&cgroup.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// The cgroup of this process in the version 2 hierarchy.
fn own_cgroup() -> Result<PathBuf, String> {
    let own = Process::myself().map_err(|error| none(error.to_string()))?;
    cgroup_of(&own).map_err(none)
}

/// The cgroup of a process in the version 2 hierarchy.
fn cgroup_of(process: &Process) -> Result<PathBuf, String> {
    let (root, mounted) = mounted()?;
    let cgroups = process.cgroups().map_err(|error| error.to_string())?;
    let unified = cgroups.into_iter().find(|cgroup| cgroup.hierarchy == 0);
    let below = unified.and_then(|it| Some(Path::new(&it.pathname).strip_prefix(root).ok()?.to_owned()));
    Ok(mounted.join(below.ok_or("the cgroup of this process cannot be determined")?))
}

/// Which part of the version 2 hierarchy is mounted, and where.
fn mounted() -> Result<(String, PathBuf), String> {
    let mounts = Process::myself().and_then(|process| process.mountinfo());
    let mut mounts = mounts.map_err(|error| error.to_string())?.into_iter();
    let found = mounts.find(|mount| mount.fs_type == "cgroup2");
    let found = found.ok_or("cgroup version 2 is not mounted on this host")?;
    Ok((found.root, found.mount_point))
}

fn is_of_systemd(cgroup: &Path) -> bool {
    let is_unit = |name: &str| [".service", ".scope", ".slice"].iter().any(|kind| name.ends_with(kind));
    cgroup.file_name().and_then(|name| name.to_str()).is_some_and(is_unit)
}

/// Whether this is the cgroup into which systemd puts each new process of a service. The kernel takes none
/// there as long as a cgroup below has limits; scopes are not started again, and a subgroup is a leaf.
fn blocks_restarts(own: &Path) -> bool {
    own.extension().is_some_and(|kind| kind == "service")
}

fn is_marked(cgroup: &Path, name: &str) -> bool {
    let mut value = [0; 8];
    rustix::fs::getxattr(cgroup, name, &mut value).is_ok_and(|length| value[..length] == *b"1")
}

/// How many processes and threads this process and those around it may have. Blocks.
#[must_use]
pub fn process_limit() -> u64 {
    let host = HostRoom::of_host();
    own_cgroup().map_or(host, |own| host.within(&Kernel, &own)).processes
}

fn processes_of_host() -> u64 {
    let limit = |name: &str| std::fs::read_to_string(name).ok()?.trim().parse::<u64>().ok();
    let limits = [limit("/proc/sys/kernel/pid_max"), limit("/proc/sys/kernel/threads-max")];
    limits.into_iter().flatten().min().unwrap_or(32_768)
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
        Cgroups::claim_in(tree, Path::new(own), 7, HostRoom { processes: 100, memory: 64 << 30 })
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
    fn cgroups_of_earlier_ranks_are_removed_unless_in_use() {
        let tree = FakeKernel::new(OWN, ALL, &[7]);
        let cgroups = claim(&tree, OWN).unwrap();
        for (job, lives) in [(1, true), (2, false)] {
            let rank = JobId::new(job).attempt(1).rank(0);
            let cgroup = cgroups.for_rank(rank, &Demand::default(), Vec::new());
            cgroup.make(&tree).unwrap();
            if lives {
                tree.add(&cgroup.folder(), 50);
            }
        }
        claim(&tree, "/cg/worker/daemon").unwrap();
        assert_eq!(tree.children(Path::new("/cg/worker/ranks")), [Path::new("/cg/worker/ranks/1#1")]);
    }

    #[test]
    fn foreign_cgroups_are_left_unchanged_and_named() {
        let shared = FakeKernel::new(OWN, ALL, &[7, 8]);
        assert_eq!(
            claim(&shared, OWN).unwrap_err(),
            "no delegated cgroup: other processes are in '/cg/worker', too"
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
        let cgroup =
            claim(&tree, OWN).unwrap().for_rank(JobId::new(12).attempt(2).rank(1), &demand, Vec::new());
        assert_eq!(cgroup.folder(), Path::new("/cg/worker/ranks/12#2/1"));
        assert_eq!((cgroup.cpus, cgroup.memory, cgroup.processes), (3, Some(Bytes(1 << 30)), 50));
    }

    #[test]
    fn jobs_leave_the_daemon_processes_and_memory_within_the_limits_of_its_service() {
        let tree = FakeKernel::new(OWN, ALL, &[7]);
        claim(&tree, OWN).unwrap();
        let memory_of_ranks = |tree: &FakeKernel| tree.read(Path::new("/cg/worker/ranks/memory.max"));
        assert_eq!(memory_of_ranks(&tree).unwrap(), (62_u64 << 30).to_string());
        tree.write(Path::new("/cg/worker/memory.max"), &(16 << 20).to_string()).unwrap();
        tree.write(Path::new("/cg/worker/pids.max"), "80").unwrap();
        let cgroups = claim(&tree, OWN).unwrap();
        assert_eq!(tree.read(Path::new("/cg/worker/ranks/pids.max")).unwrap(), "70");
        assert_eq!(memory_of_ranks(&tree).unwrap(), (15 << 20).to_string());
        let cgroup = cgroups.for_rank(JobId::new(12).attempt(2).rank(1), &Demand::default(), Vec::new());
        assert_eq!(cgroup.processes, 40);
    }

    #[test]
    fn devices_are_closed_to_a_rank_where_the_kernel_can_do_it() {
        let closed = [DeviceRange { major: 195, first: 1, last: 253 }];
        let rank = JobId::new(12).attempt(2).rank(1);
        let cgroup_of = |tree: &FakeKernel| {
            let cgroups = claim(tree, OWN).unwrap();
            let cgroup = cgroups.for_rank(rank, &Demand::default(), closed.to_vec());
            cgroup.make(tree).unwrap();
            (cgroups, tree.closed(&cgroup.folder()))
        };
        let (cgroups, there) = cgroup_of(&FakeKernel::new(OWN, ALL, &[7]));
        assert_eq!((cgroups.device_filter(), &*there), (Ok(()), &closed[..]));
        let (cgroups, there) = cgroup_of(&FakeKernel::new(OWN, ALL, &[7]).without_device_filter());
        let why = "only root, with the capability SYS_ADMIN, can close device files";
        assert_eq!((cgroups.device_filter(), &*there), (Err(why), &[][..]));
    }

    #[test]
    fn the_cgroup_of_a_process_names_its_rank() {
        let tree = FakeKernel::new(OWN, ALL, &[7]);
        let cgroups = claim(&tree, OWN).unwrap();
        let rank = JobId::new(12).attempt(2).rank(1);
        let owner = |path: &str| cgroups.owner_of(Path::new(path));
        assert_eq!(
            cgroups.owner_of(&cgroups.for_rank(rank, &Demand::default(), Vec::new()).folder()),
            Some(rank)
        );
        assert_eq!(owner("/cg/worker/ranks/12#2/1/made-by-the-job"), Some(rank));
        for other in ["/cg/worker/daemon", "/cg/worker/ranks/12#2", "/cg/other/ranks/12#2/1", "/12#2/1"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn a_service_that_could_not_be_started_again_is_left_alone() {
        let units = ["/cg/worker.service", "/cg/worker.service/daemon", "/cg/run-1.scope", "/cg/worker"];
        assert_eq!(units.map(|own| blocks_restarts(Path::new(own))), [true, false, false, false]);
    }

    #[test]
    fn this_machine_reports_its_cgroup_support() {
        match own_cgroup() {
            Ok(own) => assert!(own.join("cgroup.procs").exists(), "{own:?}"),
            Err(why) => assert!(why.starts_with("no delegated cgroup: "), "{why}"),
        }
    }
}
