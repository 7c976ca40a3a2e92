//! The predictor of interference that a head starts with.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "learned")]
use cohabit_policy::interference::MeasuredSet;
use cohabit_policy::interference::{AnalyticInterference, Interference, MaxMinSharing, SoloMetricsTable};
use cohabit_types::Time;

use crate::interference_source::InterferenceSource;

/// A predictor, and what was measured of jobs that run alone. `models.rs` reads the ones in files.
#[derive(Debug, Clone)]
pub(crate) struct BasePredictor {
    /// Where it comes from.
    pub(crate) source: InterferenceSource,
    /// Predicts slowdowns.
    pub(crate) interference: Arc<dyn Interference>,
    /// What was measured of jobs that run alone.
    pub(crate) solos: Arc<SoloMetricsTable>,
    /// Until when it may have learned sets of this cluster; `None` if it learned none.
    pub(super) learned_until: Option<Time>,
    /// The same predictor, if it is a model that can be adapted.
    pub(super) model: Option<Arc<dyn AdaptableModel>>,
}

/// A trained model that can be adapted to observed sets.
pub(super) trait AdaptableModel: fmt::Debug + Send + Sync {
    /// The model after these sets; it does not change itself.
    #[cfg(feature = "learned")]
    fn adapted_to(&self, sets: &[MeasuredSet]) -> Arc<dyn Interference>;
}

impl BasePredictor {
    /// Max-min fair sharing of the device, which needs no measurements.
    pub(crate) fn analytic() -> BasePredictor {
        BasePredictor {
            source: InterferenceSource::Law,
            interference: Arc::new(AnalyticInterference::<MaxMinSharing>::default()),
            solos: Arc::default(),
            learned_until: None,
            model: None,
        }
    }
}
