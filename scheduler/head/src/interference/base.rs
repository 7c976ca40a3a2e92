//! What a head starts with, read from where it lies.

use std::sync::Arc;

use cohabit_policy::interference::{AnalyticInterference, Interference, MaxMinSharing, SoloMetricsTable};

use super::InterferenceSource;
#[cfg(feature = "learned")]
pub(super) use super::learned as source;
#[cfg(not(feature = "learned"))]
pub(super) use super::unlearned as source;
use crate::HeadError;

/// A predictor to begin with, and what was measured of jobs alone.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    /// Where it comes from.
    pub(crate) basis: InterferenceSource,
    /// What it says.
    pub(crate) interference: Arc<dyn Interference>,
    /// What was measured of jobs alone.
    pub(crate) solos: Arc<SoloMetricsTable>,
    /// The same as a model that can learn more, if it is one.
    pub(super) model: Option<Arc<source::AnyModel>>,
}

impl Base {
    /// Reads what is to be gone by.
    ///
    /// # Errors
    /// Where that cannot be read, or makes no sense; or this program was built without models.
    pub(crate) fn read(basis: &InterferenceSource) -> Result<Base, HeadError> {
        match basis {
            InterferenceSource::Law => Ok(Base::law()),
            InterferenceSource::Pretrained | InterferenceSource::Table(_) | InterferenceSource::Model(_) => {
                source::read(basis)
            }
        }
    }

    /// The law, which is always there.
    pub(crate) fn law() -> Base {
        Base {
            basis: InterferenceSource::Law,
            interference: Arc::new(AnalyticInterference::<MaxMinSharing>::default()),
            solos: Arc::default(),
            model: None,
        }
    }
}
