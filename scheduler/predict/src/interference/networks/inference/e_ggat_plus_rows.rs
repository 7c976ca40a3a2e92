//! E-GGAT-plus on rows.

use candle_core::Result;
use pulp::{Arch, Simd, WithSimd};

use super::attention_rows::{AttentionBuffers, AttentionRows};
use super::dense_rows::DenseRows;
use super::gate_rows::{GateBuffers, GateRows};
use super::row_batch::RowBatch;
use crate::interference::networks::e_ggat_plus_shape::{
    BLOCKS, EDGE, EMBEDDING_WIDTH, GPU_EMBEDDING_WIDTH, HEADS, OF_BASE, STRETCH,
};
use crate::interference::networks::feature_encoder::{EmbeddingIndices, FeatureEncoder};
use crate::interference::networks::layers::SLOPE;
use crate::interference::networks::row_network::{MemberOutput, RowNetwork};
use crate::networks::Parameters;
use crate::networks::elementary::{gelu, leaky_relu};

/// The network.
#[derive(Debug)]
pub(in crate::interference::networks) struct EGgatPlusRows {
    numbers: usize,
    width: usize,
    /// Row by row.
    configurations: Vec<f32>,
    models: Vec<f32>,
    gpus: Vec<f32>,
    entry: DenseRows,
    blocks: Vec<BlockRows>,
    gate: GateRows,
    sensitivity: DenseRows,
    pressure: DenseRows,
    hidden: DenseRows,
    answer: DenseRows,
    usage: Option<UsageRows>,
}

#[derive(Debug)]
struct BlockRows {
    heads: Vec<AttentionRows>,
    edge: DenseRows,
    together: DenseRows,
}

#[derive(Debug)]
struct UsageRows {
    outputs: usize,
    hidden: DenseRows,
    answer: DenseRows,
    bypass: DenseRows,
}

impl EGgatPlusRows {
    /// # Errors
    ///
    /// If a parameter is missing.
    pub(in crate::interference::networks) fn of(
        parameters: &Parameters,
        encoder: &FeatureEncoder,
        width: usize,
    ) -> Result<EGgatPlusRows> {
        let dense = |name: &str, to| DenseRows::of(parameters, name, to);
        let block = |at: usize| BlockRows::of(parameters, &format!("block{at}"), width);
        Ok(EGgatPlusRows {
            numbers: encoder.width(),
            width,
            configurations: parameters.numbers("configurations")?,
            models: parameters.numbers("models")?,
            gpus: parameters.numbers("gpus")?,
            entry: dense("entry", width)?,
            blocks: (1..=BLOCKS).map(block).collect::<Result<_>>()?,
            gate: GateRows::of(parameters, "gate", width)?,
            sensitivity: dense("sensitivity", 1)?,
            pressure: dense("pressure", 1)?,
            hidden: dense("hidden", width)?,
            answer: dense("answer", 1)?,
            usage: UsageRows::of(parameters, encoder.usage.count(), 2 * width)?,
        })
    }

    /// The inputs of all rows, `[rows, inputs]`.
    #[inline(always)]
    fn inputs(&self, batch: &RowBatch) -> Vec<f32> {
        let inputs = self.numbers + 2 * EMBEDDING_WIDTH + GPU_EMBEDDING_WIDTH + OF_BASE;
        let mut all = Vec::with_capacity(batch.rows() * inputs);
        for (row, identity) in batch.identities.iter().enumerate() {
            let EmbeddingIndices { configuration, model, gpu } = identity;
            all.extend_from_slice(&batch.numbers[row * self.numbers..][..self.numbers]);
            all.extend_from_slice(row_of(&self.configurations, *configuration, EMBEDDING_WIDTH));
            all.extend_from_slice(row_of(&self.models, *model, EMBEDDING_WIDTH));
            all.extend_from_slice(row_of(&self.gpus, *gpu, GPU_EMBEDDING_WIDTH));
            all.extend(batch.base[row * OF_BASE..][..OF_BASE].iter().map(|number| number * STRETCH as f32));
        }
        all
    }

