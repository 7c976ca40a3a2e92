//! The links between two devices, by where they are in the cluster.
//!
//! Bandwidths are those of the mapper's convention (`../mapping/traffic.rs`); within a node, the path that
//! the driver reports may be slower. Latencies are added here.

use cohabit_types::{GpuPeer, PeerPath};

use crate::mapping::transfer_seconds;
use crate::{DeviceView, LinkDefaults, NodeView};

/// A link from one device to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DeviceLink {
    /// Bandwidth each way, in bytes per second.
    pub(super) bandwidth: f64,
    /// Latency, in seconds.
    pub(super) latency: f64,
}

/// Latencies to a device of the same node and of another node, in seconds.
const INTRA_NODE_LATENCY: f64 = 10e-6;
const INTER_NODE_LATENCY: f64 = 50e-6;

/// Bandwidths over PCIe, in bytes per second: on one switch, on one socket, between sockets.
const PCIE_SWITCH_BANDWIDTH: f64 = 11e9;
const SOCKET_BANDWIDTH: f64 = 9e9;
const CROSS_SOCKET_BANDWIDTH: f64 = 6e9;

impl DeviceLink {
    /// The time to send these bytes, in seconds; none if there are none.
    pub(super) fn seconds(self, bytes: f64) -> f64 {
        let latency = if bytes > 0.0 { self.latency } else { 0.0 };
        transfer_seconds(bytes, self.bandwidth) + latency
    }

    /// Between devices of one node: by the path that the driver reports, or by the node's interconnect.
    pub(super) fn inside(
        node: &NodeView,
        one: &DeviceView,
        other: &DeviceView,
        defaults: LinkDefaults,
    ) -> DeviceLink {
        let usual = defaults.rates(node).interconnect;
        let bandwidth = match one.peers.iter().find(|peer| peer.device == other.id) {
            None | Some(GpuPeer { path: PeerPath::NvLink(_), .. }) => usual,
            Some(GpuPeer { path: PeerPath::Board | PeerPath::Switch, .. }) => PCIE_SWITCH_BANDWIDTH,
            Some(GpuPeer {
                path: PeerPath::Switches | PeerPath::HostBridge | PeerPath::NumaNode, ..
            }) => SOCKET_BANDWIDTH,
            Some(GpuPeer { path: PeerPath::System, .. }) => CROSS_SOCKET_BANDWIDTH,
        };
        DeviceLink { bandwidth, latency: INTRA_NODE_LATENCY }
    }

    /// Between devices of two nodes: over the smaller of their two shares of the network cards.
    pub(super) fn outside(one: &NodeView, other: &NodeView, defaults: LinkDefaults) -> DeviceLink {
        let of = |node: &NodeView| defaults.rates(node).outside();
        DeviceLink { bandwidth: of(one).min(of(other)), latency: INTER_NODE_LATENCY }
    }
}
