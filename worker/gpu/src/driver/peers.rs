//! How the GPUs of a machine reach each other: over NVLink, else over the PCI bus.

use std::collections::BTreeMap;

use cohabit_types::{DeviceId, GpuPeer, PeerPath};
use nvml_wrapper::Device as Handle;
use nvml_wrapper::enum_wrappers::device::TopologyLevel;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::PciInfo;

use super::trouble::if_reported;

/// No GPU has more.
const MAX_LINKS: u32 = 36;

/// Where something is on the PCI bus. The driver writes the same place in several ways, so texts do not
/// compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PciLocation {
    domain: u32,
    bus: u32,
    device: u32,
}

impl From<&PciInfo> for PciLocation {
    fn from(pci: &PciInfo) -> PciLocation {
        PciLocation { domain: pci.domain, bus: pci.bus, device: pci.device }
    }
}

/// What is known of a GPU before its peers are.
pub(super) struct DiscoveredGpu<'nvml> {
    pub(super) id: DeviceId,
    pub(super) handle: Handle<'nvml>,
    pub(super) wiring: Wiring,
}

/// Where a GPU is, and where its active NVLinks end.
pub(super) struct Wiring {
    place: PciLocation,
    /// With the number of links that end there.
    ends: BTreeMap<PciLocation, u32>,
}

impl Wiring {
    /// The wiring of the GPU at this place of the bus.
    pub(super) fn of(gpu: &Handle<'_>, pci: &PciInfo) -> Result<Wiring, NvmlError> {
        let mut ends = BTreeMap::new();
        for number in 0..MAX_LINKS {
            let link = gpu.link_wrapper_for(number);
            if if_reported(link.is_active())? == Some(true)
                && let Some(end) = if_reported(link.remote_pci_info())?
            {
                *ends.entry(PciLocation::from(&end)).or_default() += 1;
            }
        }
        Ok(Wiring { place: pci.into(), ends })
    }

    /// Links straight to the other, and those by which both meet at a switch: a place where links of both
    /// end, and which is none of the GPUs.
    fn links_to(&self, other: &Wiring, gpus: &[PciLocation]) -> u32 {
        let straight = self.ends.get(&other.place).copied().unwrap_or(0);
        let switches = self.ends.iter().filter(|(end, _)| !gpus.contains(end));
        let switched: u32 =
            switches.filter_map(|(end, links)| Some((*links).min(*other.ends.get(end)?))).sum();
        straight + switched
    }
}

/// How the others are reached from this GPU; of those that are not here, the driver did not say.
pub(super) fn peers(of: &DiscoveredGpu<'_>, all: &[DiscoveredGpu<'_>]) -> Vec<GpuPeer> {
    let gpus: Vec<PciLocation> = all.iter().map(|gpu| gpu.wiring.place).collect();
    let others = all.iter().filter(|other| other.id != of.id);
    others
        .filter_map(|other| {
            let path = match of.wiring.links_to(&other.wiring, &gpus) {
                0 => over_the_bus(of, other)?,
                links => PeerPath::NvLink(links),
            };
            Some(GpuPeer { device: other.id.clone(), path })
        })
        .collect()
}

fn over_the_bus(from: &DiscoveredGpu<'_>, to: &DiscoveredGpu<'_>) -> Option<PeerPath> {
    // The library wants a handle that it may keep.
    let other = to.handle.nvml().device_by_uuid(to.id.as_str()).ok()?;
    Some(match from.handle.topology_common_ancestor(other).ok()? {
        TopologyLevel::Internal => PeerPath::Board,
        TopologyLevel::Single => PeerPath::Switch,
        TopologyLevel::Multiple => PeerPath::Switches,
        TopologyLevel::HostBridge => PeerPath::HostBridge,
        TopologyLevel::Node => PeerPath::NumaNode,
        TopologyLevel::System => PeerPath::System,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(bus: u32) -> PciLocation {
        PciLocation { domain: 0, bus, device: 0 }
    }

    fn wiring(bus: u32, ends: &[(u32, u32)]) -> Wiring {
        Wiring { place: place(bus), ends: ends.iter().map(|(end, links)| (place(*end), *links)).collect() }
    }

    #[test]
    fn gpus_are_linked_straight_or_through_the_switches_that_both_reach() {
        let gpus = [place(1), place(2), place(3)];
        let first = wiring(1, &[(2, 4), (100, 5), (101, 4)]);
        assert_eq!(first.links_to(&wiring(2, &[(1, 4)]), &gpus), 4);
        assert_eq!(first.links_to(&wiring(3, &[(100, 4), (101, 4), (102, 9)]), &gpus), 8);
    }

    #[test]
    fn two_gpus_that_are_linked_to_a_third_are_not_linked() {
        let gpus = [place(1), place(2), place(3)];
        assert_eq!(wiring(1, &[(3, 2)]).links_to(&wiring(2, &[(3, 2)]), &gpus), 0);
    }

    #[test]
    fn ways_are_ordered_from_the_shortest_to_the_longest() {
        let ways =
            [PeerPath::NvLink(4), PeerPath::Board, PeerPath::Switch, PeerPath::HostBridge, PeerPath::System];
        assert!(ways.is_sorted());
    }
}
