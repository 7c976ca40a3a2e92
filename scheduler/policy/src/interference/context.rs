//! What a policy that shares GPUs knows of interference: a predictor, and measurements of jobs alone.

use std::sync::Arc;

use cohabit_types::Slowdown;

use super::{AnalyticInterference, Interference, MaxMinSharing, SoloMetricsTable};

/// Given to all policies that look at interference; they share it.
#[derive(Debug, Clone)]
pub struct InterferenceContext {
    /// Predicts the slowdowns of jobs that share a GPU.
    pub interference: Arc<dyn Interference>,
    /// What was measured of jobs alone.
    pub solos: Arc<SoloMetricsTable>,
    /// The largest slowdown by neighbors that is allowed for a job that states none; `None` without a limit.
    pub max_slowdown: Option<Slowdown>,
}

impl Default for InterferenceContext {
    /// The analytic model and no measurements: every job counts by what it claims.
    fn default() -> InterferenceContext {
        InterferenceContext {
            interference: Arc::new(AnalyticInterference::<MaxMinSharing>::default()),
            solos: Arc::default(),
            max_slowdown: None,
        }
    }
}
