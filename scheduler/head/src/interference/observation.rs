//! One thing that the trainer learns from: how fast a rank ran beside others, or that a set did not fit.

use cohabit_policy::interference::{ColocationHistory, ObservedMisfit, ObservedSample};

/// What was observed of the jobs on a device.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Observation {
    /// They ran.
    Sample(ObservedSample),
    /// One of them found no memory left.
    Misfit(ObservedMisfit),
}

impl Observation {
    /// Adds it to what was observed before.
    pub(super) fn add_to(&self, experience: &mut ColocationHistory) {
        match self {
            Observation::Sample(sample) => experience.note(sample),
            Observation::Misfit(misfit) => experience.note_misfit(misfit),
        }
    }
}
