//! Observations on their way to the trainer.

use crate::interference::Observation;

/// Observations of each kind beyond this many are dropped while a training runs.
const MAX_QUEUED: usize = 10_000;

/// The samples for the next training, and whether one may begin; and the misfits, which do not wait for it.
#[derive(Debug, Default)]
pub(super) struct TrainingQueue {
    samples: Vec<Observation>,
    state: TrainingState,
    misfits: Vec<Observation>,
    /// Whether the trainer is learning misfits.
    misfit_state: TrainingState,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum TrainingState {
    #[default]
    Idle,
    /// A training runs, or the pause after it is not over.
    Busy,
}

impl TrainingQueue {
    /// Adds a sample; a full queue drops it.
    pub(super) fn push(&mut self, sample: Observation) {
        if self.samples.len() < MAX_QUEUED {
            self.samples.push(sample);
        }
    }

    /// Adds a misfit; a full queue drops it.
    pub(super) fn push_misfit(&mut self, misfit: Observation) {
        if self.misfits.len() < MAX_QUEUED {
            self.misfits.push(misfit);
        }
    }

    /// Takes the samples for a training, if there are some and none is under way.
    pub(super) fn begin_training(&mut self) -> Option<Vec<Observation>> {
        if self.state == TrainingState::Busy || self.samples.is_empty() {
            return None;
        }
        self.state = TrainingState::Busy;
        Some(std::mem::take(&mut self.samples))
    }

    /// The next training may begin.
    pub(super) fn end_pause(&mut self) {
        self.state = TrainingState::Idle;
    }

    /// Takes the misfits, if there are some and the trainer has learned those before.
    pub(super) fn begin_misfits(&mut self) -> Option<Vec<Observation>> {
        if self.misfit_state == TrainingState::Busy || self.misfits.is_empty() {
            return None;
        }
        self.misfit_state = TrainingState::Busy;
        Some(std::mem::take(&mut self.misfits))
    }

    /// The trainer has learned the misfits that it got.
    pub(super) fn end_misfits(&mut self) {
        self.misfit_state = TrainingState::Idle;
    }

    /// Whether there are misfits that the trainer has not learned.
    pub(super) fn has_unlearned_misfits(&self) -> bool {
        self.misfit_state == TrainingState::Busy || !self.misfits.is_empty()
    }
}
