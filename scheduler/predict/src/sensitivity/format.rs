//! What all readers of tables share: columns, units and bounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_policy::SensitivityTable;
use cohabit_types::Bytes;

/// The most profiles of a file or directory.
pub(super) const MOST_PROFILES: usize = 10_000;

/// The name of a profile.
pub(super) const PROFILE: &str = "profile";
/// Cores for each device.
pub(super) const CORES: &str = "cores";
/// Gigabytes of host memory for each device.
pub(super) const MEMORY: &str = "memory_gb";
/// The speed at that point.
pub(super) const SPEED: &str = "speed";
/// The columns of our own format.
pub(super) const COLUMNS: [&str; 4] = [PROFILE, CORES, MEMORY, SPEED];

/// A gigabyte as `--mem` counts it.
const GIB: f64 = (1_u64 << 30) as f64;

/// Tables by the name of their profile, and a sentence about each one that was left out.
pub type ReadTables = (BTreeMap<String, Arc<SensitivityTable>>, Vec<String>);

/// The header of our own format.
pub(super) fn columns() -> String {
    COLUMNS.join(",")
}

/// As `--mem` counts them.
pub(super) fn gigabytes(gigabytes: f64) -> Bytes {
    Bytes((gigabytes * GIB).round() as u64)
}
