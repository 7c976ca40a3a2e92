//! What is true of the devices of a simulated cluster, whatever policies believe.

use std::sync::Arc;

use cohabit_policy::interference::{AnalyticInterference, Interference, MaxMinSharing};

/// How much jobs may slow each other down, unless somebody says otherwise.
pub const DEFAULT_MAX_SLOWDOWN: f64 = 1.3;

/// The made-up devices.
#[derive(Debug, Clone)]
pub struct Hardware {
    /// What becomes of processes beside each other on one device.
    pub truth: Arc<dyn Interference>,
    /// More slowdown than this is counted as too much; nothing else follows from it.
    pub max_slowdown: f64,
}

impl Default for Hardware {
    /// By the law of slowdown, from how busy each process keeps a device.
    fn default() -> Hardware {
        Hardware {
            truth: Arc::new(AnalyticInterference::<MaxMinSharing>::default()),
            max_slowdown: DEFAULT_MAX_SLOWDOWN,
        }
    }
}
