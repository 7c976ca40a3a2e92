//! Compares what nodes are recorded to hold with what their running jobs need, and with what the machines let
//! them use.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_scheduler_core::Head;
use cohabit_types::{AttemptId, DeviceId, HostShare, JobId, NodeId, NodeRecord, Share};

use super::ReferenceModel;
use crate::node::SimNode;

/// What jobs hold on a node.
#[derive(Debug, Default)]
struct Holdings {
    jobs: BTreeSet<JobId>,
    /// Cores and host memory of all of them.
    host: HostShare,
    /// The same for each attempt.
    attempts: BTreeMap<AttemptId, HostShare>,
    devices: BTreeMap<DeviceId, BTreeMap<JobId, Share>>,
}

impl ReferenceModel {
    /// Checks that every node holds exactly what its jobs need and no more than it has, and that no machine
    /// lets an attempt use more than is recorded.
    pub(super) fn check_node_holdings(&self, head: &Head, nodes: &[SimNode]) -> Result<(), String> {
        let mut holdings = self.holdings();
        let wrong = |node: &NodeRecord| {
            let held = holdings.remove(&node.id).unwrap_or_default();
            find_difference(node, &held).or_else(|| find_excess(node, &held, nodes))
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
                if here.jobs.insert(*id) {
                    let number = id.attempt(attempt.number);
                    let share = self.recorded_share(number, *node, &attempt.host);
                    here.host = here.host.plus(share);
                    here.attempts.insert(number, share);
                }
                for device in &rank.devices {
                    here.devices.entry(device.clone()).or_default().insert(*id, rank.share);
                }
            }
        }
        holdings
    }

    /// What an attempt is recorded to hold on a node: what it claims, where that is fixed.
    fn recorded_share(&self, attempt: AttemptId, node: NodeId, recorded: &[HostShare]) -> HostShare {
        let number = self.node_ranks.get(&(attempt, node)).copied().unwrap_or_default();
        let claimed = self.specs[&attempt.job.number].demand.least_host();
        recorded.get(number as usize).copied().unwrap_or(claimed)
    }
}

fn find_difference(node: &NodeRecord, held: &Holdings) -> Option<String> {
    let recorded = HostShare { cpus: node.cpus_used, memory: node.memory_used };
    if !node.jobs.iter().eq(&held.jobs) || recorded != held.host {
        let (name, jobs, recorded_jobs) = (&node.name, &held.jobs, &node.jobs);
        let host = held.host;
        return Some(format!(
            "{name} holds {host} for {jobs:?}, recorded are {recorded} for {recorded_jobs:?}"
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

/// What is recorded beyond what the node has, or what its machine lets an attempt use beyond that record.
fn find_excess(node: &NodeRecord, held: &Holdings, nodes: &[SimNode]) -> Option<String> {
    let has = HostShare { cpus: node.cpus, memory: node.memory };
    if !held.host.is_within(has) {
        return Some(format!("{} has {has}, and {} is recorded to be held", node.name, held.host));
    }
    let machine = &nodes.iter().find(|it| it.id == node.id)?.machine;
    held.attempts.iter().find_map(|(attempt, recorded)| {
        let usable = machine.host_share(*attempt).filter(|usable| !usable.is_within(*recorded))?;
        Some(format!("attempt {attempt} may use {usable} of {}, recorded is {recorded}", node.name))
    })
}
