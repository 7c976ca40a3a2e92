//! What a node has too little of for a demand: the first resource that is short, devices before cores before
//! memory.

use cohabit_types::{Demand, EnforcementRequirement, GpuRequest, Share, Sharing};

use crate::{DeviceAvailability, DeviceView, ExclusiveReason, NodeView, NodeWindow, SharingMode, Shortage};

impl NodeView {
    /// What this node has too little of for the demand; `None` where the demand fits.
    #[must_use]
    pub fn shortage(&self, demand: &Demand) -> Option<Shortage> {
        if !self.takes_account(demand) {
            return Some(Shortage::Account);
        }
        if let Some(NodeWindow { starts_in, .. }) = self.closing_window(demand) {
            return Some(Shortage::Reserved { node: self.name.clone(), starts_in });
        }
        if demand.has_code && !self.fetches_code {
            return Some(Shortage::CodeSnapshots);
        }
        if !self.serves(demand) {
            return Some(Shortage::Application);
        }
        if self.roomy(demand).count() < demand.devices() as usize {
            return Some(self.device_shortage(demand));
        }
        if self.cpus_free < demand.cpus {
            return Some(Shortage::Cpus { needed: demand.cpus, free: self.cpus_free });
        }
        if self.memory_free < demand.memory {
            return Some(Shortage::HostMemory { needed: demand.memory, free: self.memory_free });
        }
        (!self.has_place()).then_some(Shortage::Jobs { most: self.jobs })
    }

    /// Why too few of its devices fit the demand.
    fn device_shortage(&self, demand: &Demand) -> Shortage {
        let wanted = demand.devices() as usize;
        let usable: Vec<&DeviceView> = self.devices.iter().filter(|device| device.takes(demand)).collect();
        if usable.len() < wanted {
            let lenient = Demand { limits: EnforcementRequirement::BestEffort, ..*demand };
            let others = self.devices.iter().filter(|device| device.takes(&lenient)).count();
            return match others < wanted {
                true => self.too_few_devices(demand, &usable),
                false => Shortage::Enforcement,
            };
        }
        let roomy: Vec<&DeviceView> = usable.iter().copied().filter(|it| it.has_share(demand)).collect();
        if roomy.len() < wanted {
            return self.too_few_devices(demand, &usable);
        }
        let open: Vec<&DeviceView> = roomy.iter().copied().filter(|it| it.has_place()).collect();
        if open.len() < wanted {
            let ranks = roomy.iter().map(|device| device.jobs.len() as u32).max().unwrap_or_default();
            return Shortage::RankSlots { ranks };
        }
        let serving: Vec<&DeviceView> = open.iter().copied().filter(|it| it.serves(demand)).collect();
        match serving.len() < wanted {
            true => Shortage::OtherUser,
            false => memory_shortage(demand, &serving),
        }
    }

    fn too_few_devices(&self, demand: &Demand, usable: &[&DeviceView]) -> Shortage {
        let alone = self.devices.first().and_then(|device| exclusive_reason(demand, device));
        Shortage::Devices {
            needed: if alone.is_some() { GpuRequest::Whole(1) } else { demand.gpus },
            alone,
            whole: usable.iter().filter(|device| device.free == Share::WHOLE).count() as u32,
            share: usable.iter().map(|device| device.free).max().unwrap_or_default(),
            out: self.devices.iter().filter(|device| device.availability != DeviceAvailability::Open).count()
                as u32,
        }
    }
}

/// Why a demand for part of a device takes a whole device like this one.
fn exclusive_reason(demand: &Demand, device: &DeviceView) -> Option<ExclusiveReason> {
    let GpuRequest::Part(_) = demand.gpus else { return None };
    (device.share_for(demand) == Share::WHOLE).then_some(match (demand.sharing, device.sharing.mode) {
        (Sharing::Exclusive, _) => ExclusiveReason::Exclusive,
        (Sharing::Shared, SharingMode::Exclusive) => ExclusiveReason::Device,
        (Sharing::Shared, _) if demand.nodes > 1 => ExclusiveReason::Gang,
        (Sharing::Shared, _) => ExclusiveReason::WithoutFigure,
    })
}

/// These devices have everything that is needed except memory.
fn memory_shortage(demand: &Demand, devices: &[&DeviceView]) -> Shortage {
    match demand.gpu_memory {
        Some(needed) => Shortage::Memory {
            needed,
            reserve: devices.iter().map(|device| device.reserve_for(demand)).max().unwrap_or_default(),
            free: devices.iter().filter_map(|device| device.memory_free).max().unwrap_or_default(),
        },
        None => Shortage::ForeignMemory {
            hold: devices.iter().map(|device| device.foreign_memory).min().unwrap_or_default(),
        },
    }
}
