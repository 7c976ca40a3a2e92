//! Slots in the order in which the mapper fills them, and what distinguishes them from others.
//!
//! The order follows from the costs of the slots, not from their servers, so that equal shapes are mapped
//! alike everywhere.

use std::cmp::Reverse;

use super::server::DeviceClass;
use super::{Server, Slot};

/// The slots of one job: the most devices first, then by class.
#[derive(Debug, Clone)]
pub(super) struct Shape(Vec<SlotClass>);

#[derive(Debug, Clone)]
struct SlotClass {
    slot: Slot,
    kind: DeviceClass,
}

/// Slots with equally many devices of one class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    slots: usize,
    devices: u32,
    kind: DeviceClass,
}

impl Shape {
    pub(super) fn of(servers: &[Server], slots: Vec<Slot>) -> Shape {
        let slot = |slot: Slot| SlotClass { kind: DeviceClass::of(&servers[slot.server]), slot };
        let mut classed: Vec<SlotClass> = slots.into_iter().filter(|slot| slot.count > 0).map(slot).collect();
        classed.sort_by(|one, other| one.rank().cmp(&other.rank()));
        Shape(classed)
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().map(|slot| slot.slot)
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &DeviceClass> {
        self.0.iter().map(|slot| &slot.kind)
    }

    /// Everything on which the mapping depends.
    pub(super) fn parts(&self) -> Vec<Part> {
        let alike =
            |one: &SlotClass, other: &SlotClass| one.slot.count == other.slot.count && one.kind == other.kind;
        let part = |classed: &[SlotClass]| Part {
            slots: classed.len(),
            devices: classed[0].slot.count,
            kind: classed[0].kind.clone(),
        };
        self.0.chunk_by(alike).map(part).collect()
    }
}

impl SlotClass {
    const fn rank(&self) -> (Reverse<u32>, &DeviceClass, usize) {
        (Reverse(self.slot.count), &self.kind, self.slot.server)
    }
}
