//! Devices that have residents, grouped by what these are: there are many devices, and few ways to fill one.
//!
//! Groups are numbered, so that what was found out of one is found again fast. What is known of a device is
//! kept until its residents change; most questions of one plan are about the same devices, so the groups of
//! the last question are kept too.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{DeviceId, JobId, NodeId, Slowdown};

use crate::interference::{GpuKind, InternedMember, InternedSet};
use crate::sharing::multi_stage::build_set;
use crate::sharing::{FreeDevice, Jobs};
use crate::{SharingMode, ViewChange};

/// Kinds of groups, and devices, that are remembered; then all are forgotten.
const MAX_REMEMBERED: usize = 131_072;

/// Devices of one kind whose residents are the same to a predictor, under the same limits.
#[derive(Debug)]
pub(super) struct ResidentGroup {
    /// Equal groups of all questions have one number.
    pub(super) number: usize,
    pub(super) kind: Arc<GroupKind>,
    /// Its devices, in the order of the list of free devices.
    pub(super) devices: Vec<GroupDevice>,
}

/// What the devices of a group have in common.
#[derive(Debug)]
pub(super) struct GroupKind {
    /// The residents.
    pub(super) residents: InternedSet,
    /// The slowdown that each of them allows, where it states one.
    pub(super) allowed: Vec<Option<Slowdown>>,
}

/// A device of a group.
#[derive(Debug, Clone)]
pub(super) struct GroupDevice {
    /// Its index in the list of free devices.
    pub(super) index: usize,
    pub(super) residents: Arc<DeviceResidents>,
}

/// The residents of a device, in the order of the set of its group.
#[derive(Debug)]
pub(super) struct DeviceResidents {
    pub(super) jobs: Vec<JobId>,
    /// How many seconds each still runs at its present speed; `None` for one that does not run yet.
    pub(super) left: Vec<Option<f64>>,
}

/// All devices that were asked about.
#[derive(Debug, Default)]
pub(super) struct ResidentGroups {
    numbers: BTreeMap<Arc<GroupKey>, usize>,
    kinds: Vec<(Arc<GroupKey>, Arc<GroupKind>)>,
    devices: BTreeMap<DevicePlace, KnownDevice>,
    devices_of: BTreeMap<JobId, Vec<DevicePlace>>,
    last: Question,
    /// How often jobs were learned of.
    learned: u64,
}

/// A device of a node. Devices of two nodes may have one id.
pub(super) type DevicePlace = (NodeId, DeviceId);

type GroupKey = (GpuKind, SharingMode, Vec<(Arc<InternedMember>, Option<Slowdown>)>);

/// A device, and what its group depends on.
#[derive(Debug)]
struct KnownDevice {
    sharing: SharingMode,
    jobs: Vec<JobId>,
    group: usize,
    residents: Arc<DeviceResidents>,
    /// When its residents were looked at.
    learned: u64,
}

/// The devices of the last question and their groups.
#[derive(Debug, Default)]
struct Question {
    devices: Vec<AskedDevice>,
    groups: Arc<[ResidentGroup]>,
}

#[derive(Debug)]
struct AskedDevice {
    index: usize,
    place: DevicePlace,
    sharing: SharingMode,
    jobs: Vec<JobId>,
}

impl AskedDevice {
    fn new(index: usize, device: &FreeDevice<'_>) -> AskedDevice {
        let view = device.view;
        AskedDevice { index, place: place_of(device), sharing: view.sharing.mode, jobs: view.jobs.clone() }
    }

    fn is(&self, index: usize, device: &FreeDevice<'_>) -> bool {
        let view = device.view;
        self.index == index
            && self.jobs == view.jobs
            && self.sharing == view.sharing.mode
            && self.place.0 == device.node.id
            && self.place.1 == view.id
    }
}

impl ResidentGroups {
    /// What was known of the jobs of these changes, and how long any job still runs, is outdated.
    pub(super) fn learn(&mut self, changes: &[ViewChange]) {
        self.learned += 1;
        self.last = Question::default();
        for change in changes {
            let job = match change {
                ViewChange::Pending(job) => job.id,
                ViewChange::Running(job) => job.id,
                ViewChange::Gone(job) => *job,
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => continue,
            };
            for device in self.devices_of.remove(&job).into_iter().flatten() {
                self.devices.remove(&device);
            }
        }
    }

    /// Forgets everything if too much is remembered; numbers then start anew. Says whether it did.
    pub(super) fn make_room(&mut self) -> bool {
        let is_full = self.kinds.len().max(self.devices_of.len()) > MAX_REMEMBERED;
        if is_full {
            *self = ResidentGroups { learned: self.learned, ..ResidentGroups::default() };
        }
        is_full
    }

