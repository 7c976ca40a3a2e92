//! The first device that a job fits, whatever runs on it: sharing that ignores interference.

use super::{DeviceChoice, DeviceChooser, FreeDevice, Jobs};
use crate::placement::Outlooks;
use crate::{PendingJob, Shortage};

/// Takes nodes in the order in which they joined and devices in the order in which their worker lists them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FirstFitSharing;

impl DeviceChooser for FirstFitSharing {
    fn choose(
        &mut self,
        _: &PendingJob,
        _: &[FreeDevice<'_>],
        _: &mut Jobs,
        _: &dyn Outlooks,
    ) -> Result<DeviceChoice, Shortage> {
        Ok(DeviceChoice::new(0))
    }
}
