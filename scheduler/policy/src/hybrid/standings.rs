//! How the jobs of a device go on if nobody joins them: what each has left, when it ends, and what would be
//! too late for it.
//!
//! This is the same for all newcomers, so it is found out once for each device, and kept as long as nothing
//! new is known or expected of any job.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::JobId;

use super::resident_groups::{DevicePlace, DeviceResidents, place_of};
use crate::interference::PredictionCache;
use crate::placement::{JobOutlook, OutlookVersion, Outlooks};
use crate::sharing::multi_stage::{ContentionDegree, DeviceTimeline, ResidentWork, find_work, run_stages};
use crate::sharing::{FreeDevice, Jobs};

/// The jobs of one device.
#[derive(Debug)]
pub(super) struct DeviceStanding {
    pub(super) work: ResidentWork,
    /// When each ends without a newcomer, in seconds from now, in the order of the device.
    pub(super) ends: Vec<f64>,
    /// What is expected of each resident, in the order of the set of its group; `None` for one that may be
    /// late.
    pub(super) expected: Vec<Option<JobOutlook>>,
}

/// The devices that were simulated since anything became known.
#[derive(Debug, Default)]
pub(super) struct Standings {
    version: Option<OutlookVersion>,
    by_device: BTreeMap<DevicePlace, (Arc<DeviceResidents>, Arc<DeviceStanding>)>,
}

impl Standings {
    /// Something became known of jobs.
    pub(super) fn clear(&mut self) {
        *self = Standings::default();
    }

    /// The jobs of each of these devices.
    pub(super) fn of(
        &mut self,
        devices: &[(FreeDevice<'_>, Arc<DeviceResidents>)],
        jobs: &mut Jobs,
        outlooks: &dyn Outlooks,
        cache: &mut PredictionCache,
    ) -> Vec<Arc<DeviceStanding>> {
        let version = outlooks.version();
        if version.is_none() || version != self.version {
            (self.version, self.by_device) = (version, BTreeMap::new());
        }
        let is_known = |device: &FreeDevice<'_>, residents: &Arc<DeviceResidents>| {
            self.by_device.get(&place_of(device)).is_some_and(|(known, _)| Arc::ptr_eq(known, residents))
        };
        let new: Vec<&(FreeDevice<'_>, Arc<DeviceResidents>)> =
            devices.iter().filter(|(device, residents)| !is_known(device, residents)).collect();
        for job in new.iter().flat_map(|(_, residents)| &residents.jobs) {
            outlooks.of(*job).into_iter().for_each(|outlook| jobs.expect(*job, outlook));
        }
        let unjoined: Vec<FreeDevice<'_>> = new.iter().map(|(device, _)| *device).collect();
        let works = find_work(&unjoined, jobs, cache);
        let mut timelines: Vec<DeviceTimeline> = works.iter().map(ResidentWork::timeline).collect();
        run_stages(&mut timelines, cache, ContentionDegree::default());
        for ((work, timeline), (device, residents)) in works.into_iter().zip(timelines).zip(new) {
            let expected = residents.jobs.iter().map(|job| what_is_late(*job, jobs)).collect();
            let standing = DeviceStanding { work, ends: timeline.ends().to_vec(), expected };
            self.by_device.insert(place_of(device), (Arc::clone(residents), Arc::new(standing)));
        }
        devices.iter().map(|(device, _)| Arc::clone(&self.by_device[&place_of(device)].1)).collect()
    }
}

/// What is expected of a job that may not be late. One that states a limit on its slowdown accepts what is
/// below it.
pub(super) fn what_is_late(job: JobId, jobs: &Jobs) -> Option<JobOutlook> {
    jobs.outlook(job).filter(|_| jobs.max_slowdown(job).is_none())
}
