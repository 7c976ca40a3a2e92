//! What a policy that shares GPUs goes by: a predictor, and what is known of jobs alone.

use std::sync::Arc;

use super::{ByLaw, FairShares, Interference, SoloBook};

/// Handed to policies that look at interference; they share one.
#[derive(Debug, Clone)]
pub struct Knowledge {
    /// Says what becomes of jobs that share a GPU.
    pub interference: Arc<dyn Interference>,
    /// What was measured of jobs alone.
    pub solos: Arc<SoloBook>,
}

impl Default for Knowledge {
    /// The law, and nothing measured: every job is taken for a usual one.
    fn default() -> Knowledge {
        Knowledge { interference: Arc::new(ByLaw::<FairShares>::default()), solos: Arc::default() }
    }
}
