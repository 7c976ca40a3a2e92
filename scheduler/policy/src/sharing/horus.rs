//! The device on which the utilizations of the newcomer and its neighbors sum up to the least.
//!
//! After G. Yeung et al., "Horus: interference-aware and prediction-based scheduling in deep learning
//! systems", 2022, which predicts utilization and has no model of slowdowns. Here a job's utilization alone
//! on a GPU comes from measurements; where nobody measured it, the share that the job asks for stands for
//! it.

use super::{DeviceChoice, DeviceChooser, FreeDevice, Jobs, least_loaded};
use crate::placement::Outlooks;
use crate::{PendingJob, Shortage};

/// Balances predicted utilization.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Horus;

impl DeviceChooser for Horus {
    fn choose(
        &mut self,
        newcomer: &PendingJob,
        devices: &[FreeDevice<'_>],
        jobs: &mut Jobs,
        _: &dyn Outlooks,
    ) -> Result<DeviceChoice, Shortage> {
        Ok(DeviceChoice::new(least_loaded(devices, |device| jobs.sum_utilization(newcomer.id, device.view))))
    }
}
