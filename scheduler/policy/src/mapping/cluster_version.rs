//! Tells whether the cluster is still the one it was, so that what was worked out for it holds.
//!
//! It looks at what servers are made of, never at what is free on them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Server;
use super::server::{DeviceClass, alike, same_model};

/// The cluster as it was seen last.
#[derive(Debug, Clone)]
pub(super) struct ClusterVersion {
    /// Neighbours in the list that are alike: one of them, and how many.
    runs: Vec<(Server, usize)>,
    /// The models of their devices, in the order in which they come up.
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

    /// The kinds of all devices.
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
