//! When devices become free, for a job that may rather wait for one of its own than share.
//!
//! It serves one plan. Jobs that wait longer are served first, and each class of them counts with all its
//! jobs, so that no job waits for a device that others will take. Plans must not depend on these times being
//! right.

use std::collections::BTreeMap;

use cohabit_types::{DeviceId, NodeId, Time};

use crate::View;
use crate::queue::expected_ends::ExpectedEnds;

/// The number of releases that are looked up.
const MAX_RELEASES: usize = 64;

/// Devices that become free, and how many of them are claimed.
#[derive(Debug, Default)]
pub(super) struct ExpectedReleases {
    /// When the next ones become free, in order; found at the first question.
    at: Option<Vec<Time>>,
    /// How many of them earlier jobs want.
    claimed: u64,
}

impl ExpectedReleases {
    /// Counts devices that waiting jobs want.
    pub(super) const fn claim(&mut self, devices: u64) {
        self.claimed = self.claimed.saturating_add(devices);
    }

    /// When the first device becomes free that no earlier job wants, where known.
    pub(super) fn next(&mut self, view: &View, ends: &mut ExpectedEnds) -> Option<Time> {
        let position = usize::try_from(self.claimed).ok()?;
        let at = self.at.get_or_insert_with(|| list_releases(view, ends));
        at.get(position).copied()
    }
}

/// When each of the next devices loses its last job.
fn list_releases(view: &View, ends: &mut ExpectedEnds) -> Vec<Time> {
    let mut left: BTreeMap<(NodeId, &DeviceId), usize> = BTreeMap::new();
    for node in &view.nodes {
        for device in node.devices.iter().filter(|device| device.is_in_service()) {
            left.insert((node.id, &device.id), device.jobs.len());
        }
    }
    let mut releases = Vec::new();
    for (at, job) in ends.after(view.now) {
        let Some(running) = view.running.get(&job) else { continue };
        for part in &running.placement.parts {
            for device in &part.devices {
                let Some(residents) = left.get_mut(&(part.node, device)) else { continue };
                *residents = residents.saturating_sub(1);
                if *residents == 0 {
                    releases.push(at);
                }
            }
        }
        if releases.len() >= MAX_RELEASES {
            break;
        }
    }
    releases
}
