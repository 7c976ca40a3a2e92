//! Detects changes of the cluster, so that cached results are dropped when they no longer hold.
//!
//! Only what servers consist of counts, never what is free on them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Server;
use super::server::{DeviceClass, alike, same_model};

/// The cluster as it was last seen.
#[derive(Debug, Clone)]
pub(super) struct ClusterVersion {
    /// Runs of equal servers in the list: one server and the length of the run.
    runs: Vec<(Server, usize)>,
    /// The models of their devices, in the order of appearance.
    models: Vec<Arc<str>>,
    /// Grows with each change.
    version: u64,
}

impl ClusterVersion {
    pub(super) const fn new() -> ClusterVersion {
        ClusterVersion { runs: Vec::new(), models: Vec::new(), version: 0 }
    }

    /// A number that changes whenever the servers do.
    pub(super) fn version(&mut self, servers: &[Server]) -> u64 {
        let mut seen = servers.chunk_by(alike);
        let same = self.runs.iter().all(|(server, count)| {
            seen.next().is_some_and(|run| run.len() == *count && alike(&run[0], server))
        });
        if !same || seen.next().is_some() {
            self.runs = servers.chunk_by(alike).map(|run| (run[0].clone(), run.len())).collect();
            self.models = models(servers);
            self.version += 1;
        }
        self.version
    }

    pub(super) fn models(&self) -> &[Arc<str>] {
        &self.models
    }

    /// The classes of all devices.
    pub(super) fn kinds(&self) -> BTreeSet<DeviceClass> {
        let with_devices = self.runs.iter().filter(|(server, _)| server.devices > 0);
        with_devices.map(|(server, _)| DeviceClass::of(server)).collect()
    }
}

fn models(servers: &[Server]) -> Vec<Arc<str>> {
    let mut models: Vec<Arc<str>> = Vec::new();
    for server in servers {
        if !models.iter().any(|known| same_model(known, &server.model)) {
            models.push(server.model.clone());
        }
    }
    models
}
