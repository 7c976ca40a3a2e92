//! E-GGAT with its weaknesses repaired: members attend to themselves, edges matter, and the slowdown itself
//! is learned.
//!
//! Differences from the release: the output is the error of the Gaussian process in the logarithm of the
//! slowdown; a member also attends to itself; edges are an input besides being gains of the heads; the sum
//! over the partners is an input besides the attended mean, because more partners cost more than their mean;
//! known configurations, models and GPUs have embeddings, which are hidden at random during training so that
//! unseen ones can be handled; and an additive part (sensitivity and pressure) bypasses the attention. Memory
//! and utilization have heads on the same blocks, instead of a network of their own.

use candle_core::{Result, Tensor};
use candle_nn::ops::leaky_relu;

use super::batch::{Edges, SetBatch};
use super::e_ggat_plus_shape::{BLOCKS, EDGE, EMBEDDING_WIDTH, GPU_EMBEDDING_WIDTH, HEADS, OF_BASE, STRETCH};
use super::feature_encoder::FeatureEncoder;
use super::inference::EGgatPlusRows;
use super::layers::{AttentionHead, Gate, Mode, SLOPE, rows};
use super::network::{BaseModel, Network, NetworkOutput, TrainingOptions};
use super::row_network::RowNetwork;
use super::scales::Scaling;
use super::usage_heads::UsageHeads;
use crate::networks::{Affine, Parameters};

/// The network.
#[derive(Debug)]
pub(super) struct EGgatPlus {
    identities: EmbeddingTables,
    entry: Affine,
    blocks: Vec<Block>,
    gate: Gate,
    sensitivity: Affine,
    pressure: Affine,
    hidden: Affine,
    answer: Affine,
    /// `None` if no row of the training data has memory or utilization.
    usage: Option<UsageHeads>,
}

/// The embeddings of known configurations, models and GPUs.
#[derive(Debug)]
struct EmbeddingTables {
    configurations: Tensor,
    models: Tensor,
    gpus: Tensor,
}

/// A block of attention heads.
#[derive(Debug)]
struct Block {
    heads: Vec<AttentionHead>,
    /// The contribution of an edge to the message.
    edge: Affine,
    together: Affine,
}

/// Initial standard deviation of the embeddings.
const INITIAL_DEVIATION: f64 = 0.3;

impl Network for EGgatPlus {
    const NAME: &'static str = "e-ggat-plus";
    const TRAINING_OPTIONS: TrainingOptions = TrainingOptions {
        ensemble: 3,
        width: 24,
        epochs: 120,
        patience: 40,
        batch: 64,
        learning_rate: 4e-3,
        final_rate_part: 0.02,
        weight_decay: 0.02,
        max_gradient_norm: 1.0,
    };
    const SCALING: Scaling = Scaling::Standard;
    const BASE_MODEL: BaseModel = BaseModel::Process;
    const EDGES: Edges = Edges::OfLargerSets;

    fn new(parameters: &mut Parameters, encoder: &FeatureEncoder, width: usize) -> Result<EGgatPlus> {
        let identities = EmbeddingTables::new(parameters, encoder)?;
        let from = encoder.width() + 2 * EMBEDDING_WIDTH + GPU_EMBEDDING_WIDTH + OF_BASE;
        let block = |at: usize| Block::new(parameters, &format!("block{at}"), width);
        let blocks = (1..=BLOCKS).map(block).collect::<Result<_>>()?;
        Ok(EGgatPlus {
            identities,
            entry: Affine::new(parameters, "entry", from, width)?,
            blocks,
            gate: Gate::new(parameters, "gate", width)?,
            sensitivity: Affine::at_zero(parameters, "sensitivity", width, 1)?,
            pressure: Affine::at_zero(parameters, "pressure", width, 1)?,
            hidden: Affine::new(parameters, "hidden", 2 * width, width)?,
            answer: Affine::at_zero(parameters, "answer", width, 1)?,
            usage: UsageHeads::new(parameters, &encoder.usage, 2 * width)?,
        })
    }

