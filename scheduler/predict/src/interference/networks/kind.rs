//! A kind of network as a kind of model.

use std::fmt;
use std::marker::PhantomData;

use super::network::{Network, Schooling};
use super::own_thread::on_one_thread;
use super::{kept, school};
use crate::interference::model::{Epoch, Lesson, Model, ModelKind, RestoreError, TrainError, Weights};

/// Networks of this kind.
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

    fn train(
        &self,
        lesson: &Lesson<'_>,
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError> {
        let epochs = lesson.epochs.unwrap_or(N::SCHOOLING.epochs);
        let schooling = Schooling { epochs, ..N::SCHOOLING };
        let ensemble = on_one_thread(watch, |watch| school::train::<N>(lesson, schooling, watch))?;
        Ok(Box::new(ensemble))
    }

    fn restore(&self, weights: &Weights) -> Result<Box<dyn Model>, RestoreError> {
        Ok(Box::new(kept::restored::<N>(weights)?))
    }
}
