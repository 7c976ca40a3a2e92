//! The shape of E-GGAT-plus, which the trained network and the one in plain Rust share.

/// Widths of the embeddings of configurations and models, and of GPUs.
pub(super) const EMBEDDING_WIDTH: usize = 12;
pub(super) const GPU_EMBEDDING_WIDTH: usize = 4;
pub(super) const HEADS: usize = 3;
pub(super) const BLOCKS: usize = 2;
/// Inputs of an edge: the logarithm of the slowdown, and whether it is known.
pub(super) const EDGE: usize = 2;
/// Inputs from the base model.
pub(super) const OF_BASE: usize = 2;
/// Scales the inputs from the base model to the spread of the others.
pub(super) const STRETCH: f64 = 4.0;
