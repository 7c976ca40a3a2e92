//! What ranks print, report and read: it stays with their workers, to which the head passes each question.

use std::sync::Arc;

use cohabit_actor::{AskError, ReplyTo};
use cohabit_types::{
    ExecId, ExecOutput, ExecRead, ExecRequest, INPUT_PIECE, InputPiece, JobRecord, LogChunk, LogRequest,
    MetricSeries, RankId, Refusal, RefusalCode, Role, counted,
};

use super::client::{ClientSession, ending};
use crate::driver::{Message, WorkerLookup, WorkerRoute, WorkerSessionMessage};

/// What is done with logs and metrics.
const READING: &str = "read its logs";
/// What is done with further processes.
const STARTING: &str = "run processes beside it";

impl ClientSession {
    pub(super) async fn find_log(&self, request: LogRequest) -> Result<LogChunk, Refusal> {
        let route = self.route_to_worker_of(request.rank, READING).await?;
        let read = |reply_to| WorkerSessionMessage::ReadLog(request, reply_to);
        ask_worker(&route, request.rank, "log", read).await
    }

    pub(super) async fn find_metrics(&self, rank: RankId) -> Result<MetricSeries, Refusal> {
        let route = self.route_to_worker_of(rank, READING).await?;
        // A series is large and, unlike a log, comes at once: a user holds few of them in the head.
        let _permit = self.query_permit().await;
        let read = |reply_to| WorkerSessionMessage::ReadMetrics(rank, reply_to);
        let series = ask_worker(&route, rank, "metrics", read).await?;
        self.pace_answer(series.rows.len() * series.names.len().max(1) * size_of::<f64>()).await;
        Ok(series)
    }

    /// Passes a piece of the input of a rank to its worker.
    pub(super) async fn pass_input(&self, piece: InputPiece) -> Result<u64, Refusal> {
        if piece.bytes.len() > INPUT_PIECE {
            let message =
                format!("a piece of an input has at most {INPUT_PIECE} bytes, not {}", piece.bytes.len());
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        let rank = piece.rank;
        let route = self.route_to_worker_of(rank, "send it input").await?;
        let _permit = self.query_permit().await;
        self.pace_answer(piece.bytes.len()).await;
        ask_worker(&route, rank, "input", |reply_to| WorkerSessionMessage::WriteInput(piece, reply_to)).await
    }

    /// Lets the worker of a rank start a further process beside it.
    pub(super) async fn pass_exec(&self, request: Box<ExecRequest>) -> Result<(), Refusal> {
        request.check().map_err(|why| Refusal::new(RefusalCode::Invalid, why))?;
        let rank = request.id.rank;
        let route = self.route_to_worker_of(rank, STARTING).await?;
        let _permit = self.query_permit().await;
        ask_worker(&route, rank, "processes", |reply_to| WorkerSessionMessage::StartExec(request, reply_to))
            .await
    }

    /// A long poll, as that of a log.
    pub(super) async fn find_exec_output(&self, read: ExecRead) -> Result<ExecOutput, Refusal> {
        let route = self.route_to_worker_of(read.id.rank, STARTING).await?;
        let ask = |reply_to| WorkerSessionMessage::ReadExec(read, reply_to);
        ask_worker(&route, read.id.rank, "processes", ask).await
    }

    pub(super) async fn pass_exec_end(&self, id: ExecId) -> Result<(), Refusal> {
        let route = self.route_to_worker_of(id.rank, STARTING).await?;
        ask_worker(&route, id.rank, "processes", |reply_to| WorkerSessionMessage::EndExec(id, reply_to)).await
    }

    /// The worker on which a rank runs, or ran, if the client may do this with it.
    pub(super) async fn route_to_worker_of(&self, rank: RankId, what: &str) -> Result<WorkerRoute, Refusal> {
        let record = self.own_record(rank, what).await?;
        match self.find(WorkerLookup::Rank(rank)).await? {
            Some(found) => Ok(found),
            None => self.find_by_record(&record, rank).await,
        }
    }

    /// Asks the worker of a rank, as [`ask_worker`] does. It is remembered, and looked for again the next
    /// time if it is away.
    pub(super) async fn ask_by_route<T: Send + 'static>(
        &self,
        rank: RankId,
        action: &str,
        what: &str,
        question: impl FnOnce(ReplyTo<Result<T, Refusal>>) -> WorkerSessionMessage,
    ) -> Result<T, Refusal> {
        let route = match self.routes.find(rank) {
            Some(route) => route,
            None => {
                let route = Arc::new(self.route_to_worker_of(rank, action).await?);
                self.routes.remember(rank, Arc::clone(&route));
                route
            }
        };
        let answer = ask_worker(&route, rank, what, question).await;
        if answer.as_ref().is_err_and(|refusal| refusal.code == RefusalCode::Unavailable) {
            self.routes.forget(rank);
        }
        answer
    }

    /// The job's record, if the job is the client's own, or the client an admin.
    pub(super) async fn own_record(&self, rank: RankId, what: &str) -> Result<JobRecord, Refusal> {
        let job = rank.attempt.job;
        let record = self.record(job).await?;
        if self.by.role == Role::Admin || self.by.user == record.user {
            return Ok(record);
        }
        let message = format!("job {job} belongs to {}: only its owner and admins may {what}", record.user);
        Err(Refusal::new(RefusalCode::NotAllowed, message))
    }

    /// The node of a rank that is in the history only.
    async fn find_by_record(&self, record: &JobRecord, id: RankId) -> Result<WorkerRoute, Refusal> {
        let attempt = record.attempts.iter().find(|attempt| attempt.attempt == id.attempt.attempt);
        let rank = attempt.and_then(|attempt| attempt.ranks.get(id.rank as usize));
        let none = || {
            let message = match attempt {
                Some(attempt) => {
                    let ranks = counted(attempt.ranks.len() as u64, "rank", "ranks");
                    format!("job {} has no rank {}: it has {ranks}, from 0 on", record.id, id.rank)
                }
                None => {
                    let attempts = counted(record.attempt, "attempt", "attempts");
                    format!("job {} has no attempt {}: it had {attempts}", record.id, id.attempt.attempt)
                }
            };
            Refusal::new(RefusalCode::NotFound, message)
        };
        let node = rank.ok_or_else(none)?.node.clone();
        let found = self.find(WorkerLookup::Node(node.clone())).await?;
        Ok(found.unwrap_or(WorkerRoute { node, session: None }))
    }

    async fn find(&self, whose: WorkerLookup) -> Result<Option<WorkerRoute>, Refusal> {
        self.session_context
            .driver
            .ask(|reply_to| Message::Find(whose, reply_to))
            .await
            .map_err(|error| ending(&error))
    }
}

/// Asks the worker of a rank about this.
pub(super) async fn ask_worker<T: Send + 'static>(
    route: &WorkerRoute,
    rank: RankId,
    what: &str,
    question: impl FnOnce(ReplyTo<Result<T, Refusal>>) -> WorkerSessionMessage,
) -> Result<T, Refusal> {
    let away = || {
        let node = &route.node;
        let message = format!(
            "node {node}, which keeps the {what} of {rank}, is not connected: try again when it is back"
        );
        Refusal::new(RefusalCode::Unavailable, message)
    };
    let session = route.session.as_ref().ok_or_else(away)?;
    session.ask(question).await.map_err(|_: AskError| away())?
}
