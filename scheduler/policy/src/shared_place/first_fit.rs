//! The first device with room, whoever is on it: what sharing without any thought of interference gives.

use super::{Choice, Chosen, Jobs, Seat};
use crate::{PendingJob, Shortage};

/// Takes nodes in the order in which they joined and devices in the order in which their worker lists them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FirstFitSharing;

impl Choice for FirstFitSharing {
    fn choose(&mut self, _: &PendingJob, _: &[Seat<'_>], _: &mut Jobs) -> Result<Chosen, Shortage> {
        Ok(Chosen::new(0))
    }
}
