//! The device on which the neighbours' and the newcomer's utilisations together are least.
//!
//! After G. Yeung et al., "Horus: interference-aware and prediction-based scheduling in deep learning
//! systems", 2022, which predicts utilisation and has no model of slowdowns. Here what a job uses alone comes
//! from measurements; one that nobody measured counts by the part that it asks for.

use super::{DeviceChoice, DeviceChooser, FreeDevice, Jobs, least_loaded};
use crate::{PendingJob, Shortage};

/// Balances predicted utilisation.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Horus;

impl DeviceChooser for Horus {
    fn choose(
        &mut self,
        newcomer: &PendingJob,
        seats: &[FreeDevice<'_>],
        jobs: &mut Jobs,
    ) -> Result<DeviceChoice, Shortage> {
        Ok(DeviceChoice::new(least_loaded(seats, |seat| jobs.sum_utilisation(newcomer.id, seat.device))))
    }
}
