//! The numbers of a network by name: drawn by a seed, or those that were stored.
//!
//! Names are in order, and numbers are drawn in the order in which layers ask for them: the same seed gives
//! the same network on every machine.

use std::collections::BTreeMap;

use crate::interference::random::RandomExt;
use candle_core::{DType, Device, Result, Shape, Tensor, Var, bail};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The numbers of a network.
#[derive(Debug)]
pub(super) struct Parameters {
    by_name: BTreeMap<String, Var>,
    source: Source,
    precision: DType,
}

#[derive(Debug)]
enum Source {
    Drawn(Box<ChaCha8Rng>),
    Stored(BTreeMap<String, Tensor>),
}

impl Parameters {
    /// Drawn by a seed.
    pub(super) fn drawn(seed: u64, precision: DType) -> Parameters {
        let source = Source::Drawn(Box::new(ChaCha8Rng::seed_from_u64(seed)));
        Parameters { by_name: BTreeMap::new(), source, precision }
    }

    /// Those that were stored.
    pub(super) fn stored(tensors: BTreeMap<String, Tensor>, precision: DType) -> Parameters {
        Parameters { by_name: BTreeMap::new(), source: Source::Stored(tensors), precision }
    }

    /// Normally distributed with this standard deviation.
    ///
    /// # Errors
    /// Where they are stored and this one is lacking or of another shape.
    pub(super) fn normal(&mut self, name: &str, shape: impl Into<Shape>, deviation: f64) -> Result<Tensor> {
        let (shape, precision) = (shape.into(), self.precision);
        self.parameter(name, &shape, |random, shape| {
            let numbers: Vec<f64> = (0..shape.elem_count()).map(|_| random.normal() * deviation).collect();
            Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(precision)
        })
    }

    /// All the same at first.
    ///
    /// # Errors
    /// As [`Parameters::normal`].
    pub(super) fn constant(&mut self, name: &str, shape: impl Into<Shape>, value: f64) -> Result<Tensor> {
        let (shape, precision) = (shape.into(), self.precision);
        self.parameter(name, &shape, |_, shape| Tensor::full(value, shape, &Device::Cpu)?.to_dtype(precision))
    }

    fn parameter(
        &mut self,
        name: &str,
        shape: &Shape,
        first: impl FnOnce(&mut ChaCha8Rng, &Shape) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let value = match &mut self.source {
            Source::Drawn(random) => first(random, shape)?,
            Source::Stored(tensors) => match tensors.get(name) {
                Some(tensor) if tensor.shape() == shape => tensor.to_dtype(self.precision)?,
                Some(tensor) => bail!("{name} has the shape {:?} instead of {shape:?}", tensor.shape()),
                None => bail!("the weights lack '{name}'"),
            },
        };
        let variable = Var::from_tensor(&value)?;
        let tensor = variable.as_tensor().clone();
        self.by_name.insert(name.to_owned(), variable);
        Ok(tensor)
    }

    /// All of them, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Var)> {
        self.by_name.iter().map(|(name, variable)| (name.as_str(), variable))
    }

    /// What they are now.
    ///
    /// # Errors
    /// Where the library of tensors refuses.
    pub(super) fn values(&self) -> Result<BTreeMap<String, Tensor>> {
        self.iter().map(|(name, variable)| Ok((name.to_owned(), variable.copy()?.detach()))).collect()
    }

    /// Puts back what they were.
    ///
    /// # Errors
    /// Where the library of tensors refuses.
    pub(super) fn set(&self, values: &BTreeMap<String, Tensor>) -> Result<()> {
        let mut known =
            self.by_name.iter().filter_map(|(name, variable)| Some((variable, values.get(name)?)));
        known.try_for_each(|(variable, value)| variable.set(value))
    }
}
