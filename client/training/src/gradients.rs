//! The gradients of a step, by parameter name, and their sums over the ranks of a group.
//!
//! The loss of the step is summed together with them, so that one exchange is enough.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use candle_core::Tensor;

use crate::parameters::Parameters;
use crate::process_group::ProcessGroup;

/// The loss of a step and its gradients.
pub(crate) struct Gradients {
    pub(crate) loss: f32,
    by_name: BTreeMap<String, Tensor>,
}

impl Gradients {
    /// Computes the gradients of a loss.
    ///
    /// A parameter without a gradient is an error: some fused operations of candle silently compute none.
    pub(crate) fn of_loss(loss: &Tensor, parameters: &Parameters) -> Result<Self> {
        let found = loss.backward()?;
        let gradient = |(name, variable): (&str, &candle_core::Var)| {
            let gradient =
                found.get(variable).with_context(|| format!("parameter {name} got no gradient"))?;
            // Detached from the graph: a moment that kept the link would hold every step in memory.
            Ok((name.to_owned(), gradient.detach()))
        };
        let by_name = parameters.iter().map(gradient).collect::<Result<_>>()?;
        Ok(Self { loss: loss.to_scalar()?, by_name })
    }

    pub(crate) fn of(&self, name: &str) -> Result<&Tensor> {
        self.by_name.get(name).with_context(|| format!("no gradient of parameter {name}"))
    }

    /// Sums over all ranks in one exchange.
    pub(crate) fn summed(self, group: &mut ProcessGroup) -> Result<Self> {
        let mut values = vec![self.loss];
        for gradient in self.by_name.values() {
            values.extend(gradient.flatten_all()?.to_vec1::<f32>()?);
        }
        group.sum(&mut values)?;
        let mut rest = &values[1..];
        let mut taken = |(name, gradient): (String, Tensor)| {
            let (own, others) = rest.split_at(gradient.elem_count());
            rest = others;
            Ok((name, Tensor::from_slice(own, gradient.shape(), gradient.device())?))
        };
        let by_name = self.by_name.into_iter().map(&mut taken).collect::<Result<_>>()?;
        Ok(Self { loss: values[0], by_name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_without_a_gradient_is_an_error() {
        let mut parameters = Parameters::new(1);
        let used = parameters.zeros("used", 2).unwrap();
        parameters.zeros("unused", 2).unwrap();
        let error = Gradients::of_loss(&used.sum_all().unwrap(), &parameters).err().unwrap();
        assert_eq!(error.to_string(), "parameter unused got no gradient");
    }

    #[test]
    fn the_sum_over_a_single_rank_changes_nothing() {
        let mut parameters = Parameters::new(1);
        let (left, right) = (parameters.uniform("left", (2, 3), 1.0), parameters.uniform("right", 2, 1.0));
        let loss =
            (left.unwrap().sum_all().unwrap() + right.unwrap().sqr().unwrap().sum_all().unwrap()).unwrap();
        let before = Gradients::of_loss(&loss, &parameters).unwrap();
        let values = |gradients: &Gradients, name| {
            gradients.of(name).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        let expected = (before.loss, values(&before, "left"), values(&before, "right"));
        let after = before.summed(&mut ProcessGroup::alone()).unwrap();
        assert_eq!((after.loss, values(&after, "left"), values(&after, "right")), expected);
        assert_eq!(after.of("left").unwrap().dims(), [2, 3]);
    }
}
