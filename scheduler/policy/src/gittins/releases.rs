//! When devices lose their last job, for a job that may rather wait for one of its own than share.
//!
//! It serves one plan. Jobs that wait longer are served first, so that no job waits for a device that others
//! will take. Plans must not depend on these times being right.

use std::collections::BTreeMap;

use cohabit_types::{DeviceId, NodeId};

use super::state::OrderState;
use crate::View;

/// Devices that become free, and how many of them are wanted by earlier jobs.
#[derive(Debug, Default)]
pub(super) struct Releases {
    /// In how many seconds each device becomes free, in order; found at the first question.
    seconds: Option<Vec<f64>>,
    claimed: u64,
}

impl Releases {
    /// Counts devices that a waiting job wants.
    pub(super) const fn claim(&mut self, devices: u64) {
        self.claimed = self.claimed.saturating_add(devices);
    }

    /// In how many seconds the first device becomes free that no earlier job wants, where any does.
    pub(super) fn next(&mut self, view: &View, state: &OrderState) -> Option<f64> {
        let claimed = usize::try_from(self.claimed).ok()?;
        let seconds = self.seconds.get_or_insert_with(|| list(view, state));
        seconds.get(claimed).copied()
    }
}

/// When each device loses its last job.
fn list(view: &View, state: &OrderState) -> Vec<f64> {
    let mut last: BTreeMap<(NodeId, &DeviceId), f64> = BTreeMap::new();
    for job in view.running.values() {
        let rest = state.running.get(job.id).map_or(0.0, |entry| entry.rank.rest.typical / entry.speed);
        for part in &job.placement.parts {
            for device in &part.devices {
                let at = last.entry((part.node, device)).or_default();
                *at = at.max(rest);
            }
        }
    }
    let mut seconds: Vec<f64> = last.into_values().collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}
