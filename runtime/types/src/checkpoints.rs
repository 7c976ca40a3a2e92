//! The checkpoints of a job on their way from the node of one attempt to that of the next.

use serde::{Deserialize, Serialize};

use crate::{AttemptId, Bytes, JobId};

/// The most bytes in a [`CheckpointPiece`].
pub const CHECKPOINT_PIECE_BYTES: usize = 1 << 20;

/// Where the latest attempt of a job that ran has left its checkpoints: on another node than its next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointSource {
    /// That attempt.
    pub attempt: u32,
    /// The name of the node.
    pub node: String,
}

/// What a worker wants to read of the checkpoints for an attempt that it is to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRequest {
    /// The attempt that is to start.
    pub attempt: AttemptId,
    /// The number of the worker's node in it.
    pub node_rank: u32,
    /// How many bytes of the archive the worker has.
    pub offset: u64,
}

/// What the head wants to read of the checkpoints that a worker keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointQuery {
    /// The job.
    pub job: JobId,
    /// The number that the worker's node had in the attempt that wrote them.
    pub node_rank: u32,
    /// How many bytes of the archive are known; none begins a new archive.
    pub offset: u64,
    /// An archive that is larger is not made.
    pub limit: Bytes,
}

/// A piece of an archive of checkpoints, in the format of `tar`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointPiece {
    /// How many bytes the archive has; 0 where there are no checkpoints.
    pub size: u64,
    /// How many of them come before this piece.
    pub offset: u64,
    /// Whether an attempt among those that wrote it began without the checkpoints of the one before it, so
    /// that older checkpoints elsewhere may be worth more.
    pub lacks_earlier: bool,
    /// At most [`CHECKPOINT_PIECE_BYTES`].
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// What the next attempt of a job has found of the checkpoints that were on another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckpointResult {
    /// They were carried over: this many bytes.
    Carried(Bytes),
    /// It begins without them, for this reason.
    Missing(String),
}

impl CheckpointSource {
    /// A sentence for people, without its end: what came of these checkpoints for the attempt on `node`.
    #[must_use]
    pub fn describe(&self, result: &CheckpointResult, attempt: u32, node: &str) -> String {
        let (from, of) = (&self.node, self.attempt);
        match result {
            CheckpointResult::Carried(bytes) => {
                format!("the checkpoints of attempt {of} ({bytes}) were carried from node {from} to {node}")
            }
            CheckpointResult::Missing(why) => format!(
                "attempt {attempt} on node {node} starts without the checkpoints of attempt {of}, which are on node \
                 {from}: {why}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_checkpoints_is_a_sentence() {
        let source = CheckpointSource { attempt: 1, node: "gpu1".into() };
        let carried = source.describe(&CheckpointResult::Carried(Bytes(3 << 20)), 2, "gpu2");
        assert_eq!(carried, "the checkpoints of attempt 1 (3 MiB) were carried from node gpu1 to gpu2");
        let missing = CheckpointResult::Missing("node gpu1 is not connected".into());
        assert_eq!(
            source.describe(&missing, 2, "gpu2"),
            "attempt 2 on node gpu2 starts without the checkpoints of attempt 1, which are on node gpu1: node gpu1 is \
             not connected"
        );
    }
}
