//! A network of gated recurrent units (Cho et al. 2014; gates as in cuDNN) over characters.
//!
//! The input of a character is a row of a table, which is both the embedding and the input weight. Time steps
//! are a plain loop, which candle's autograd follows.

use anyhow::Result;
use candle_core::{D, DType, Device, Tensor};
use candle_nn::ops::sigmoid;

use crate::parameters::Parameters;

/// The reset gate, the update gate and the candidate.
const GATES: usize = 3;

/// One recurrent layer and an output layer.
pub(super) struct Network {
    hidden: usize,
    input_table: Tensor,
    recurrent_weight: Tensor,
    recurrent_bias: Tensor,
    output_weight: Tensor,
    output_bias: Tensor,
}

impl Network {
    pub(super) fn new(parameters: &mut Parameters, alphabet_size: usize, hidden: usize) -> Result<Self> {
        let bound = 1.0 / (hidden as f32).sqrt();
        Ok(Self {
            hidden,
            input_table: parameters.uniform("input.table", (alphabet_size, GATES * hidden), 0.3)?,
            recurrent_weight: parameters.uniform("recurrent.weight", (hidden, GATES * hidden), bound)?,
            recurrent_bias: parameters.zeros("recurrent.bias", GATES * hidden)?,
            output_weight: parameters.uniform("output.weight", (hidden, alphabet_size), bound)?,
            output_bias: parameters.zeros("output.bias", alphabet_size)?,
        })
    }

    /// The initial state `[rows, hidden]` of `rows` texts.
    pub(super) fn first_state(&self, rows: usize) -> Result<Tensor> {
        Ok(Tensor::zeros((rows, self.hidden), DType::F32, &Device::Cpu)?)
    }

    /// The state `[rows, hidden]` after the next characters `[rows]` of the texts.
    pub(super) fn next_state(&self, state: &Tensor, characters: &Tensor) -> Result<Tensor> {
        let input = self.input_table.index_select(characters, 0)?;
        let recurrent = state.matmul(&self.recurrent_weight)?.broadcast_add(&self.recurrent_bias)?;
        let gates = sigmoid(&(part(&input, 0, 2, self.hidden)? + part(&recurrent, 0, 2, self.hidden)?)?)?;
        let (reset, update) = (part(&gates, 0, 1, self.hidden)?, part(&gates, 1, 1, self.hidden)?);
        let remembered = (reset * part(&recurrent, 2, 1, self.hidden)?)?;
        let candidate = (part(&input, 2, 1, self.hidden)? + remembered)?.tanh()?;
        Ok((&candidate + (update * (state - &candidate)?)?)?)
    }

    /// Scores for the next character, `[rows, alphabet]`, from states `[rows, hidden]`.
    pub(super) fn scores(&self, states: &Tensor) -> Result<Tensor> {
        Ok(states.matmul(&self.output_weight)?.broadcast_add(&self.output_bias)?)
    }
}

/// Selects `count` gates, starting with the gate `first`.
fn part(gates: &Tensor, first: usize, count: usize, hidden: usize) -> Result<Tensor> {
    Ok(gates.narrow(D::Minus1, first * hidden, count * hidden)?)
}
