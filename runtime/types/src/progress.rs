//! Training progress, as the program reports it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AttemptId, MetricValue, Span, Time};

/// The progress of a training run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Steps to do, where the program says so.
    pub total: Option<u64>,
    /// Steps a second, smoothed by the executor; none until two steps were seen.
    pub rate: Option<f64>,
    /// Other metrics that the program reports, by name: `loss`, `accuracy`.
    pub metrics: BTreeMap<String, MetricValue>,
    /// When it was reported.
    pub at: Time,
}

impl Progress {
    /// The remaining time at the present rate.
    #[must_use]
    pub fn remaining(&self) -> Option<Span> {
        let left = self.total?.saturating_sub(self.step);
        let rate = self.rate.filter(|rate| *rate > 0.0)?;
        Some(Span::from_secs_f64(left as f64 / rate))
    }
}

/// The progress of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptProgress {
    /// The rank or attempt.
    pub attempt: AttemptId,
    /// Its progress.
    pub progress: Progress,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_follows_from_rate_and_total() {
        let progress = Progress { step: 25, total: Some(100), rate: Some(5.0), ..Progress::default() };
        assert_eq!(progress.remaining(), Some(Span::from_secs(15)));
        assert_eq!(Progress { rate: Some(0.0), ..progress.clone() }.remaining(), None);
        assert_eq!(Progress { step: 200, ..progress }.remaining(), Some(Span::ZERO));
    }
}
