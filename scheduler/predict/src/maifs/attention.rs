//! Attention with several heads.

use candle_core::{D, Result, Tensor};
use candle_nn::ops::softmax;

use crate::networks::{Affine, Parameters};

/// Subtracted from the score of a masked key. An infinity would give NaN for a query without keys.
const MASKED_SCORE: f64 = 1e9;

/// Scaled dot-product attention; the heads' outputs are joined.
#[derive(Debug)]
pub(super) struct Attention {
    pub(super) heads: usize,
    pub(super) query: Affine,
    pub(super) key: Affine,
    pub(super) value: Affine,
}

/// The output of an attention.
#[derive(Debug)]
pub(super) struct Attended {
    /// The weight of each key for each query, `[N, heads, A, B]`.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the worked example"))]
    pub(super) weights: Tensor,
    /// The weighted values, `[N * A, width]`.
    pub(super) values: Tensor,
}

impl Attention {
    /// Queries, keys and values of this width, for all heads together.
    pub(super) fn new(
        parameters: &mut Parameters,
        name: &str,
        width: usize,
        heads: usize,
    ) -> Result<Attention> {
        let mut map = |what: &str| Affine::without_bias(parameters, &format!("{name}.{what}"), width, width);
        Ok(Attention { heads, query: map("query")?, key: map("key")?, value: map("value")? })
    }

    /// Queries `[N * A, width]` attend to keys `[N * B, width]` where the mask `[N, A, B]` is 1. A query
    /// without keys gets 0.
    pub(super) fn forward(&self, queries: &Tensor, keys: &Tensor, mask: &Tensor) -> Result<Attended> {
        let (count, asking, answering) = mask.dims3()?;
        let width = queries.dim(D::Minus1)? / self.heads;
        let split = |rows: Tensor, each: usize| {
            rows.reshape((count, each, self.heads, width))?.transpose(1, 2)?.contiguous()
        };
        let query = split(self.query.forward(queries)?, asking)?;
        let key = split(self.key.forward(keys)?, answering)?;
        let value = split(self.value.forward(keys)?, answering)?;
        let scores = (query.matmul(&key.t()?.contiguous()?)? / (width as f64).sqrt())?;
        let mask = mask.unsqueeze(1)?;
        let scores = scores.broadcast_add(&mask.affine(MASKED_SCORE, -MASKED_SCORE)?)?;
        let weights = softmax(&scores, D::Minus1)?.broadcast_mul(&mask)?;
        let values = weights.matmul(&value)?.transpose(1, 2)?.contiguous()?;
        Ok(Attended { weights, values: values.reshape((count * asking, self.heads * width))? })
    }
}