    #[inline(always)]
    fn forward<S: Simd>(&self, simd: S, batch: &RowBatch) -> Vec<MemberOutput> {
        let (rows, width) = (batch.rows(), self.width);
        let zeros = |columns: usize| vec![0.0_f32; rows * columns];
        let mut own = zeros(width);
        self.entry.apply(simd, &self.inputs(batch), &mut own);
        gelu(&mut own);
        let mut members = own.clone();
        let (mut attended, mut output) = (zeros((HEADS + 2) * width), zeros(width));
        let (mut of_heads, mut of_gate) = (AttentionBuffers::default(), GateBuffers::default());
        for block in &self.blocks {
            block.apply(simd, &members, batch, &mut of_heads, &mut attended, &mut output);
            self.gate.apply(simd, &output, &mut members, &mut of_gate);
        }
        let mut all = zeros(2 * width);
        let both = members.chunks_exact(width).zip(own.chunks_exact(width));
        for (all, (members, own)) in all.chunks_exact_mut(2 * width).zip(both) {
            all[..width].copy_from_slice(members);
            all[width..].copy_from_slice(own);
        }
        let mut deep = zeros(width);
        self.hidden.apply(simd, &all, &mut deep);
        gelu(&mut deep);
        let (mut answer, mut sensitivity, mut pressure) = (zeros(1), zeros(1), zeros(1));
        self.answer.apply(simd, &deep, &mut answer);
        self.sensitivity.apply(simd, &own, &mut sensitivity);
        self.pressure.apply(simd, &own, &mut pressure);
        let usage = self.usage.as_ref().map(|heads| heads.apply(simd, &all));
        let mut outputs = Vec::with_capacity(rows);
        for set in &batch.sets {
            for row in set.clone() {
                let others = set.clone().filter(|other| *other != row);
                let pressure: f32 = others.map(|other| pressure[other]).sum();
                let error = answer[row] + sensitivity[row] + pressure;
                let ln_slowdown = f64::from((error + batch.base[row * OF_BASE]).max(0.0));
                let usage = self.usage.as_ref().zip(usage.as_ref()).map(|(heads, usage)| {
                    usage[row * heads.outputs..][..heads.outputs].iter().copied().map(f64::from).collect()
                });
                outputs.push(MemberOutput { ln_slowdown, usage: usage.unwrap_or_default() });
            }
        }
        outputs
    }
}

/// A forward pass, compiled for the vector instructions of each kind of machine.
struct Forward<'f> {
    network: &'f EGgatPlusRows,
    batch: &'f RowBatch,
}

impl WithSimd for Forward<'_> {
    type Output = Vec<MemberOutput>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<MemberOutput> {
        self.network.forward(simd, self.batch)
    }
}

impl RowNetwork for EGgatPlusRows {
    fn predict(&self, batch: &RowBatch) -> Vec<MemberOutput> {
        Arch::new().dispatch(Forward { network: self, batch })
    }
}

impl BlockRows {
    fn of(parameters: &Parameters, name: &str, width: usize) -> Result<BlockRows> {
        let head = |at: usize| AttentionRows::of(parameters, &format!("{name}.head{at}"), width);
        Ok(BlockRows {
            heads: (1..=HEADS).map(head).collect::<Result<_>>()?,
            edge: DenseRows::without_bias(parameters, &format!("{name}.edge.weight"), width)?,
            together: DenseRows::of(parameters, &format!("{name}.together"), width)?,
        })
    }

    /// Maps members `[rows, width]` to the output of the block; `attended` is `[rows, (HEADS + 2) * width]`.
    #[inline(always)]
    fn apply<S: Simd>(
        &self,
        simd: S,
        members: &[f32],
        batch: &RowBatch,
        buffers: &mut AttentionBuffers,
        attended: &mut [f32],
        output: &mut [f32],
    ) {
        let width = output.len() / batch.rows().max(1);
        let all = (HEADS + 2) * width;
        for (at, head) in self.heads.iter().enumerate() {
            head.apply(simd, members, batch, buffers, attended, (all, (at + 1) * width));
        }
        // Edges enter once, summed over all partners; the heads weigh members.
        debug_assert_eq!(batch.edge_sums.len(), batch.rows() * EDGE);
        self.edge.apply_into(simd, &batch.edge_sums, attended, (all, (HEADS + 1) * width));
        for set in &batch.sets {
            for own in set.clone() {
                let row = &mut attended[own * all..][..all];
                row[..width].copy_from_slice(&members[own * width..][..width]);
                let crowd = &mut row[(HEADS + 1) * width..];
                for other in set.clone().filter(|other| *other != own) {
                    let other = &members[other * width..][..width];
                    crowd.iter_mut().zip(other).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        self.together.apply(simd, attended, output);
        leaky_relu(output, SLOPE as f32);
    }
}

impl UsageRows {
    fn of(parameters: &Parameters, outputs: usize, width: usize) -> Result<Option<UsageRows>> {
        if outputs == 0 {
            return Ok(None);
        }
        let dense = |what: &str, to| DenseRows::of(parameters, &format!("usage.{what}"), to);
        let (hidden, answer, bypass) =
            (dense("hidden", width)?, dense("answer", outputs)?, dense("bypass", outputs)?);
        Ok(Some(UsageRows { outputs, hidden, answer, bypass }))
    }

    /// Maps members `[rows, width]` to `[rows, outputs]`.
    #[inline(always)]
    fn apply<S: Simd>(&self, simd: S, members: &[f32]) -> Vec<f32> {
        // The hidden layer is as wide as its input.
        let mut deep = vec![0.0; members.len()];
        self.hidden.apply(simd, members, &mut deep);
        gelu(&mut deep);
        let rows = members.len() / self.hidden.from();
        let (mut answer, mut bypass) = (vec![0.0; rows * self.outputs], vec![0.0; rows * self.outputs]);
        self.answer.apply(simd, &deep, &mut answer);
        self.bypass.apply(simd, members, &mut bypass);
        answer.iter_mut().zip(&bypass).for_each(|(sum, value)| *sum += value);
        answer
    }
}

fn row_of(table: &[f32], index: u32, width: usize) -> &[f32] {
    &table[index as usize * width..][..width]
}
