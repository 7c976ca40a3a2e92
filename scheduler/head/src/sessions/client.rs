//! A client's session: its requests, its questions, and the logs it wants to read.
//!
//! A request goes on when its client hangs up: whoever asks again with the same idempotency key hears what
//! became of it. What a client may do is the core's rule, by the name and role of its token.

use cohabit_actor::AskError;
use cohabit_net::{ClientService, Context};
use cohabit_types::{
    Answer, JobRecord, JobRevision, LogChunk, LogRequest, ModelRequest, Models, Principal, Query, Refusal,
    RefusalCode, Reply, Request, Role, TokenAnswer, TokenRequest,
};
use tokio::time::{Instant, timeout_at};

use super::{SessionContext, admit, tokens};
use crate::driver::{Message, WorkerLookup, WorkerRoute, WorkerSessionMessage};

/// The most records in one answer to a watcher, which has to fit a message; the others come with the next.
const MOST_CHANGES: usize = 1_000;

/// One client.
#[derive(Clone)]
pub(super) struct ClientSession {
    pub(super) by: Principal,
    pub(super) session_context: SessionContext,
}

impl ClientSession {
    pub(super) fn new(by: Principal, session_context: SessionContext) -> ClientSession {
        ClientSession { by, session_context }
    }

    /// Waits until one of the jobs is no longer as the client knows it, or the limit comes.
    async fn watch(&self, watched: Vec<JobRevision>) -> Result<Answer, Refusal> {
        let limit = Instant::now() + self.session_context.watch_limit;
        // Before the first look: no change falls between the two.
        let watch = self.session_context.watchers.watch(watched.iter().map(|it| it.job).collect());
        loop {
            let mut answer = self.look_up(Query::Watch(watched.clone())).await?;
            if let Answer::Jobs(jobs) = &mut answer {
                jobs.truncate(MOST_CHANGES);
            }
            let unchanged = matches!(&answer, Answer::Jobs(jobs) if jobs.is_empty());
            if !unchanged || timeout_at(limit, watch.changed()).await.is_err() {
                return Ok(answer);
            }
        }
    }

    async fn find_log(&self, request: LogRequest) -> Result<LogChunk, Refusal> {
        let record = self.readable(&request).await?;
        let found = self.find(WorkerLookup::Rank(request.rank)).await?;
        let found = match found {
            Some(found) => found,
            None => self.find_by_record(&record, &request).await?,
        };
        let away = || {
            let message = format!(
                "node {}, which keeps the log of {}, is not connected: try again when it is back",
                found.node, request.rank
            );
            Refusal::new(RefusalCode::Unavailable, message)
        };
        let session = found.session.as_ref().ok_or_else(away)?;
        session.ask(|reply_to| WorkerSessionMessage::ReadLog(request, reply_to)).await.map_err(|_| away())?
    }

    /// The job's record, if the client may read its logs.
    async fn readable(&self, request: &LogRequest) -> Result<JobRecord, Refusal> {
        let job = request.rank.attempt.job;
        let record = self.record(job).await?;
        if self.by.role == Role::Admin || self.by.user == record.user {
            return Ok(record);
        }
        let message =
            format!("job {job} belongs to {}: only its owner and admins may read its logs", record.user);
        Err(Refusal::new(RefusalCode::NotAllowed, message))
    }

    /// The node of a rank that only the history knows.
    async fn find_by_record(&self, record: &JobRecord, request: &LogRequest) -> Result<WorkerRoute, Refusal> {
        let id = request.rank;
        let attempt = record.attempts.iter().find(|attempt| attempt.attempt == id.attempt.attempt);
        let rank = attempt.and_then(|attempt| attempt.ranks.get(id.rank as usize));
        let none = || {
            let message = format!("job {} has no rank {id}: it had {} attempt(s)", record.id, record.attempt);
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

impl ClientService for ClientSession {
    async fn request(self, _: Context, request: Request) -> Result<Reply, Refusal> {
        admit::request(&request)?;
        let (driver, by) = (self.session_context.driver.clone(), self.by);
        // In a task of its own: it goes on when the client hangs up.
        let asked =
            tokio::spawn(
                async move { driver.ask(|reply_to| Message::Request { by, request, reply_to }).await },
            );
        let replied = asked.await.map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))?;
        replied.map_err(|error| ending(&error))
    }

    async fn query(self, _: Context, query: Query) -> Result<Answer, Refusal> {
        match query {
            Query::Watch(watched) => self.watch(watched).await,
            Query::Consider(spec) => {
                admit::job(&spec)?;
                self.look_up(Query::Consider(spec)).await
            }
            Query::Resolve(_) | Query::List(_) | Query::Show(_) | Query::Explain(_) | Query::Nodes => {
                self.look_up(query).await
            }
        }
    }

    async fn read_log(self, _: Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        self.find_log(request).await
    }

    async fn token(self, _: Context, request: TokenRequest) -> Result<TokenAnswer, Refusal> {
        tokens::answer(&self.by, self.session_context.tokens, request).await
    }

    async fn models(self, _: Context, request: ModelRequest) -> Result<Models, Refusal> {
        let by = self.by;
        let asked = self.session_context.driver.ask(|reply_to| Message::Models { by, request, reply_to });
        asked.await.map_err(|error| ending(&error))?
    }

    async fn ping(self, _: Context) {}
}

/// The driver has no answer.
pub(super) fn ending(error: &AskError) -> Refusal {
    let message = format!("the head is ending ({error}): try again when it is back");
    Refusal::new(RefusalCode::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cohabit_actor::mailbox;
    use cohabit_net::{HeadIdentity, TokenStore, context_for};
    use cohabit_types::Span;
    use futures::FutureExt;

    use super::*;
    use crate::history::HistoryReader;
    use crate::test_kit::{ada, submit};
    use crate::watchers::Watchers;

    #[tokio::test]
    async fn a_request_goes_on_when_its_client_hangs_up() {
        let folder = tempfile::tempdir().unwrap();
        let identity = HeadIdentity::open_or_create(&folder.path().join("tls")).unwrap();
        let tokens = TokenStore::open(&folder.path().join("tokens.json"), identity.fingerprint()).unwrap();
        let (driver, mut played) = mailbox(1);
        let session_context = SessionContext {
            driver,
            watchers: Watchers::default(),
            history: HistoryReader::new(&folder.path().join("journal.sqlite")),
            tokens,
            memory: Span::ZERO,
            watch_limit: Duration::ZERO,
            silence_limit: Duration::ZERO,
        };
        let request = Request::Submit(Box::new(submit()));
        let mut handling = Box::pin(
            ClientSession::new(ada(), session_context).request(context_for(Span::ZERO), request.clone()),
        );
        assert!(handling.as_mut().now_or_never().is_none());
        drop(handling);
        let Some(Message::Request { by, request: received, .. }) = played.receive().await else { panic!() };
        assert_eq!((by, received), (ada(), request));
    }
}
