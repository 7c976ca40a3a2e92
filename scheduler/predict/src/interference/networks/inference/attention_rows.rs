//! An attention head on rows.

use candle_core::Result;
use pulp::Simd;

use super::dense_rows::DenseRows;
use super::row_batch::RowBatch;
use crate::interference::networks::layers::SLOPE;
use crate::networks::Parameters;
use crate::networks::elementary::{leaky_relu, masked_softmax};

/// A head that attends to all members of a set, also to the member itself.
#[derive(Debug)]
pub(super) struct AttentionRows {
    weight: DenseRows,
    source: Vec<f32>,
    destination: Vec<f32>,
    edge_gain: f32,
    sharpness: f32,
}

/// Buffers of a head.
#[derive(Debug, Default)]
pub(super) struct AttentionBuffers {
    projected: Vec<f32>,
    source: Vec<f32>,
    destination: Vec<f32>,
    attention: Vec<f32>,
}

impl AttentionRows {
    /// # Errors
    ///
    /// If a parameter is missing.
    pub(super) fn of(parameters: &Parameters, name: &str, width: usize) -> Result<AttentionRows> {
        let numbers = |what: &str| parameters.numbers(&format!("{name}.{what}"));
        let number =
            |what: &str| Ok::<f32, candle_core::Error>(numbers(what)?.first().copied().unwrap_or(0.0));
        Ok(AttentionRows {
            weight: DenseRows::without_bias(parameters, &format!("{name}.seen.weight"), width)?,
            source: numbers("source")?,
            destination: numbers("destination")?,
            edge_gain: number("edge_gain")?,
            sharpness: number("sharpness")?,
        })
    }

    /// The attended mean of the members of each member's set, into the columns from `at` on of
    /// `[rows, all]`.
    #[inline(always)]
    pub(super) fn apply<S: Simd>(
        &self,
        simd: S,
        members: &[f32],
        batch: &RowBatch,
        buffers: &mut AttentionBuffers,
        output: &mut [f32],
        (all, at): (usize, usize),
    ) {
        let width = self.source.len();
        let AttentionBuffers { projected, source, destination, attention } = buffers;
        projected.resize(batch.rows() * width, 0.0);
        self.weight.apply(simd, members, projected);
        leaky_relu(projected, SLOPE as f32);
        dots(projected, &self.source, source);
        dots(projected, &self.destination, destination);
        let mut edges = &batch.edges[..];
        for set in &batch.sets {
            for own in set.clone() {
                let (of_own, rest) = edges.split_at(set.len());
                edges = rest;
                attention.clear();
                attention.extend(of_own.iter().zip(&source[set.clone()]).map(|(edge, source)| {
                    let score = (destination[own] + source) * (edge * self.edge_gain);
                    score.max(SLOPE as f32 * score) * self.sharpness
                }));
                masked_softmax(attention, |_| true);
                let attended = &mut output[own * all + at..][..width];
                attended.fill(0.0);
                for (weight, row) in attention.iter().zip(projected[set.start * width..].chunks_exact(width))
                {
                    attended.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
                }
            }
        }
    }
}

/// The scalar product of each row with a vector.
#[inline(always)]
fn dots(rows: &[f32], vector: &[f32], output: &mut Vec<f32>) {
    output.clear();
    let dot = |row: &[f32]| row.iter().zip(vector).map(|(one, two)| one * two).sum::<f32>();
    output.extend(rows.chunks_exact(vector.len()).map(dot));
}
