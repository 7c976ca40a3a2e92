//! Devices that have residents, grouped by what these are: there are many devices, and few ways to fill one.
//!
//! Most questions of one plan are about the same devices, so the groups of the last question are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{DeviceId, JobId, Slowdown};

use crate::SharingMode;
use crate::interference::{GpuKind, InternedMember, InternedSet};
use crate::sharing::multi_stage::build_set;
use crate::sharing::{FreeDevice, Jobs};

/// Devices of one kind whose residents are the same to a predictor, under the same limits.
#[derive(Debug)]
pub(super) struct ResidentGroup {
    /// The residents.
    pub(super) residents: InternedSet,
    /// The slowdown that each of them allows, where it states one.
    pub(super) allowed: Vec<Option<Slowdown>>,
    /// The index of each device in the list of free devices, and its residents in the order of the set.
    pub(super) devices: Vec<(usize, Vec<JobId>)>,
}

/// The groups of the devices of the last question.
#[derive(Debug, Default)]
pub(super) struct ResidentGroups {
    of: Vec<GroupedDevice>,
    groups: Vec<ResidentGroup>,
}

/// What the group of a device depends on.
#[derive(Debug)]
struct GroupedDevice {
    index: usize,
    id: DeviceId,
    sharing: SharingMode,
    jobs: Vec<JobId>,
}

impl ResidentGroups {
    /// The groups of these devices, given by their indices.
    pub(super) fn of(
        &mut self,
        devices: &[FreeDevice<'_>],
        taken: &[usize],
        jobs: &mut Jobs,
    ) -> &[ResidentGroup] {
        let is_same = |known: &GroupedDevice, index: &usize| {
            let device = devices[*index].view;
            known.index == *index
                && known.jobs == device.jobs
                && known.sharing == device.sharing.mode
                && known.id == device.id
        };
        let are_same = self.of.len() == taken.len()
            && self.of.iter().zip(taken).all(|(known, index)| is_same(known, index));
        if !are_same {
            self.of = taken.iter().map(|index| GroupedDevice::new(*index, &devices[*index])).collect();
            self.groups = group(devices, taken, jobs);
        }
        &self.groups
    }
}

impl GroupedDevice {
    fn new(index: usize, device: &FreeDevice<'_>) -> GroupedDevice {
        let view = device.view;
        GroupedDevice { index, id: view.id.clone(), sharing: view.sharing.mode, jobs: view.jobs.clone() }
    }
}

fn group(devices: &[FreeDevice<'_>], taken: &[usize], jobs: &mut Jobs) -> Vec<ResidentGroup> {
    type Key = (GpuKind, SharingMode, Vec<(Arc<InternedMember>, Option<Slowdown>)>);
    let mut groups: BTreeMap<Key, Vec<(usize, Vec<JobId>)>> = BTreeMap::new();
    for index in taken {
        let present = jobs.on(devices[*index].view);
        let InternedSet { gpu, sharing, members } = build_set(&devices[*index], &present, jobs);
        let resident = |(member, job)| ((member, jobs.max_slowdown(job)), job);
        let mut residents: Vec<_> = members.into_iter().zip(present).map(resident).collect();
        residents.sort();
        let (key, present) = residents.into_iter().unzip();
        groups.entry((gpu, sharing, key)).or_default().push((*index, present));
    }
    let open = |((gpu, sharing, residents), devices): (Key, Vec<(usize, Vec<JobId>)>)| {
        let (members, allowed) = residents.into_iter().unzip();
        ResidentGroup { residents: InternedSet { gpu, sharing, members }, allowed, devices }
    };
    groups.into_iter().map(open).collect()
}
