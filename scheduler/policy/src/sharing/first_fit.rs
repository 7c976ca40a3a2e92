//! The first device with room, whoever is on it: what sharing without any thought of interference gives.

use super::{DeviceChoice, DeviceChooser, FreeDevice, Jobs};
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
    ) -> Result<DeviceChoice, Shortage> {
        Ok(DeviceChoice::new(0))
    }
}
