//! A kind of network as a kind of model.

use std::fmt;
use std::marker::PhantomData;

use super::network::{Network, TrainingOptions};
use super::single_thread::run_single_threaded;
use super::{ensemble_training, ensemble_weights};
use crate::interference::model::{Epoch, Model, ModelKind, RestoreError, TrainError, TrainingData, Weights};

/// The networks of this kind.
pub(super) struct NetworkKind<N>(PhantomData<fn() -> N>);

impl<N> NetworkKind<N> {
    pub(super) const fn new() -> NetworkKind<N> {
        NetworkKind(PhantomData)
    }
}

impl<N: Network> fmt::Debug for NetworkKind<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(N::NAME)
    }
}

impl<N: Network> ModelKind for NetworkKind<N> {
    fn name(&self) -> &'static str {
        N::NAME
    }

    fn epochs(&self) -> Option<usize> {
        Some(N::TRAINING_OPTIONS.epochs)
    }

    fn train(
        &self,
        data: &TrainingData<'_>,
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError> {
        let epochs = data.epochs.unwrap_or(N::TRAINING_OPTIONS.epochs);
        let training_options = TrainingOptions { epochs, ..N::TRAINING_OPTIONS };
        let ensemble =
            run_single_threaded(watch, |watch| ensemble_training::train::<N>(data, training_options, watch))?;
        Ok(Box::new(ensemble))
    }

    fn restore(&self, weights: &Weights) -> Result<Box<dyn Model>, RestoreError> {
        Ok(Box::new(ensemble_weights::restored::<N>(weights)?))
    }
}
