//! When devices come free for a job that had better wait for one of its own than join others.
//!
//! For one plan: jobs that wait longer already come first, and each class of them counts with all its jobs,
//! so that where many wait nobody is told to wait for what others will take. No plan may rest on more.

use std::collections::BTreeMap;

use cohabit_types::{DeviceId, NodeId, Time};

use crate::View;
use crate::queue::expected_ends::ExpectedEnds;

/// Devices that come free are looked for up to this many.
const MAX_RELEASES: usize = 64;

/// Devices that come free, and those who want them.
#[derive(Debug, Default)]
pub(super) struct ExpectedReleases {
    /// When the next ones come free, in order; found when first asked for.
    at: Option<Vec<Time>>,
    /// How many are wanted by those whose turn came before.
    claimed: u64,
}

impl ExpectedReleases {
    /// So many devices are wanted by jobs that go on waiting.
    pub(super) const fn claim(&mut self, devices: u64) {
        self.claimed = self.claimed.saturating_add(devices);
    }

    /// When a device comes free that nobody wants yet, as far as is known.
    pub(super) fn next(&mut self, view: &View, ends: &mut ExpectedEnds) -> Option<Time> {
        let position = usize::try_from(self.claimed).ok()?;
        let at = self.at.get_or_insert_with(|| vacancies(view, ends));
        at.get(position).copied()
    }
}

/// When each of the next devices has lost the last of its jobs.
fn vacancies(view: &View, ends: &mut ExpectedEnds) -> Vec<Time> {
    let mut left: BTreeMap<(NodeId, &DeviceId), usize> = BTreeMap::new();
    for node in &view.nodes {
        for device in node.devices.iter().filter(|device| device.is_in_service()) {
            left.insert((node.id, &device.id), device.residents.len());
        }
    }
    let mut vacancies = Vec::new();
    for (at, job) in ends.after(view.now) {
        let Some(running) = view.running.get(&job) else { continue };
        for part in &running.placement.parts {
            for device in &part.devices {
                let Some(residents) = left.get_mut(&(part.node, device)) else { continue };
                *residents = residents.saturating_sub(1);
                if *residents == 0 {
                    vacancies.push(at);
                }
            }
        }
        if vacancies.len() >= MAX_RELEASES {
            break;
        }
    }
    vacancies
}
