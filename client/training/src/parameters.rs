//! The trainable variables of a network, by name.
//!
//! Candle cannot seed its generator on the CPU, so initial values are drawn here. Its `VarMap` has no fixed
//! order, so names are kept sorted. The name connects a variable with its tensor in a checkpoint.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use candle_core::{Device, Shape, Tensor, Var};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use crate::random::{RandomStream, generator};

/// All trainable variables, sorted by name.
pub(crate) struct Parameters {
    generator: ChaCha8Rng,
    device: Device,
    variables: BTreeMap<String, Var>,
}

impl Parameters {
    /// An empty set. Initial values are drawn from `seed` in the order in which parameters are added.
    pub(crate) fn new(seed: u64) -> Self {
        let generator = generator(seed, RandomStream::FirstWeights);
        Self { generator, device: Device::Cpu, variables: BTreeMap::new() }
    }

    /// Parameters that are added are on this device from now on. At first it is the CPU.
    pub(crate) fn on(self, device: &Device) -> Self {
        Self { device: device.clone(), ..self }
    }

    /// Adds a parameter with values uniform in `-bound..bound` and returns its tensor.
    pub(crate) fn uniform(&mut self, name: &str, shape: impl Into<Shape>, bound: f32) -> Result<Tensor> {
        let shape = shape.into();
        let values = (0..shape.elem_count()).map(|_| self.generator.random_range(-bound..bound)).collect();
        self.add(name, Tensor::from_vec(values, shape, &self.device)?)
    }

    /// Adds a parameter of zeros and returns its tensor.
    pub(crate) fn zeros(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Tensor> {
        self.add(name, Tensor::zeros(shape, candle_core::DType::F32, &self.device)?)
    }

    fn add(&mut self, name: &str, first_values: Tensor) -> Result<Tensor> {
        let variable = Var::from_tensor(&first_values)?;
        let tensor = variable.as_tensor().clone();
        ensure!(self.variables.insert(name.to_owned(), variable).is_none(), "two parameters named {name}");
        Ok(tensor)
    }

    /// Names and variables, in the order of the names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Var)> {
        self.variables.iter().map(|(name, variable)| (name.as_str(), variable))
    }

    /// The number of trainable values.
    pub(crate) fn element_count(&self) -> usize {
        self.variables.values().map(|variable| variable.elem_count()).sum()
    }

    /// Copies of the current values under `prefix` + name, for a checkpoint.
    pub(crate) fn tensors(&self, prefix: &str) -> Result<BTreeMap<String, Tensor>> {
        self.iter()
            .map(|(name, variable)| Ok((format!("{prefix}{name}"), variable.copy()?.detach())))
            .collect()
    }

    /// The tensors of `saved` under `prefix` + name, checked to have the shapes of the variables.
    pub(crate) fn matching(
        &self,
        saved: &BTreeMap<String, Tensor>,
        prefix: &str,
    ) -> Result<BTreeMap<String, Tensor>> {
        self.iter()
            .map(|(name, variable)| {
                let tensor =
                    saved.get(&format!("{prefix}{name}")).with_context(|| format!("no {prefix}{name}"))?;
                ensure!(tensor.shape() == variable.shape(), "{prefix}{name} has another shape");
                Ok((name.to_owned(), tensor.clone()))
            })
            .collect()
    }

    /// Sets every variable that `values` names.
    pub(crate) fn set(&self, values: &BTreeMap<String, Tensor>) -> Result<()> {
        for (name, tensor) in values {
            self.variables.get(name).with_context(|| format!("no parameter {name}"))?.set(tensor)?;
        }
        Ok(())
    }
}
