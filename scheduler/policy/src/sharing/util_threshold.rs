//! Packs jobs on a device as long as their utilizations sum up to no more than a threshold; a job that fits
//! no device so waits for an idle one.
//!
//! After Q. Hu et al., "Lucid: a non-intrusive, scalable and interpretable scheduler for deep learning
//! training jobs", 2023, which packs jobs by how busy they keep a GPU alone.

use super::{DeviceChoice, DeviceChooser, FreeDevice, Jobs, least_loaded};
use crate::placement::Outlooks;
use crate::{PendingJob, Shortage};

/// Packs up to a threshold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UtilThreshold {
    /// The largest sum of utilizations on one device; 1 is one device.
    pub(crate) most: f64,
}

impl DeviceChooser for UtilThreshold {
    fn choose(
        &mut self,
        newcomer: &PendingJob,
        devices: &[FreeDevice<'_>],
        jobs: &mut Jobs,
        _: &dyn Outlooks,
    ) -> Result<DeviceChoice, Shortage> {
        let loads: Vec<f64> =
            devices.iter().map(|device| jobs.sum_utilization(newcomer.id, device.view)).collect();
        let is_allowed = |at: &usize| jobs.on(devices[*at].view).is_empty() || loads[*at] <= self.most;
        let allowed: Vec<usize> = (0..devices.len()).filter(is_allowed).collect();
        if allowed.is_empty() {
            return Err(Shortage::Busy { most: (self.most * 100.0).round() as u32 });
        }
        let packed: Vec<FreeDevice<'_>> = allowed.iter().map(|at| devices[*at]).collect();
        let mut room = allowed.iter().map(|at| -loads[*at]);
        let fullest = least_loaded(&packed, |_| room.next().unwrap_or_default());
        Ok(DeviceChoice::new(allowed[fullest]))
    }
}
