//! What a policy that shares GPUs goes by: a predictor, and what is known of jobs alone.

use std::sync::Arc;

use cohabit_types::Slowdown;

use super::{AnalyticInterference, Interference, MaxMinSharing, SoloMetricsTable};

/// Handed to policies that look at interference; they share one.
#[derive(Debug, Clone)]
pub struct InterferenceContext {
    /// Says what becomes of jobs that share a GPU.
    pub interference: Arc<dyn Interference>,
    /// What was measured of jobs alone.
    pub solos: Arc<SoloMetricsTable>,
    /// How much neighbours may slow down a job that does not say.
    pub max_slowdown: Slowdown,
}

/// The cluster's bound where nobody sets another.
pub const DEFAULT_MAX_SLOWDOWN: Slowdown = Slowdown(1_300);

impl Default for InterferenceContext {
    /// The law, and nothing measured: every job counts by its own word.
    fn default() -> InterferenceContext {
        InterferenceContext {
            interference: Arc::new(AnalyticInterference::<MaxMinSharing>::default()),
            solos: Arc::default(),
            max_slowdown: DEFAULT_MAX_SLOWDOWN,
        }
    }
}
