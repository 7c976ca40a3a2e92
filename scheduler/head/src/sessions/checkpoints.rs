//! Checkpoints that a worker needs for an attempt and another worker keeps. They pass through the head, piece
//! by piece: workers reach the head alone.

use cohabit_types::{
    Bytes, CHECKPOINT_PIECE_BYTES, CheckpointPiece, CheckpointQuery, CheckpointRequest, NodeId, Refusal,
    RefusalCode,
};

use super::client::ending;
use super::context::SessionContext;
use crate::driver::{Message, Query, WorkerSessionMessage};

/// A piece of the checkpoints that the worker of this node asks for. It gets only those of an attempt that it
/// is to start.
pub(super) async fn read(
    context: &SessionContext,
    node: NodeId,
    request: CheckpointRequest,
) -> Result<CheckpointPiece, Refusal> {
    let CheckpointRequest { attempt, node_rank, offset } = request;
    let asked = context
        .driver
        .ask(|reply_to| Message::Query(Query::CheckpointsFor(node, attempt, node_rank, reply_to)));
    let found = asked.await.map_err(|error| ending(&error))?;
    let (_, keeper) = found.ok_or_else(|| {
        let message = format!("attempt {attempt} needs no checkpoints of another node");
        Refusal::new(RefusalCode::NotFound, message)
    })?;
    let limit = context.checkpoint_limit;
    if limit.0 == 0 {
        let message = "the head carries no checkpoints (checkpoint-limit 0)";
        return Err(Refusal::new(RefusalCode::Invalid, message));
    }
    let away = || {
        let message = format!("node {} is not connected", keeper.node);
        Refusal::new(RefusalCode::Unavailable, message)
    };
    let query = CheckpointQuery { job: attempt.job, node_rank, offset, limit };
    let session = keeper.session.as_ref().ok_or_else(away)?;
    let asked = session.ask(|reply_to| WorkerSessionMessage::ReadCheckpoints(query, reply_to));
    bounded(asked.await.map_err(|_| away())??, limit)
}

/// Root on one worker may offer anything, and must not fill the disk of another.
fn bounded(piece: CheckpointPiece, limit: Bytes) -> Result<CheckpointPiece, Refusal> {
    match piece.size <= limit.0 && piece.bytes.len() <= CHECKPOINT_PIECE_BYTES {
        true => Ok(piece),
        false => {
            let message = format!("the worker that keeps them offers more than {limit} (checkpoint-limit)");
            Err(Refusal::new(RefusalCode::Invalid, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_offers_more_than_is_carried_is_not_believed() {
        let piece = |size, bytes: usize| {
            let bytes = vec![0; bytes];
            bounded(CheckpointPiece { size, offset: 0, lacks_earlier: false, bytes }, Bytes(1 << 30))
        };
        assert!(piece(1 << 30, CHECKPOINT_PIECE_BYTES).is_ok());
        for (size, bytes) in [((1 << 30) + 1, 1), (u64::MAX, 1), (1 << 30, CHECKPOINT_PIECE_BYTES + 1)] {
            assert_eq!(piece(size, bytes).unwrap_err().code, RefusalCode::Invalid);
        }
    }
}
