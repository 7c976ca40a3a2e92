//! The device with the fewest neighbours, and among those the one of which least is taken.
//!
//! It knows nothing of what the neighbours do.

use cohabit_types::Share;

use super::{Choice, Chosen, Jobs, Seat, least_loaded};
use crate::{PendingJob, Shortage};

/// Spreads jobs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LeastLoaded;

impl Choice for LeastLoaded {
    fn choose(&mut self, _: &PendingJob, seats: &[Seat<'_>], _: &mut Jobs) -> Result<Chosen, Shortage> {
        let load = |seat: &Seat<'_>| {
            let taken = Share::WHOLE.minus(seat.device.free);
            seat.device.residents.len() as f64 + f64::from(taken.0) / f64::from(Share::WHOLE.0 + 1)
        };
        Ok(Chosen::new(least_loaded(seats, load)))
    }
}