    /// The groups of these devices, given by their indices, in an order that depends on the groups alone.
    pub(super) fn of(
        &mut self,
        devices: &[FreeDevice<'_>],
        taken: &[usize],
        jobs: &mut Jobs,
    ) -> Arc<[ResidentGroup]> {
        let is_known = |(known, index): (&AskedDevice, &usize)| known.is(*index, &devices[*index]);
        let is_same =
            self.last.devices.len() == taken.len() && self.last.devices.iter().zip(taken).all(is_known);
        if !is_same || taken.is_empty() {
            self.last = Question {
                devices: taken.iter().map(|index| AskedDevice::new(*index, &devices[*index])).collect(),
                groups: self.group(devices, taken, jobs),
            };
        }
        Arc::clone(&self.last.groups)
    }

    fn group(
        &mut self,
        devices: &[FreeDevice<'_>],
        taken: &[usize],
        jobs: &mut Jobs,
    ) -> Arc<[ResidentGroup]> {
        let mut by_number: BTreeMap<usize, Vec<GroupDevice>> = BTreeMap::new();
        for index in taken {
            let (number, residents) = self.look_at(&devices[*index], jobs);
            by_number.entry(number).or_default().push(GroupDevice { index: *index, residents });
        }
        let group = |(number, devices): (usize, Vec<GroupDevice>)| ResidentGroup {
            number,
            kind: Arc::clone(&self.kinds[number].1),
            devices,
        };
        let mut groups: Vec<ResidentGroup> = by_number.into_iter().map(group).collect();
        groups.sort_by_key(|group| &self.kinds[group.number].0);
        groups.into()
    }

    /// The number of the group of a device, and its residents.
    fn look_at(&mut self, device: &FreeDevice<'_>, jobs: &mut Jobs) -> (usize, Arc<DeviceResidents>) {
        let (place, sharing, all) = (place_of(device), device.view.sharing.mode, &device.view.jobs);
        let known = self.devices.get_mut(&place).filter(|it| it.sharing == sharing && it.jobs == *all);
        if let Some(known) = known {
            if known.learned != self.learned {
                known.residents = Arc::new(DeviceResidents::new(known.residents.jobs.clone(), jobs));
                known.learned = self.learned;
            }
            return (known.group, Arc::clone(&known.residents));
        }
        let present = jobs.on(device.view);
        let InternedSet { gpu, sharing, members } = build_set(device, &present, jobs);
        let resident = |(member, job)| ((member, jobs.max_slowdown(job)), job);
        let mut residents: Vec<_> = members.into_iter().zip(present).map(resident).collect();
        residents.sort();
        let (key, present) = residents.into_iter().unzip();
        let group = self.number_of((gpu, sharing, key));
        let residents = Arc::new(DeviceResidents::new(present, jobs));
        for job in all {
            let devices = self.devices_of.entry(*job).or_default();
            if !devices.contains(&place) {
                devices.push(place.clone());
            }
        }
        let (jobs, found) = (all.clone(), Arc::clone(&residents));
        let known = KnownDevice { sharing, jobs, group, residents, learned: self.learned };
        self.devices.insert(place, known);
        (group, found)
    }

    fn number_of(&mut self, key: GroupKey) -> usize {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let (gpu, sharing, residents) = &key;
        let (members, allowed) = residents.iter().cloned().unzip();
        let residents = InternedSet { gpu: gpu.clone(), sharing: *sharing, members };
        let (number, key) = (self.kinds.len(), Arc::new(key));
        self.kinds.push((Arc::clone(&key), Arc::new(GroupKind { residents, allowed })));
        self.numbers.insert(key, number);
        number
    }
}

impl DeviceResidents {
    fn new(residents: Vec<JobId>, jobs: &Jobs) -> DeviceResidents {
        let left = residents.iter().map(|job| jobs.ends_in(*job).map(|left| left.as_secs_f64())).collect();
        DeviceResidents { jobs: residents, left }
    }
}

/// Where a device is.
pub(super) fn place_of(device: &FreeDevice<'_>) -> DevicePlace {
    (device.node.id, device.view.id.clone())
}

impl ResidentGroup {
    /// A resident of its first device, by its place in the set with the newcomer.
    pub(super) fn first_resident(&self, member: usize) -> Option<JobId> {
        let device = self.devices.first()?;
        device.residents.jobs.get(member.checked_sub(1)?).copied()
    }
}
