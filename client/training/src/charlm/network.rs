//! A network of gated recurrent units (Cho et al. 2014; gates as in cuDNN) over characters.
//!
//! A character goes in as a row of a table, which is embedding and input weight in one. The steps through
//! time are a plain loop: candle's autograd follows it.

use anyhow::Result;
use candle_core::{D, DType, Device, Tensor};
use candle_nn::ops::sigmoid;

use super::super::parameters::Parameters;

/// Reset gate, update gate, candidate.
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

    /// The state before the first character, for `rows` texts at once.
    pub(super) fn first_state(&self, rows: usize) -> Result<Tensor> {
        Ok(Tensor::zeros((rows, self.hidden), DType::F32, &Device::Cpu)?)
    }

    /// The state `[rows, hidden]` after one more character of each text, `characters` being `[rows]`.
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

/// `count` gates from the gate `first` on.
fn part(gates: &Tensor, first: usize, count: usize, hidden: usize) -> Result<Tensor> {
    Ok(gates.narrow(D::Minus1, first * hidden, count * hidden)?)
}
