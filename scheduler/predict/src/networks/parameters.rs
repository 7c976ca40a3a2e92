//! The parameters of a network by name, drawn from a seed or restored.
//!
//! Parameters are drawn in the order in which the layers ask for them: the same seed gives the same network
//! on every machine.

use std::collections::BTreeMap;

use crate::random::RandomExt;
use candle_core::{DType, Device, Result, Shape, Tensor, Var, bail};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The parameters of a network.
#[derive(Debug)]
pub(crate) struct Parameters {
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
    /// Parameters drawn from a seed.
    pub(crate) fn drawn(seed: u64, precision: DType) -> Parameters {
        let source = Source::Drawn(Box::new(ChaCha8Rng::seed_from_u64(seed)));
        Parameters { by_name: BTreeMap::new(), source, precision }
    }

    /// Restored parameters.
    pub(crate) fn stored(tensors: BTreeMap<String, Tensor>, precision: DType) -> Parameters {
        Parameters { by_name: BTreeMap::new(), source: Source::Stored(tensors), precision }
    }

    /// A parameter that is drawn from a normal distribution with this standard deviation.
    ///
    /// # Errors
    ///
    /// If the parameters are restored and this one is missing or has another shape.
    pub(crate) fn normal(&mut self, name: &str, shape: impl Into<Shape>, deviation: f64) -> Result<Tensor> {
        let (shape, precision) = (shape.into(), self.precision);
        self.parameter(name, &shape, |random, shape| {
            let numbers: Vec<f64> = (0..shape.elem_count()).map(|_| random.normal() * deviation).collect();
            Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(precision)
        })
    }

    /// A parameter with a constant initial value.
    ///
    /// # Errors
    ///
    /// As [`Parameters::normal`].
    pub(crate) fn constant(&mut self, name: &str, shape: impl Into<Shape>, value: f64) -> Result<Tensor> {
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

    /// All parameters by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Var)> + Clone {
        self.by_name.iter().map(|(name, variable)| (name.as_str(), variable))
    }

    /// The numbers of a parameter, row by row.
    ///
    /// # Errors
    ///
    /// If there is none with this name.
    pub(crate) fn numbers(&self, name: &str) -> Result<Vec<f32>> {
        let Some(variable) = self.by_name.get(name) else { bail!("there is no parameter '{name}'") };
        variable.as_detached_tensor().to_dtype(DType::F32)?.flatten_all()?.to_vec1()
    }

    /// Forgets the parameters whose names do not hold; the layers keep them.
    #[cfg(test)]
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.by_name.retain(|name, _| is_kept(name));
    }

    /// Copies of the present values.
    ///
    /// # Errors
    ///
    /// If the tensor library reports one.
    pub(crate) fn values(&self) -> Result<BTreeMap<String, Tensor>> {
        self.iter().map(|(name, variable)| Ok((name.to_owned(), variable.copy()?.detach()))).collect()
    }

    /// Sets the parameters to these values.
    ///
    /// # Errors
    ///
    /// If the tensor library reports one.
    pub(crate) fn set(&self, values: &BTreeMap<String, Tensor>) -> Result<()> {
        let mut known =
            self.by_name.iter().filter_map(|(name, variable)| Some((variable, values.get(name)?)));
        known.try_for_each(|(variable, value)| variable.set(value))
    }
}