    fn forward(&self, batch: &SetBatch, mode: &mut Mode<'_>) -> Result<NetworkOutput> {
        let base = (Tensor::cat(&[&batch.base, &batch.base_uncertainty], 1)? * STRETCH)?;
        let inputs = Tensor::cat(&[&batch.numbers, &self.identities.embed(batch, mode)?, &base], 1)?;
        let own = self.entry.forward(&inputs)?.gelu()?;
        let mut members = own.clone();
        for block in &self.blocks {
            let output = block.forward(&members, batch)?;
            members = self.gate.forward(&output, &members)?;
        }
        let all = Tensor::cat(&[&members, &own], 1)?;
        let deep = self.hidden.forward(&all)?.gelu()?;
        let pressure = self.pressure.forward(&own)?.reshape((batch.sets, batch.count, 1))?;
        let pressure = batch.partner_mask.matmul(&pressure)?.flatten(0, 1)?;
        let error = ((self.answer.forward(&deep)? + self.sensitivity.forward(&own)?)? + pressure)?;
        let usage = self.usage.as_ref().map(|heads| heads.forward(&all)).transpose()?;
        Ok(NetworkOutput { ln_slowdown: (error + &batch.base)?, usage })
    }

    fn rows(
        parameters: &Parameters,
        encoder: &FeatureEncoder,
        width: usize,
    ) -> Result<Option<Box<dyn RowNetwork>>> {
        Ok(Some(Box::new(EGgatPlusRows::of(parameters, encoder, width)?)))
    }
}

impl EmbeddingTables {
    fn new(parameters: &mut Parameters, encoder: &FeatureEncoder) -> Result<EmbeddingTables> {
        let [configurations, models, gpus] = encoder.sizes();
        let mut table = |name: &str, rows, width| parameters.normal(name, (rows, width), INITIAL_DEVIATION);
        Ok(EmbeddingTables {
            configurations: table("configurations", configurations, EMBEDDING_WIDTH)?,
            models: table("models", models, EMBEDDING_WIDTH)?,
            gpus: table("gpus", gpus, GPU_EMBEDDING_WIDTH)?,
        })
    }

    /// The embeddings of all rows, `[rows, numbers]`.
    fn embed(&self, batch: &SetBatch, mode: &mut Mode<'_>) -> Result<Tensor> {
        let [configurations, models, gpus] = batch.shown(mode.random())?;
        let configurations = rows(&self.configurations, &configurations)?;
        Tensor::cat(&[configurations, rows(&self.models, &models)?, rows(&self.gpus, &gpus)?], 1)
    }
}

impl Block {
    fn new(parameters: &mut Parameters, name: &str, width: usize) -> Result<Block> {
        let head = |at: usize| AttentionHead::new(parameters, &format!("{name}.head{at}"), width, width);
        let heads = (1..=HEADS).map(head).collect::<Result<_>>()?;
        let edge = Affine::without_bias(parameters, &format!("{name}.edge"), EDGE, width)?;
        let attended_members = (HEADS + 2) * width;
        Ok(Block {
            heads,
            edge,
            together: Affine::new(parameters, &format!("{name}.together"), attended_members, width)?,
        })
    }

    fn forward(&self, members: &Tensor, batch: &SetBatch) -> Result<Tensor> {
        let SetBatch { sets, count, partner_mask, .. } = batch;
        let to_self = Tensor::eye(*count, partner_mask.dtype(), partner_mask.device())?;
        let reached = partner_mask.broadcast_add(&to_self)?;
        let edges = Tensor::stack(&[batch.edges.log()?, batch.edges_known.clone()], 3)?;
        // Edges enter once, summed over all partners; the heads weigh members.
        let inputs =
            edges.broadcast_mul(&partner_mask.unsqueeze(3)?)?.sum(2)?.reshape((sets * count, EDGE))?;
        let mut attended_members = vec![members.clone()];
        for head in &self.heads {
            attended_members.push(head.forward(members, &batch.edges, &reached)?.attended_mean()?);
        }
        let crowd = members.reshape((*sets, *count, ()))?;
        attended_members.push((partner_mask.matmul(&crowd)?.flatten(0, 1)? + self.edge.forward(&inputs)?)?);
        leaky_relu(&self.together.forward(&Tensor::cat(&attended_members, 1)?)?, SLOPE)
    }
}
