//! The total and the free capacity of the devices in service, kept by the changes, so that no plan has to
//! look at all nodes.

use std::collections::BTreeMap;

use cohabit_types::{NodeId, Share};

use crate::{NodeView, ViewChange};

/// The devices in service on all nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Capacity {
    nodes: BTreeMap<NodeId, Devices>,
    all: Devices,
}

/// Devices in service and the free part of them, in thousandths of a device.
#[derive(Debug, Clone, Copy, Default)]
struct Devices {
    whole: u64,
    free: u64,
}

impl Capacity {
    /// Updates the capacity by these changes.
    pub(crate) fn learn(&mut self, changes: &[ViewChange]) {
        for change in changes {
            match change {
                ViewChange::Node(node) => {
                    let now = Devices::of(node);
                    let before = self.nodes.insert(node.id, now);
                    self.replace(before.unwrap_or_default(), now);
                }
                ViewChange::NodeGone(node) => {
                    let before = self.nodes.remove(node);
                    self.replace(before.unwrap_or_default(), Devices::default());
                }
                ViewChange::Pending(_)
                | ViewChange::Running(_)
                | ViewChange::Gone(_)
                | ViewChange::Shares(_) => {}
            }
        }
    }

    /// All devices together, in thousandths of a device.
    pub(crate) const fn whole(&self) -> u64 {
        self.all.whole
    }

    /// The free part of them, in thousandths of a device.
    pub(crate) const fn free(&self) -> u64 {
        self.all.free
    }

    const fn replace(&mut self, before: Devices, now: Devices) {
        self.all.whole = self.all.whole + now.whole - before.whole;
        self.all.free = self.all.free + now.free - before.free;
    }
}

impl Devices {
    fn of(node: &NodeView) -> Devices {
        let in_service = node.devices.iter().filter(|device| device.is_in_service());
        in_service.fold(Devices::default(), |sum, device| Devices {
            whole: sum.whole + u64::from(Share::WHOLE.0),
            free: sum.free + u64::from(device.free.0),
        })
    }
}
