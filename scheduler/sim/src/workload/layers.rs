//! The cost of a layer of a network, from the shapes of its tensors.
//!
//! A multiplication with its addition counts as two operations. Biases and normalisation are left out, except
//! in transformer blocks, where they are a known multiple of the width.

use std::iter::Sum;
use std::ops::Add;

/// A layer, or several in a row.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Layer {
    /// Operations of the forward pass for one sample.
    pub(super) forward: f64,
    /// Trainable parameters.
    pub(super) parameters: f64,
    /// Numbers that one sample passes to the next layer.
    pub(super) output: f64,
}

/// A convolution with a square kernel and output maps of `side` x `side`: each of the `side`^2 x `to` results
/// sums `kernel`^2 x `from` products.
pub(super) const fn convolution(from: u64, to: u64, kernel: u64, side: u64) -> Layer {
    let weights = (kernel * kernel * from * to) as f64;
    let places = (side * side) as f64;
    Layer { forward: 2.0 * weights * places, parameters: weights, output: places * to as f64 }
}

/// A fully connected layer.
pub(super) const fn dense(from: u64, to: u64) -> Layer {
    let weights = (from * to) as f64;
    Layer { forward: 2.0 * weights, parameters: weights, output: to as f64 }
}

/// An embedding table with a row for each word and each position; a lookup costs nothing.
pub(super) const fn embedding(words: u64, positions: u64, width: u64, tokens: u64) -> Layer {
    let parameters = ((words + positions) * width) as f64;
    Layer { forward: 0.0, parameters, output: (tokens * width) as f64 }
}

/// Attention and a feed-forward network four times as wide: 12 x `width`^2 weights, 13 x `width` biases and
/// scales. Each token meets each weight once; the attention scores and their use cost 2 x `tokens`^2 x
/// `width` each.
pub(super) const fn transformer_block(width: u64, tokens: u64) -> Layer {
    let (w, t) = (width as f64, tokens as f64);
    let weights = 12.0 * w * w;
    Layer { forward: 2.0 * weights * t + 4.0 * t * t * w, parameters: weights + 13.0 * w, output: t * w }
}

/// The output layer of a language model that shares its weights with the embedding, so it has no parameters.
pub(super) const fn tied_head(words: u64, width: u64, tokens: u64) -> Layer {
    let results = (tokens * words) as f64;
    Layer { forward: 2.0 * width as f64 * results, parameters: 0.0, output: results }
}

impl Layer {
    /// The same layer with its maps pooled to `side` x `side`.
    pub(super) const fn pooled(self, channels: u64, side: u64) -> Layer {
        Layer { output: (channels * side * side) as f64, ..self }
    }
}

/// One layer after the other.
impl Add for Layer {
    type Output = Layer;
    fn add(self, next: Layer) -> Layer {
        Layer {
            forward: self.forward + next.forward,
            parameters: self.parameters + next.parameters,
            output: next.output,
        }
    }
}

impl Sum for Layer {
    fn sum<I: Iterator<Item = Layer>>(layers: I) -> Layer {
        layers.reduce(Layer::add).unwrap_or_default()
    }
}
