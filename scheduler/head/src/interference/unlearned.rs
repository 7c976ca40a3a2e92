//! What stands in for models in a program that was built without them: the law, and what is lived through.

use std::path::Path;
use std::sync::Arc;

use cohabit_policy::interference::{Interference, MeasuredSet};
use cohabit_types::ModelRecord;

use super::{Base, InterferenceSource};
use crate::HeadError;

/// There is none.
#[derive(Debug)]
pub(crate) enum AnyModel {}

/// Nothing is ever tried.
#[derive(Debug)]
pub(crate) enum CandidateModel {}

pub(super) fn read(basis: &InterferenceSource) -> Result<Base, HeadError> {
    Err(HeadError::NoModels { basis: basis.clone() })
}

pub(super) fn restore(_: &Path, _: &ModelRecord, _: &Base) -> Result<Arc<dyn Interference>, String> {
    Err("this program was built without models".to_owned())
}

pub(super) fn train_candidates(base: &Base, _: &[MeasuredSet]) -> Vec<CandidateModel> {
    base.model.iter().map(|model| match **model {}).collect()
}

pub(super) fn error_of(_: &dyn Interference, _: &[MeasuredSet]) -> Option<f64> {
    None
}

impl CandidateModel {
    pub(super) fn kind(&self) -> String {
        match *self {}
    }

    pub(super) fn model(&self) -> &dyn Interference {
        match *self {}
    }

    pub(super) fn keep(self, _: &Path) -> Result<Arc<dyn Interference>, String> {
        match self {}
    }
}
