//! How fast two devices reach each other, by how far they lie apart.

use cohabit_types::{Bandwidth, Peer, PeerPath};

use crate::{DeviceView, LinkDefaults, NodeView};

/// A way from one device to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link {
    /// What it carries, in bytes per second.
    pub(super) bandwidth: f64,
    /// Seconds before the first byte is there.
    pub(super) latency: f64,
}

/// Before the first byte is at another device of the same node, or at that of another one, in seconds.
const INSIDE: f64 = 10e-6;
const OUTSIDE: f64 = 50e-6;

/// Bytes per second of ways over PCIe: on one switch, on one socket, from one socket to the other.
const SWITCH: f64 = 11e9;
const SOCKET: f64 = 9e9;
const SOCKETS: f64 = 6e9;

impl Link {
    /// What these bytes take, in seconds.
    pub(super) fn seconds(self, bytes: f64) -> f64 {
        bytes / self.bandwidth + self.latency
    }

    /// Between devices of one node: by the way that their driver tells, or as the node says of all.
    pub(super) fn inside(
        node: &NodeView,
        one: &DeviceView,
        other: &DeviceView,
        defaults: LinkDefaults,
    ) -> Link {
        let usual = carries(node.links.interconnect, defaults.interconnect);
        let bandwidth = match one.peers.iter().find(|peer| peer.device == other.id) {
            None | Some(Peer { path: PeerPath::NvLink(_), .. }) => usual,
            Some(Peer { path: PeerPath::Board | PeerPath::Switch, .. }) => SWITCH,
            Some(Peer { path: PeerPath::Switches | PeerPath::HostBridge | PeerPath::NumaNode, .. }) => SOCKET,
            Some(Peer { path: PeerPath::System, .. }) => SOCKETS,
        };
        Link { bandwidth, latency: INSIDE }
    }

    /// Between devices of two nodes: the slower one's network.
    pub(super) fn outside(one: &NodeView, other: &NodeView, defaults: LinkDefaults) -> Link {
        let of = |node: &NodeView| carries(node.links.network, defaults.network);
        Link { bandwidth: of(one).min(of(other)), latency: OUTSIDE }
    }
}

fn carries(told: Option<Bandwidth>, default: Bandwidth) -> f64 {
    told.unwrap_or(default).bytes_per_second()
}
