//! Progress in JSON that version 1 reads, too: its metrics are finite numbers, and a field that version 1
//! ignores has the others.

use std::collections::BTreeMap;

use cohabit_types::{MetricValue, Progress};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct ProgressPart {
    #[serde(flatten)]
    progress: Progress,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    non_finite: BTreeMap<String, MetricValue>,
}

impl From<Progress> for ProgressPart {
    fn from(mut progress: Progress) -> ProgressPart {
        let all = std::mem::take(&mut progress.metrics).into_iter();
        let (finite, non_finite) = all.partition(|(_, value)| value.is_finite());
        progress.metrics = finite;
        ProgressPart { progress, non_finite }
    }
}

impl From<ProgressPart> for Progress {
    fn from(mut part: ProgressPart) -> Progress {
        part.progress.metrics.extend(part.non_finite);
        part.progress
    }
}
