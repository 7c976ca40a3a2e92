//! Replaces `models.rs` in a program that was built without the feature `learned`: it has no trained models.

use std::path::Path;
use std::sync::Arc;

use cohabit_policy::interference::{Interference, MeasuredSet};
use cohabit_types::ModelRecord;

use super::base_predictor::BasePredictor;
use super::candidate::CandidateModel;
use crate::HeadError;
use crate::interference_source::InterferenceSource;

/// Reads the predictor that the operator chose.
///
/// # Errors
/// If that is anything but the analytic one.
pub(crate) fn read_base_predictor(source: &InterferenceSource) -> Result<BasePredictor, HeadError> {
    match source {
        InterferenceSource::Law => Ok(BasePredictor::analytic()),
        InterferenceSource::Pretrained | InterferenceSource::Table(_) | InterferenceSource::Model(_) => {
            Err(HeadError::NoModels { basis: source.clone() })
        }
    }
}

pub(super) fn restore(_: &Path, _: &ModelRecord, _: &BasePredictor) -> Result<Arc<dyn Interference>, String> {
    Err("this program was built without models".to_owned())
}

pub(super) fn train_candidates(base: &BasePredictor, sets: &[MeasuredSet]) -> Vec<Box<dyn CandidateModel>> {
    // No base predictor is a model here, so there is nothing to adapt.
    debug_assert!(base.model.is_none(), "{sets:?}");
    Vec::new()
}
