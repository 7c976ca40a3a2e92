//! The layers on rows of numbers.

use super::stored_tensors::{StoredTensors, WeightsError};
use crate::maifs::layer_norm::EPSILON;
use crate::maifs::shape::{BLOCK_HIDDEN, FACTORS, HEADS, WIDTH};
use crate::networks::elementary::{gelu, masked_softmax};

/// An affine map.
#[derive(Debug)]
pub(super) struct Dense {
    from: usize,
    to: usize,
    /// `[from, to]`.
    weight: Vec<f32>,
    /// `[to]`.
    bias: Vec<f32>,
}

impl Dense {
    pub(super) fn of(
        tensors: &StoredTensors<'_>,
        name: &str,
        from: usize,
        to: usize,
    ) -> Result<Dense, WeightsError> {
        let bias = tensors.numbers(&format!("{name}.bias"), &[to])?;
        Ok(Dense { bias, ..Dense::without_bias(tensors, name, from, to)? })
    }

    pub(super) fn without_bias(
        tensors: &StoredTensors<'_>,
        name: &str,
        from: usize,
        to: usize,
    ) -> Result<Dense, WeightsError> {
        let weight = tensors.numbers(&format!("{name}.weight"), &[from, to])?;
        Ok(Dense { from, to, weight, bias: vec![0.0; to] })
    }

    /// The map of the inputs from `from` on, `count` of them, without the bias.
    pub(super) fn part(&self, from: usize, count: usize) -> Dense {
        let weight = self.weight[from * self.to..(from + count) * self.to].to_vec();
        Dense { from: count, to: self.to, weight, bias: vec![0.0; self.to] }
    }

    /// The bias alone.
    pub(super) fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Maps `[rows, from]` to `[rows, to]`.
    pub(super) fn forward(&self, input: &[f32]) -> Vec<f32> {
        match self.to {
            BLOCK_HIDDEN => self.forward_to::<BLOCK_HIDDEN>(input),
            WIDTH => self.forward_to::<WIDTH>(input),
            FACTORS => self.forward_to::<FACTORS>(input),
            _ => self.forward_to_any(input),
        }
    }

    /// With a known width the sums of a row stay in registers.
    fn forward_to<const TO: usize>(&self, input: &[f32]) -> Vec<f32> {
        let (weights, _) = self.weight.as_chunks::<TO>();
        let mut output = Vec::with_capacity(input.len() / self.from * TO);
        for row in input.chunks_exact(self.from) {
            let mut sums = [0.0; TO];
            sums.copy_from_slice(&self.bias);
            for (value, weights) in row.iter().zip(weights) {
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * weight);
            }
            output.extend_from_slice(&sums);
        }
        output
    }

    fn forward_to_any(&self, input: &[f32]) -> Vec<f32> {
        let mut output = Vec::with_capacity(input.len() / self.from * self.to);
        for row in input.chunks_exact(self.from) {
            let at = output.len();
            output.extend_from_slice(&self.bias);
            let sums = &mut output[at..];
            for (value, weights) in row.iter().zip(self.weight.chunks_exact(self.to)) {
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * weight);
            }
        }
        output
    }
}

/// Two layers with GELU between them.
#[derive(Debug)]
pub(super) struct DenseMlp {
    first: Dense,
    second: Dense,
}

impl DenseMlp {
    pub(super) fn of(
        tensors: &StoredTensors<'_>,
        name: &str,
        widths: [usize; 3],
    ) -> Result<DenseMlp, WeightsError> {
        let [from, hidden, to] = widths;
        Ok(DenseMlp {
            first: Dense::of(tensors, &format!("{name}.first"), from, hidden)?,
            second: Dense::of(tensors, &format!("{name}.second"), hidden, to)?,
        })
    }

    pub(super) fn forward(&self, input: &[f32]) -> Vec<f32> {
        let mut hidden = self.first.forward(input);
        gelu(&mut hidden);
        self.second.forward(&hidden)
    }
}

/// Layer normalisation of rows of `WIDTH` numbers.
#[derive(Debug)]
pub(super) struct RowNorm {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

impl RowNorm {
    pub(super) fn of(tensors: &StoredTensors<'_>, name: &str) -> Result<RowNorm, WeightsError> {
        Ok(RowNorm {
            gain: tensors.numbers(&format!("{name}.gain"), &[WIDTH])?,
            bias: tensors.numbers(&format!("{name}.bias"), &[WIDTH])?,
        })
    }

    pub(super) fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(WIDTH) {
            let mean = row.iter().sum::<f32>() / WIDTH as f32;
            row.iter_mut().for_each(|value| *value -= mean);
            let variance = row.iter().map(|value| value * value).sum::<f32>() / WIDTH as f32;
            let factor = 1.0 / (variance + EPSILON as f32).sqrt();
            let learned = self.gain.iter().zip(&self.bias);
            row.iter_mut()
                .zip(learned)
                .for_each(|(value, (gain, bias))| *value = *value * factor * gain + bias);
        }
    }
}

/// Attention of rows of `WIDTH` numbers with `HEADS` heads.
#[derive(Debug)]
pub(super) struct RowAttention {
    query: Dense,
    key: Dense,
    value: Dense,
}

impl RowAttention {
    pub(super) fn of(tensors: &StoredTensors<'_>, name: &str) -> Result<RowAttention, WeightsError> {
        let map = |what: &str| Dense::without_bias(tensors, &format!("{name}.{what}"), WIDTH, WIDTH);
        Ok(RowAttention { query: map("query")?, key: map("key")?, value: map("value")? })
    }

    /// Queries attend to the keys that are kept for them, by the indices of the query and the key.
    pub(super) fn forward(
        &self,
        queries: &[f32],
        keys: &[f32],
        is_kept: impl Fn(usize, usize) -> bool,
    ) -> Vec<f32> {
        let (query, key, value) =
            (self.query.forward(queries), self.key.forward(keys), self.value.forward(keys));
        let part = WIDTH / HEADS;
        let scale = 1.0 / (part as f32).sqrt();
        let mut output = vec![0.0; query.len()];
        let mut weights = vec![0.0; key.len() / WIDTH];
        for (at, (query, output)) in query.chunks_exact(WIDTH).zip(output.chunks_exact_mut(WIDTH)).enumerate()
        {
            for head in (0..WIDTH).step_by(part) {
                let query = &query[head..head + part];
                for (weight, key) in weights.iter_mut().zip(key.chunks_exact(WIDTH)) {
                    let products = query.iter().zip(&key[head..head + part]).map(|(one, two)| one * two);
                    *weight = products.sum::<f32>() * scale;
                }
                masked_softmax(&mut weights, |other| is_kept(at, other));
                for (weight, value) in weights.iter().zip(value.chunks_exact(WIDTH)) {
                    let own = output[head..head + part].iter_mut().zip(&value[head..head + part]);
                    own.for_each(|(sum, value)| *sum += weight * value);
                }
            }
        }
        output
    }
}
