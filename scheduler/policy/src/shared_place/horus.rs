//! The device on which the neighbours' and the newcomer's utilisations together are least.
//!
//! After G. Yeung et al., "Horus: interference-aware and prediction-based scheduling in deep learning
//! systems", 2022, which predicts utilisation and has no model of slowdowns. Here what a job uses alone comes
//! from measurements; one that nobody measured counts by the part that it asks for.

use super::{Choice, Chosen, Jobs, Seat, least_loaded};
use crate::{PendingJob, Shortage};

/// Balances predicted utilisation.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Horus;

impl Choice for Horus {
    fn choose(
        &mut self,
        newcomer: &PendingJob,
        seats: &[Seat<'_>],
        jobs: &mut Jobs,
    ) -> Result<Chosen, Shortage> {
        Ok(Chosen::new(least_loaded(seats, |seat| jobs.busy_together(newcomer.id, seat.device))))
    }
}
