//! What a trained network in plain Rust does, and what each network says of a member.

use super::inference::RowBatch;

/// A trained network in plain Rust.
pub(super) trait RowNetwork: std::fmt::Debug + Send + Sync {
    /// The outputs for each row of a batch.
    fn predict(&self, batch: &RowBatch) -> Vec<MemberOutput>;
}

/// The outputs of a network for a member.
#[derive(Debug, Clone)]
pub(super) struct MemberOutput {
    /// The logarithm of the slowdown, at least 0.
    pub(super) ln_slowdown: f64,
    /// What the member uses; empty for networks that do not predict it.
    pub(super) usage: Vec<f64>,
}
