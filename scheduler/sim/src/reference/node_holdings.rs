//! Compares what nodes are recorded to hold with what their running jobs need.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_scheduler_core::Head;
use cohabit_types::{DeviceId, JobId, NodeId, NodeRecord, Share};

use super::ReferenceModel;

/// What jobs hold on a node.
#[derive(Debug, Default)]
struct Holdings {
    jobs: BTreeSet<JobId>,
    devices: BTreeMap<DeviceId, BTreeMap<JobId, Share>>,
}

impl ReferenceModel {
    /// Checks that every node holds exactly what its jobs need.
    pub(super) fn check_node_holdings(&self, head: &Head) -> Result<(), String> {
        let mut holdings = self.holdings();
        let wrong = |node: &NodeRecord| {
            let held = holdings.remove(&node.id).unwrap_or_default();
            self.find_difference(node, &held)
        };
        head.node_records().iter().find_map(wrong).map_or(Ok(()), Err)
    }

    fn holdings(&self) -> BTreeMap<NodeId, Holdings> {
        let mut holdings: BTreeMap<NodeId, Holdings> = BTreeMap::new();
        for id in &self.live {
            let Some(attempt) = self.jobs[id].observed.live() else { continue };
            for (number, rank) in (0..).zip(&attempt.ranks) {
                let Some(node) = self.ordered.get(&id.attempt(attempt.number).rank(number)) else { continue };
                let here = holdings.entry(*node).or_default();
                here.jobs.insert(*id);
                for device in &rank.devices {
                    here.devices.entry(device.clone()).or_default().insert(*id, rank.share);
                }
            }
        }
        holdings
    }

    fn find_difference(&self, node: &NodeRecord, held: &Holdings) -> Option<String> {
        let cpus: u32 = held.jobs.iter().map(|job| self.specs[&job.number].demand.cpus).sum();
        if !node.jobs.iter().eq(&held.jobs) || node.cpus_used != cpus {
            let (recorded, cores) = (&node.jobs, node.cpus_used);
            let jobs = &held.jobs;
            return Some(format!(
                "{} holds {cpus} cores for {jobs:?}, recorded are {cores} for {recorded:?}",
                node.name
            ));
        }
        node.devices.iter().find_map(|device| {
            let none = BTreeMap::new();
            let holders = held.devices.get(&device.device.id).unwrap_or(&none);
            let share: Share = holders.values().copied().sum();
            let same = device.jobs.iter().eq(holders.keys()) && device.used == share;
            let (id, used, recorded) = (&device.device.id, device.used, &device.jobs);
            (!same).then(|| {
                format!("{share} of device {id} is held by {holders:?}, recorded are {used} by {recorded:?}")
            })
        })
    }
}
