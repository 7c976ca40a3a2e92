//! Sets as rows of numbers, without padding.

use std::ops::Range;

use crate::interference::networks::batch::{Edges, NetworkInput, edges_of};
use crate::interference::networks::feature_encoder::{EmbeddingIndices, FeatureEncoder};

/// A batch of sets of two or more. Members are rows, set by set.
#[derive(Debug, Default)]
pub(in crate::interference::networks) struct RowBatch {
    /// The rows of each set.
    pub(super) sets: Vec<Range<usize>>,
    /// `[rows, numbers]`.
    pub(super) numbers: Vec<f32>,
    /// For each row.
    pub(super) identities: Vec<EmbeddingIndices>,
    /// The slowdown of each member beside each member of its set, 1 if unknown: for each set
    /// `[members, members]`.
    pub(super) edges: Vec<f32>,
    /// The sums of the logarithms of a member's edges, and how many are known, `[rows, 2]`.
    pub(super) edge_sums: Vec<f32>,
    /// Logarithm of the slowdown predicted by the base model, and its uncertainty, `[rows, 2]`.
    pub(super) base: Vec<f32>,
}

impl RowBatch {
    /// Encodes sets; networks of the given kind get these edges.
    pub(in crate::interference::networks) fn of(
        encoder: &FeatureEncoder,
        inputs_of_sets: &[NetworkInput<'_>],
        edges_shown: Edges,
    ) -> RowBatch {
        let mut batch = RowBatch::default();
        let mut columns = encoder.columns();
        for NetworkInput { set, base } in inputs_of_sets {
            let first = batch.identities.len();
            columns.numbers(set, |number| batch.numbers.push(number as f32));
            batch.identities.extend(encoder.identities(set));
            let shown = edges_of(encoder, set, edges_shown);
            batch.edges.extend(shown.iter().map(|edge| edge.unwrap_or(1.0) as f32));
            for (own, shown) in shown.chunks_exact(set.members.len()).enumerate() {
                let known = shown.iter().flatten();
                let (logarithms, known): (f64, f32) =
                    known.fold((0.0, 0.0), |(sum, count), edge| (sum + edge.ln(), count + 1.0));
                batch.edge_sums.extend([logarithms as f32, known]);
                let base = base.get(own).map_or([0.0; 2], |it| [it.slowdown.ln(), it.uncertainty]);
                batch.base.extend(base.map(|number| number as f32));
            }
            batch.sets.push(first..batch.identities.len());
        }
        batch
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.identities.len()
    }
}
