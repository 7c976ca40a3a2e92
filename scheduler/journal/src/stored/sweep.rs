//! What makes an array a sweep.

use cohabit_types as types;
use serde::{Deserialize, Serialize};
use serde_with::As;

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Sweep")]
pub(crate) struct StoredSweep {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metric: Option<String>,
    #[serde(with = "As::<StoredSweepGoal>")]
    goal: types::SweepGoal,
    #[serde(with = "As::<Option<StoredEarlyStopping>>", default, skip_serializing_if = "Option::is_none")]
    early_stopping: Option<types::EarlyStopping>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::SweepGoal", rename_all = "lowercase")]
pub(crate) enum StoredSweepGoal {
    Min,
    Max,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::EarlyStopping", rename_all = "lowercase")]
pub(crate) enum StoredEarlyStopping {
    Median(#[serde(with = "As::<StoredMedianRule>")] types::MedianRule),
    Asha(#[serde(with = "As::<StoredAshaRule>")] types::AshaRule),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::MedianRule")]
pub(crate) struct StoredMedianRule {
    grace: u64,
    completed: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::AshaRule")]
pub(crate) struct StoredAshaRule {
    grace: u64,
    reduction: u32,
    rungs: u32,
}

shape_of! {
    StoredSweep => types::Sweep,
    StoredSweepGoal => types::SweepGoal,
    StoredEarlyStopping => types::EarlyStopping,
    StoredMedianRule => types::MedianRule,
    StoredAshaRule => types::AshaRule,
}
