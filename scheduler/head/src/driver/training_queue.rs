//! Observed samples on their way to the trainer.

use cohabit_policy::interference::ObservedSample;

/// Samples beyond this many are dropped while a training runs.
const MAX_QUEUED_SAMPLES: usize = 10_000;

/// The samples for the next training, and whether one may begin.
#[derive(Debug, Default)]
pub(super) struct TrainingQueue {
    samples: Vec<ObservedSample>,
    state: TrainingState,
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
    pub(super) fn push(&mut self, sample: ObservedSample) {
        if self.samples.len() < MAX_QUEUED_SAMPLES {
            self.samples.push(sample);
        }
    }

    /// Takes the samples for a training, if there are some and none is under way.
    pub(super) fn begin_training(&mut self) -> Option<Vec<ObservedSample>> {
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
}
