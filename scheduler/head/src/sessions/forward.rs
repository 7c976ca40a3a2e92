//! Connections to ports of jobs: the head passes the bytes of each to its worker and back.
//!
//! Bytes pass as fast as client and worker take them. What one user gets of the head is bounded by the pieces
//! that are fetched or passed at once, whatever the number of connections: each is a millisecond of work,
//! behind which others wait no longer than that.

use cohabit_actor::ReplyTo;
use cohabit_types::{
    FORWARD_PIECE, FollowMode, ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest, RankId,
    Refusal, RefusalCode,
};

use super::client::ClientSession;
use super::forward_limits::MOST_ARRIVED;
use crate::driver::WorkerSessionMessage;

/// What is done with the ports of a job.
const CONNECTING: &str = "connect to its ports";

impl ClientSession {
    pub(super) async fn pass_forward(&self, request: ForwardRequest) -> Result<(), Refusal> {
        let ask = |reply_to| WorkerSessionMessage::OpenForward(request, reply_to);
        self.ask_for_forward(request.id.rank, ask).await
    }

    /// A long poll, which takes a turn of its user only for bytes that are there. What arrives at its end is
    /// short.
    pub(super) async fn find_forward_output(&self, read: ForwardRead) -> Result<ForwardOutput, Refusal> {
        let ask = |read: ForwardRead| {
            let ask = move |reply_to| WorkerSessionMessage::ReadForward(read, reply_to);
            self.ask_for_forward(read.id.rank, ask)
        };
        let turn = self.session_context.forwards.passed.permit(&self.by.user).await;
        let output = ask(ForwardRead { at_end: FollowMode::Return, ..read }).await?;
        drop(turn);
        match read.at_end {
            FollowMode::Wait if output.bytes.is_empty() && !output.is_last => ask(read).await,
            FollowMode::Wait | FollowMode::Return => Ok(output),
        }
    }

    /// A piece without bytes waits for the server, so it takes no turn.
    pub(super) async fn pass_forward_piece(&self, piece: ForwardPiece) -> Result<u64, Refusal> {
        let length = piece.bytes.len();
        if length > FORWARD_PIECE {
            let message = format!("a piece of a connection has at most {FORWARD_PIECE} bytes, not {length}");
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        let (rank, limits) = (piece.id.rank, &self.session_context.forwards);
        let ask = |reply_to| WorkerSessionMessage::WriteForward(piece, reply_to);
        if length == 0 {
            return self.ask_for_forward(rank, ask).await;
        }
        let kib = u32::try_from(length.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        let _arrived = limits.arrived.try_permits(&self.by.user, kib).ok_or_else(|| {
            let message =
                format!("{} MiB of your connections wait in the head: try again", MOST_ARRIVED >> 10);
            Refusal::new(RefusalCode::Unavailable, message)
        })?;
        let _turn = limits.passed.permit(&self.by.user).await;
        self.ask_for_forward(rank, ask).await
    }

    pub(super) async fn pass_forward_end(&self, id: ForwardId) -> Result<(), Refusal> {
        let ask = |reply_to| WorkerSessionMessage::CloseForward(id, reply_to);
        self.ask_for_forward(id.rank, ask).await
    }

    async fn ask_for_forward<T: Send + 'static>(
        &self,
        rank: RankId,
        question: impl FnOnce(ReplyTo<Result<T, Refusal>>) -> WorkerSessionMessage,
    ) -> Result<T, Refusal> {
        self.ask_by_route(rank, CONNECTING, "connections", question).await
    }
}
