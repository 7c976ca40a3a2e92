//! The gate between the output and the input of a block, on rows.

use candle_core::Result;
use pulp::Simd;

use super::dense_rows::DenseRows;
use crate::networks::Parameters;
use crate::networks::elementary::{sigmoid, tanh};

/// The gate.
#[derive(Debug)]
pub(super) struct GateRows {
    width: usize,
    reset: DenseRows,
    update: DenseRows,
    candidate: DenseRows,
}

/// Buffers of a gate.
#[derive(Debug, Default)]
pub(super) struct GateBuffers {
    both: Vec<f32>,
    reset: Vec<f32>,
    update: Vec<f32>,
    candidate: Vec<f32>,
}

impl GateRows {
    /// # Errors
    ///
    /// If a parameter is missing.
    pub(super) fn of(parameters: &Parameters, name: &str, width: usize) -> Result<GateRows> {
        let part = |what: &str| DenseRows::of(parameters, &format!("{name}.{what}"), width);
        Ok(GateRows { width, reset: part("reset")?, update: part("update")?, candidate: part("candidate")? })
    }

    /// Combines the output and the input of a block, both `[rows, width]`; the result takes the place of the
    /// input.
    #[inline(always)]
    pub(super) fn apply<S: Simd>(
        &self,
        simd: S,
        output: &[f32],
        input: &mut [f32],
        buffers: &mut GateBuffers,
    ) {
        let width = self.width;
        let GateBuffers { both, reset, update, candidate } = buffers;
        both.resize(2 * input.len(), 0.0);
        for buffer in [&mut *reset, &mut *update, &mut *candidate] {
            buffer.resize(input.len(), 0.0);
        }
        let rows = output.chunks_exact(width).zip(input.chunks_exact(width));
        for (both, (output, input)) in both.chunks_exact_mut(2 * width).zip(rows) {
            both[..width].copy_from_slice(output);
            both[width..].copy_from_slice(input);
        }
        self.reset.apply(simd, both, reset);
        sigmoid(reset);
        self.update.apply(simd, both, update);
        sigmoid(update);
        for (both, reset) in both.chunks_exact_mut(2 * width).zip(reset.chunks_exact(width)) {
            both[width..].iter_mut().zip(reset).for_each(|(value, reset)| *value *= reset);
        }
        self.candidate.apply(simd, both, candidate);
        tanh(candidate);
        for ((value, update), candidate) in input.iter_mut().zip(&*update).zip(&*candidate) {
            *value += update * (candidate - *value);
        }
    }
}
