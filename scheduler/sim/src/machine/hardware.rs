//! The hardware of a simulated cluster as it really behaves, whatever the policies assume.

use std::sync::Arc;

use cohabit_policy::SensitivityProfiles;
use cohabit_policy::interference::{AnalyticInterference, Interference, MaxMinSharing};

/// Default bound on the slowdown that co-located jobs may cause each other (1.3 = 30% slower).
pub const DEFAULT_MAX_SLOWDOWN: f64 = 1.3;

/// The simulated devices.
#[derive(Debug, Clone)]
pub struct Hardware {
    /// The true effect of processes on each other when they share a device.
    pub truth: Arc<dyn Interference>,
    /// The true speeds of jobs by their cores and host memory; a job without a table does not depend on them.
    pub sensitivity: Arc<SensitivityProfiles>,
    /// Run time with a larger slowdown is counted as a violation of the bound. It affects nothing else.
    pub max_slowdown: f64,
}

impl Default for Hardware {
    /// The max-min sharing law, from the utilization of each process alone.
    fn default() -> Hardware {
        Hardware {
            truth: Arc::new(AnalyticInterference::<MaxMinSharing>::default()),
            sensitivity: Arc::default(),
            max_slowdown: DEFAULT_MAX_SLOWDOWN,
        }
    }
}
