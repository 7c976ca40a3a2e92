//! A head for a job on a node: two layers on `[e_i | k_m | pair_im]`.

use candle_core::{Result, Tensor};

use super::shape::{PAIR_INPUTS, WIDTH};
use crate::networks::{Affine, Parameters, gelu};

/// A head for a job on a node.
///
/// The first layer is applied to the node, the job and the pair separately and then added up, which is the
/// same and much cheaper: there are far fewer nodes and jobs than pairs.
#[derive(Debug)]
pub(super) struct PairHead {
    first: Affine,
    second: Affine,
}

/// The parts of the first layer's input of some rows.
#[derive(Debug)]
pub(super) struct PairInputs<'a> {
    /// The encoded nodes, broadcast to the rows: `[.., WIDTH]`.
    pub(super) nodes: &'a Tensor,
    /// The encoded jobs, broadcast to the rows: `[.., WIDTH]`.
    pub(super) jobs: &'a Tensor,
    /// The features of the pairs, `[.., 4]`.
    pub(super) pairs: &'a Tensor,
}

impl PairHead {
    pub(super) fn new(parameters: &mut Parameters, name: &str, to: usize) -> Result<PairHead> {
        Ok(PairHead {
            first: Affine::new(parameters, &format!("{name}.first"), PAIR_INPUTS, WIDTH)?,
            second: Affine::new(parameters, &format!("{name}.second"), WIDTH, to)?,
        })
    }

    /// The outputs, `[rows, to]`, for inputs whose shapes can be broadcast to each other.
    pub(super) fn forward(&self, inputs: &PairInputs<'_>) -> Result<Tensor> {
        let PairInputs { nodes, jobs, pairs } = inputs;
        let sum = self.part(nodes, 0)?.broadcast_add(&self.part(jobs, WIDTH)?)?;
        let sum = sum.broadcast_add(&self.part(pairs, 2 * WIDTH)?)?;
        let sum = match &self.first.bias {
            Some(bias) => sum.broadcast_add(bias)?,
            None => sum,
        };
        self.second.forward(&gelu(&sum)?.reshape(((), WIDTH))?)
    }

    /// The part of the first layer whose inputs begin at `from`.
    fn part(&self, input: &Tensor, from: usize) -> Result<Tensor> {
        let inputs = *input.dims().last().unwrap_or(&0);
        let mut shape = input.dims().to_vec();
        let product = input.reshape(((), inputs))?.matmul(&self.first.weight.narrow(0, from, inputs)?)?;
        shape.pop();
        shape.push(WIDTH);
        product.reshape(shape)
    }
}
