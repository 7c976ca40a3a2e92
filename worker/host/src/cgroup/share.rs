//! Changes the cores and the host memory that the ranks of an attempt may use together, while they run.
//!
//! Memory that the ranks hold and that the kernel cannot take back is never put beyond their limit: the
//! kernel would kill them. What is in force in the end is read back, not assumed.

use std::io;
use std::path::Path;

use cohabit_types::{Bytes, HostShare};

use super::limits::{core_limit, core_weight, cores_in_force, memory_limit};
use super::tree::{CgroupTree, Kernel, count};

/// Memory that the kernel cannot take back without swap, as `memory.stat` names it.
const HELD: [&str; 5] = ["anon", "shmem", "kernel_stack", "pagetables", "slab_unreclaimable"];

/// A limit is rounded down to whole pages.
const PAGE: u64 = 4_096;

/// The limits of the ranks of an attempt after a change.
#[derive(Debug)]
pub struct ChangedShare {
    /// What its ranks may use now.
    pub in_force: HostShare,
    /// Why the kernel refused a limit, if it did.
    pub refused: Option<io::Error>,
}

/// See [`Cgroups::change_share`](super::Cgroups::change_share).
pub(super) fn change_share(attempt: &Path, share: HostShare) -> io::Result<ChangedShare> {
    change(&Kernel, attempt, share)
}

fn change(tree: &impl CgroupTree, attempt: &Path, share: HostShare) -> io::Result<ChangedShare> {
    let cpus = share.cpus;
    let changed = set_memory(tree, attempt, share.memory)
        .and_then(|()| tree.write(&attempt.join("cpu.weight"), &core_weight(cpus)))
        .and_then(|()| tree.write(&attempt.join("cpu.max"), &core_limit(cpus)));
    let (cpus, memory) = (cores_in_force(tree, attempt)?, memory_limit(tree, attempt)?);
    let is_rounded = memory <= share.memory && share.memory.0 - memory.0 < PAGE;
    let in_force = HostShare { cpus, memory: if is_rounded { share.memory } else { memory } };
    Ok(ChangedShare { in_force, refused: changed.err() })
}

/// The soft limit comes first: it makes the kernel take back what it can, and slows the ranks down rather
/// than kill them while they hold more.
fn set_memory(tree: &impl CgroupTree, attempt: &Path, wanted: Bytes) -> io::Result<()> {
    if wanted == Bytes::ZERO {
        return Ok(());
    }
    tree.write(&attempt.join("memory.high"), &wanted.0.to_string())?;
    let limit = wanted.max(least_memory(tree, attempt));
    let set = tree.write(&attempt.join("memory.max"), &limit.0.to_string());
    tree.write(&attempt.join("memory.high"), "max").and(set)
}

/// What the ranks hold and the kernel cannot take back, and a tenth more.
fn least_memory(tree: &impl CgroupTree, attempt: &Path) -> Bytes {
    let stat = attempt.join("memory.stat");
    let held: u64 = HELD.iter().map(|name| count(tree, &stat, name)).sum();
    Bytes(held.saturating_add(held / 10))
}

#[cfg(test)]
mod tests {
    use super::super::fake_kernel::FakeKernel;
    use super::super::tree::ensure;
    use super::*;

    const ATTEMPT: &str = "/cg/12#1";

    fn tree(held: u64) -> FakeKernel {
        let tree = FakeKernel::new("/cg", "cpu memory pids", &[]);
        tree.write(Path::new("/cg/cgroup.subtree_control"), "+cpu +memory +pids").unwrap();
        ensure(&tree, Path::new(ATTEMPT)).unwrap();
        tree.set(&Path::new(ATTEMPT).join("memory.stat"), &format!("anon {held}\nfile 999999999999\n"));
        tree
    }

    const fn share(cpus: u32, memory: u64) -> HostShare {
        HostShare { cpus, memory: Bytes(memory) }
    }

    fn read(tree: &FakeKernel, file: &str) -> String {
        tree.read(&Path::new(ATTEMPT).join(file)).unwrap()
    }

    #[test]
    fn limits_of_running_ranks_change() {
        let tree = tree(1 << 20);
        for wanted in [share(6, 4 << 30), share(2, 1 << 30), share(12, 8 << 30)] {
            assert_eq!(change(&tree, Path::new(ATTEMPT), wanted).unwrap().in_force, wanted);
            assert_eq!(read(&tree, "cpu.max"), format!("{} 100000", u64::from(wanted.cpus) * 100_000));
            assert_eq!(read(&tree, "cpu.weight"), (wanted.cpus * 100).to_string());
            assert_eq!(read(&tree, "memory.max"), wanted.memory.0.to_string());
            assert_eq!(read(&tree, "memory.high"), "max");
        }
    }

    #[test]
    fn memory_that_ranks_hold_is_not_taken_and_page_cache_is() {
        let tree = tree(2_000_000_000);
        let in_force = change(&tree, Path::new(ATTEMPT), share(1, 1 << 30)).unwrap().in_force;
        assert_eq!(in_force, share(1, 2_200_000_000), "and a tenth more than they hold");
    }

    #[test]
    fn a_limit_that_the_kernel_refuses_stays_as_it_is() {
        let tree = tree(0);
        change(&tree, Path::new(ATTEMPT), share(4, 4 << 30)).unwrap();
        let refusing = tree.refusing("cpu.max");
        let changed = change(&refusing, Path::new(ATTEMPT), share(2, 1 << 30)).unwrap();
        assert_eq!(changed.in_force, share(4, 1 << 30));
        assert!(changed.refused.is_some());
    }

    #[test]
    fn memory_that_is_not_claimed_stays_without_a_limit() {
        let tree = tree(0);
        assert_eq!(change(&tree, Path::new(ATTEMPT), share(3, 0)).unwrap().in_force, share(3, 0));
        assert_eq!(read(&tree, "memory.max"), "max");
    }

    #[test]
    fn an_attempt_that_is_gone_is_an_error() {
        assert!(change(&tree(0), Path::new("/cg/13#1"), share(1, 1 << 30)).is_err());
    }
}
