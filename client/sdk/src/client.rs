//! The client: what can be asked of a head, one function for each.
//!
//! A client is cheap to clone; clones share one link. Changes and questions end here; what follows a job over
//! time is in `watch` and `logs`, and pages of jobs are in `list`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cohabit_net::{Context, HelloAccepted};
use cohabit_types::{
    Answer, ChangeResult, DryRun, JobChange, JobEvent, JobId, JobRecord, JobRef, ModelRequest, Models,
    NodeRecord, Query, Reply, Request, Submit, TokenAnswer, TokenRequest,
};

use crate::call::{long_poll_context, short_call_context};
use crate::link::{HeadConnection, HeadLink};
use crate::submission::{Submission, new_key};
use crate::{ConnectOptions, Error, JobHandle};

/// How many jobs go into one message, so that the answer fits a frame.
pub(crate) const PAGE: usize = 500;

/// A client of one head.
#[derive(Clone)]
pub struct Client {
    pub(crate) link: Arc<HeadLink>,
    pub(crate) retry_timeout: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client of {}", self.head())
    }
}

/// Why a job waits, or why it ended as it did.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// For people, with numbers.
    pub sentences: Vec<String>,
    /// Everything that happened to it.
    pub story: Vec<JobEvent>,
}

impl Client {
    /// How long calls bear a broken link unless told otherwise.
    pub const DEFAULT_RETRY_TIMEOUT: Duration = Duration::from_secs(30);

    /// Connects to the head. This first time is tried once, so that a wrong address is told at once.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if nothing answers there, [`Error::NotAllowed`] if the token is no good,
    /// [`Error::HeadLink`] if the two sides cannot talk.
    pub async fn connect(connect: ConnectOptions) -> Result<Client, Error> {
        let client = Client::disconnected(connect);
        client.link.connection().await?;
        Ok(client)
    }

    /// A client that connects with its first call, and bears with a head that is not there yet.
    #[must_use]
    pub fn disconnected(connect: ConnectOptions) -> Client {
        Client { link: Arc::new(HeadLink::new(connect.into())), retry_timeout: Client::DEFAULT_RETRY_TIMEOUT }
    }

    /// The same client, whose calls bear a broken link for this long before they fail with
    /// [`Error::Unreachable`].
    #[must_use]
    pub fn with_retry_timeout(self, retry_timeout: Duration) -> Client {
        Client { retry_timeout, ..self }
    }

    /// The head's address.
    #[must_use]
    pub fn head(&self) -> &str {
        self.link.head()
    }

