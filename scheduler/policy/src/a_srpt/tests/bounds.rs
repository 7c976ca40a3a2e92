//! The quantities in the bounds of the theory, for a random instance.

use super::instances::{Instance, sum};
use crate::a_srpt::VirtualAlpha;
use crate::tests::cluster::TestJob;
use crate::{MappedPlacer, Profile};

/// The quantities in the bounds.
pub(crate) struct Numbers {
    /// How much slower the worst placement of any job is than its floor.
    pub(crate) rho: f64,
    /// The worst underestimate and the worst overestimate.
    pub(crate) nu: f64,
    pub(crate) mu: f64,
    /// All devices, and those of the largest job.
    pub(crate) devices: u64,
    pub(crate) largest: u64,
    /// No schedule has a smaller sum of completion times.
    pub(crate) least: f64,
}

impl Numbers {
    pub(crate) fn of(instance: &Instance, profiles: &[Profile], place: &mut MappedPlacer) -> Numbers {
        let foreseen = instance.foreseen();
        let known = foreseen.profiles(place);
        let guesses = || {
            let ratio = |(job, profile): (&TestJob, &Profile)| {
                profile.iterations.unwrap() as f64 / job.iterations as f64
            };
            instance.jobs.iter().zip(profiles).map(ratio)
        };
        let devices = instance.devices();
        let largest = profiles.iter().map(|it| it.milli / 1_000).max().unwrap();
        let relaxed = sum(&foreseen.turns(&known, VirtualAlpha::LowerBound));
        let alone: f64 = foreseen
            .jobs
            .iter()
            .zip(&known)
            .map(|(job, profile)| {
                job.pending.eligible_at.as_secs_f64() + job.iterations as f64 * profile.bounds.unwrap().floor
            })
            .sum();
        Numbers {
            rho: profiles.iter().map(slowest).fold(1.0, f64::max),
            nu: guesses().map(f64::recip).fold(1.0, f64::max),
            mu: guesses().fold(1.0, f64::max),
            devices,
            largest,
            least: relaxed.max(alone),
        }
    }

    /// `G / (G - g + 1)`.
    pub(crate) fn crowding(&self) -> f64 {
        self.devices as f64 / (self.devices - self.largest + 1) as f64
    }
}

fn slowest(profile: &Profile) -> f64 {
    let bounds = profile.bounds.unwrap();
    bounds.slowest / bounds.floor
}

/// At most, up to rounding to microseconds.
pub(crate) fn at_most(small: f64, large: f64) -> bool {
    small <= large * (1.0 + 1e-9) + 1e-4
}
