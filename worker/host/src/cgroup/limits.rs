//! The limits of a cgroup as the kernel's files have them.

use std::io;
use std::path::Path;

use cohabit_types::Bytes;

use super::tree::CgroupTree;

/// The period of the CPU quota, in microseconds.
const PERIOD_US: u64 = 100_000;

/// The CPU weight of one core, which is the default weight of a cgroup.
const CORE_WEIGHT: u64 = 100;

/// The largest CPU weight.
const LARGEST_WEIGHT: u64 = 10_000;

/// The quota of so many cores, as `cpu.max` has it.
pub(super) fn core_limit(cpus: u32) -> String {
    match cpus {
        0 => format!("max {PERIOD_US}"),
        cpus => format!("{} {PERIOD_US}", u64::from(cpus) * PERIOD_US),
    }
}

/// The weight of so many cores, as `cpu.weight` has it.
pub(super) fn core_weight(cpus: u32) -> String {
    (u64::from(cpus) * CORE_WEIGHT).clamp(CORE_WEIGHT, LARGEST_WEIGHT).to_string()
}

/// The cores in force; 0 without a limit.
pub(super) fn cores_in_force(tree: &impl CgroupTree, attempt: &Path) -> io::Result<u32> {
    let text = tree.read(&attempt.join("cpu.max"))?;
    let quota: Option<u64> = text.split_whitespace().next().and_then(|quota| quota.parse().ok());
    Ok(quota.map_or(0, |quota| u32::try_from(quota / PERIOD_US).unwrap_or(u32::MAX)))
}

/// The memory in force; 0 without a limit.
pub(super) fn memory_limit(tree: &impl CgroupTree, attempt: &Path) -> io::Result<Bytes> {
    let text = tree.read(&attempt.join("memory.max"))?;
    Ok(text.trim().parse().map(Bytes).unwrap_or_default())
}
