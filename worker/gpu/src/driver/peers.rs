//! How the GPUs of a host are connected: over NVLink, else over the PCI bus.

use std::collections::BTreeMap;

use cohabit_types::{DeviceId, GpuPeer, PeerPath};
use nvml_wrapper::Device as Handle;
use nvml_wrapper::enum_wrappers::device::TopologyLevel;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::PciInfo;

use super::error::if_reported;

/// The most NVLinks that a GPU can have.
const MAX_LINKS: u32 = 36;

/// An address on the PCI bus. The driver writes the same address in several forms, so texts cannot be
/// compared.
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

/// A GPU before its peers are known.
pub(super) struct DiscoveredGpu<'nvml> {
    pub(super) id: DeviceId,
    pub(super) handle: Handle<'nvml>,
    pub(super) wiring: Wiring,
}

/// The address of a GPU, and where its active NVLinks lead.
pub(super) struct Wiring {
    place: PciLocation,
    /// The number of links to each address.
    ends: BTreeMap<PciLocation, u32>,
}

impl Wiring {
    /// Reads the wiring of the GPU at this address.
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

    /// The links to the other GPU: direct ones, and those through switches, which are addresses that links of
    /// both lead to and that are no GPU.
    fn links_to(&self, other: &Wiring, gpus: &[PciLocation]) -> u32 {
        let direct = self.ends.get(&other.place).copied().unwrap_or(0);
        let switches = self.ends.iter().filter(|(end, _)| !gpus.contains(end));
        let switched: u32 =
            switches.filter_map(|(end, links)| Some((*links).min(*other.ends.get(end)?))).sum();
        direct + switched
    }
}

/// How this GPU reaches the others. Those for which the driver does not say are left out.
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
    // The wrapper takes the handle by value.
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
    fn gpus_are_linked_directly_or_through_switches_that_both_reach() {
        let gpus = [place(1), place(2), place(3)];
        let first = wiring(1, &[(2, 4), (100, 5), (101, 4)]);
        assert_eq!(first.links_to(&wiring(2, &[(1, 4)]), &gpus), 4);
        assert_eq!(first.links_to(&wiring(3, &[(100, 4), (101, 4), (102, 9)]), &gpus), 8);
    }

    #[test]
    fn two_gpus_linked_to_a_third_are_not_linked_to_each_other() {
        let gpus = [place(1), place(2), place(3)];
        assert_eq!(wiring(1, &[(3, 2)]).links_to(&wiring(2, &[(3, 2)]), &gpus), 0);
    }

    #[test]
    fn paths_are_ordered_from_fastest_to_slowest() {
        let paths =
            [PeerPath::NvLink(4), PeerPath::Board, PeerPath::Switch, PeerPath::HostBridge, PeerPath::System];
        assert!(paths.is_sorted());
    }
}
