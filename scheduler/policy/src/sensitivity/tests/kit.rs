//! Two models of which one needs cores and the other does not, as they were measured on a server with 8 GPUs,
//! 24 cores and 500 GB.

use std::sync::Arc;

use cohabit_types::{Bytes, HostShare};

use crate::sensitivity::{JobCurve, SensitivityTable};

/// Speeds at 1, 2, 3, 4, 5, 6, 9, 12 and 24 cores.
pub(super) const LEVELS: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0];
pub(super) const IMAGES: [f64; 9] = [0.37, 0.72, 1.0, 1.3, 1.53, 1.75, 2.4, 2.4, 2.4];
pub(super) const TEXT: [f64; 9] = [1.0; 9];

/// A table by cores alone.
pub(super) fn by_cores(speeds: [f64; 9]) -> SensitivityTable {
    let rows: Vec<Vec<f64>> = speeds.iter().map(|speed| vec![*speed]).collect();
    SensitivityTable::new(LEVELS.to_vec(), &[Bytes::ZERO], &rows).unwrap()
}

/// The curve of a job with one GPU on that server.
pub(super) fn curve(table: SensitivityTable) -> JobCurve {
    JobCurve::new(Arc::new(table), 1, HostShare { cpus: 3, memory: Bytes(62_500_000_000) })
}

pub(super) const fn cores(cpus: u32) -> HostShare {
    HostShare { cpus, memory: Bytes::ZERO }
}
