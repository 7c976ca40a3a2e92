//! The device with the fewest jobs, and among those the one with the largest free share.
//!
//! What the jobs do is ignored.

use cohabit_types::Share;

use super::{DeviceChoice, DeviceChooser, FreeDevice, Jobs, least_loaded};
use crate::placement::Outlooks;
use crate::{PendingJob, Shortage};

/// Spreads jobs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LeastLoaded;

impl DeviceChooser for LeastLoaded {
    fn choose(
        &mut self,
        _: &PendingJob,
        devices: &[FreeDevice<'_>],
        _: &mut Jobs,
        _: &dyn Outlooks,
    ) -> Result<DeviceChoice, Shortage> {
        let load = |device: &FreeDevice<'_>| {
            let taken = Share::WHOLE.saturating_sub(device.view.free);
            device.view.jobs.len() as f64 + f64::from(taken.0) / f64::from(Share::WHOLE.0 + 1)
        };
        Ok(DeviceChoice::new(least_loaded(devices, load)))
    }
}