    /// What the head said when it let this client in: its cluster and build, and who the token says we are.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    pub async fn welcome(&self) -> Result<HelloAccepted, Error> {
        self.call(|to| async move { Ok(Ok(HelloAccepted::clone(&to.welcome))) }).await
    }

    /// Submits a job. The same submission submitted again, after an error say, is the same job.
    ///
    /// # Errors
    /// [`Error::Refused`] if the head will not take it, for one because no node can ever meet its demand.
    pub async fn submit(&self, submission: &Submission) -> Result<JobHandle, Error> {
        let submit = Submit {
            spec: submission.spec().clone(),
            idempotency_key: Some(submission.key().to_owned()),
            estimate: None,
        };
        let reply = self.request(Request::Submit(Box::new(submit))).await?;
        let Reply::Accepted { job, .. } = reply else {
            return Err(Error::unexpected("a submission", &reply));
        };
        Ok(JobHandle::new(self.clone(), job))
    }

    /// A handle for a job that was submitted before. Whether there is such a job shows when it is used.
    #[must_use]
    pub fn job(&self, id: JobId) -> JobHandle {
        JobHandle::new(self.clone(), id)
    }

    /// Applies a change to jobs, and tells what became of it for each, in the order asked.
    ///
    /// Cancelling, holding and releasing are repeated when the link breaks, for they do no harm twice.
    /// Requeueing would start a job twice over, so it is asked once.
    ///
    /// # Errors
    /// [`Error::Unconfirmed`] if the link broke while a requeue was under way.
    pub async fn change(
        &self,
        change: JobChange,
        jobs: &[JobId],
    ) -> Result<Vec<(JobId, ChangeResult)>, Error> {
        let mut verdicts = Vec::with_capacity(jobs.len());
        for page in jobs.chunks(PAGE) {
            let reply = self.request(Request::Change(change, page.to_vec())).await?;
            let Reply::Changed(changed) = reply else { return Err(Error::unexpected("a change", &reply)) };
            verdicts.extend(changed);
        }
        Ok(verdicts)
    }

    /// Gives a node no new jobs; returns its name.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such node.
    pub async fn drain(&self, node: impl Into<String>) -> Result<String, Error> {
        self.change_node(Request::Drain(node.into())).await
    }

    /// Gives a drained node jobs again; returns its name.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such node.
    pub async fn resume(&self, node: impl Into<String>) -> Result<String, Error> {
        self.change_node(Request::Resume(node.into())).await
    }

    async fn change_node(&self, request: Request) -> Result<String, Error> {
        let reply = self.request(request).await?;
        let Reply::Node(name) = reply else { return Err(Error::unexpected("a change of a node", &reply)) };
        Ok(name)
    }

    /// Creates, lists or revokes tokens. Only listing is repeated when the link breaks: a secret is told
    /// once.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for all but admins; [`Error::Unconfirmed`] if the link broke meanwhile.
    pub async fn tokens(&self, request: TokenRequest) -> Result<TokenAnswer, Error> {
        let once = match &request {
            TokenRequest::List => None,
            TokenRequest::Create { .. } => Some("token create"),
            TokenRequest::Revoke(_) => Some("token revoke"),
        };
        let ask = |to: HeadConnection| {
            let request = request.clone();
            async move { to.service.token(short_call_context(), request).await }
        };
        match once {
            None => self.call(ask).await,
            Some(what) => self.call_once(what, ask).await,
        }
    }

    /// Lists the models of interference, once another is chosen if one is.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] where all but admins choose; [`Error::Refused`] if there is no such version.
    pub async fn models(&self, request: ModelRequest) -> Result<Models, Error> {
        self.call(|to: HeadConnection| {
            let request = request.clone();
            async move { to.service.models(short_call_context(), request).await }
        })
        .await
    }

    /// Which jobs these references mean, in their order.
    ///
    /// # Errors
    /// [`Error::Refused`] if one means none, or a name means several.
    pub async fn resolve(&self, references: &[JobRef]) -> Result<Vec<JobId>, Error> {
        let answer = self.query(Query::Resolve(references.to_vec())).await?;
        let Answer::Resolved(jobs) = answer else { return Err(Error::unexpected("a reference", &answer)) };
        Ok(jobs)
    }

    /// All about these jobs, in their order.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such job.
    pub async fn show(&self, jobs: &[JobId]) -> Result<Vec<JobRecord>, Error> {
        let mut records = Vec::with_capacity(jobs.len());
        for page in jobs.chunks(PAGE) {
            let answer = self.query(Query::Show(page.to_vec())).await?;
            let Answer::Jobs(shown) = answer else {
                return Err(Error::unexpected("a question for jobs", &answer));
            };
            records.extend(shown);
        }
        Ok(records)
    }

    /// Why a job waits, or why it ended as it did.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such job.
    pub async fn explain(&self, job: JobId) -> Result<Explanation, Error> {
        let answer = self.query(Query::Explain(job)).await?;
        let Answer::Explained { sentences, story } = answer else {
            return Err(Error::unexpected("a question for an explanation", &answer));
        };
        Ok(Explanation { sentences, story })
    }

    /// What would become of a job if it were submitted now: where it would go, beside whom, and when. Nothing
    /// is submitted.
    ///
    /// # Errors
    /// [`Error::Refused`] as for [`Client::submit`], or if the head's policy cannot say in time.
    pub async fn dry_run(&self, submission: &Submission) -> Result<DryRun, Error> {
        let answer = self.query(Query::Consider(Box::new(submission.spec().clone()))).await?;
        let Answer::Considered(consideration) = answer else {
            return Err(Error::unexpected("a question for a place", &answer));
        };
        Ok(*consideration)
    }

    /// All nodes.
    ///
    /// # Errors
    /// Trouble with the link.
    pub async fn nodes(&self) -> Result<Vec<NodeRecord>, Error> {
        let answer = self.query(Query::Nodes).await?;
        let Answer::Nodes(nodes) = answer else {
            return Err(Error::unexpected("a question for nodes", &answer));
        };
        Ok(nodes)
    }

    /// Asks for a change, as the protocol has it; the reply is never a refusal. A submission without a key
    /// gets one.
    ///
    /// # Errors
    /// [`Error::Refused`] or [`Error::NotAllowed`] if the head will not do it.
    pub async fn request(&self, request: Request) -> Result<Reply, Error> {
        let request = with_idempotency_key(request);
        let ask = |to: HeadConnection| {
            let request = request.clone();
            async move { to.service.request(short_call_context(), request).await }
        };
        let reply = match &request {
            Request::Change(JobChange::Requeue, _) => self.call_once("requeue", ask).await?,
            Request::Submit(_)
            | Request::Change(JobChange::Cancel | JobChange::Hold | JobChange::Release, _)
            | Request::Drain(_)
            | Request::Resume(_) => self.call(ask).await?,
        };
        if let Reply::Refused(refusal) = reply { Err(refusal.into()) } else { Ok(reply) }
    }

    /// Asks a question, as the protocol has it; the answer is never a refusal.
    ///
    /// # Errors
    /// [`Error::Refused`] or [`Error::NotAllowed`] if the head will not answer.
    pub async fn query(&self, query: Query) -> Result<Answer, Error> {
        let ask = |to: HeadConnection| {
            let (within, query) = (time_for(&query), query.clone());
            async move { to.service.query(within, query).await }
        };
        refusal_as_error(self.call(ask).await?)
    }
}

/// Only a watch is held back until there is news.
fn time_for(query: &Query) -> Context {
    match query {
        Query::Watch(_) => long_poll_context(),
        Query::Resolve(_)
        | Query::List(_)
        | Query::Show(_)
        | Query::Explain(_)
        | Query::Consider(_)
        | Query::Nodes => short_call_context(),
    }
}

/// Refusals are errors to the caller, by whichever way they come.
pub(crate) fn refusal_as_error(answer: Answer) -> Result<Answer, Error> {
    if let Answer::Refused(refusal) = answer { Err(refusal.into()) } else { Ok(answer) }
}

/// A submission that is repeated after a broken link must be known as the same.
fn with_idempotency_key(request: Request) -> Request {
    match request {
        Request::Submit(mut submit) => {
            submit.idempotency_key.get_or_insert_with(new_key);
            Request::Submit(submit)
        }
        request @ (Request::Change(..) | Request::Drain(_) | Request::Resume(_)) => request,
    }
}
