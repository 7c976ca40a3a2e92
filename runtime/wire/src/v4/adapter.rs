//! Serves clients, workers and heads of protocol 4 by today's services: each message becomes the call that
//! took its place.

use cohabit_types::{DrainRequest, JobRecord, LogChunk, LogRequest, Models, NewToken};
use tarpc::context::Context;

use super::jobs::JobEvent;
use super::messages::{Answer, ModelRequest, Query, Reply, Request, Submit, TokenAnswer, TokenRequest};
use super::refusal::Refusal;
use super::{ClientService, HeadService, Order, Report, WorkerService};

/// A service of protocol 5 that answers calls of protocol 4.
#[derive(Debug, Clone)]
pub struct ClientServiceAdapter<S>(pub S);

impl<S: crate::ClientService + Send + Sync> ClientService for ClientServiceAdapter<S> {
    async fn request(self, context: Context, request: Request) -> Result<Reply, Refusal> {
        let reply = match request {
            Request::Submit(submit) => {
                let Submit { spec, idempotency_key, .. } = *submit;
                let receipt = self.0.submit(context, Box::new(spec.into()), idempotency_key).await;
                receipt.map(|receipt| Reply::Accepted { job: receipt.job, members: receipt.members })
            }
            Request::Change(change, jobs) => {
                let changed = self.0.change_jobs(context, change.into(), jobs).await;
                changed.map(|changed| {
                    Reply::Changed(changed.into_iter().map(|(job, result)| (job, result.into())).collect())
                })
            }
            Request::Drain(node) => {
                self.0.drain_node(context, DrainRequest::new(node)).await.map(Reply::Node)
            }
            Request::Resume(node) => self.0.resume_node(context, node).await.map(Reply::Node),
        };
        reply.map_err(Refusal::from)
    }

    async fn query(self, context: Context, query: Query) -> Result<Answer, Refusal> {
        let answer = match query {
            Query::Resolve(references) => self.0.resolve(context, references).await.map(Answer::Resolved),
            Query::List(filter) => self.0.list(context, filter).await.map(|page| Answer::Listed(page.into())),
            Query::Show(jobs) => self.0.show(context, jobs).await.map(jobs_answer),
            Query::Explain(job) => {
                let explanation = self.0.explain(context, job).await;
                explanation.map(|it| Answer::Explained {
                    sentences: it.sentences,
                    story: it.history.into_iter().filter_map(JobEvent::of).collect(),
                })
            }
            Query::Consider(spec) => self
                .0
                .dry_run(context, Box::new((*spec).into()))
                .await
                .map(|it| Answer::Considered(Box::new((*it).into()))),
            Query::Nodes => {
                let nodes = self.0.nodes(context).await;
                nodes.map(|nodes| Answer::Nodes(nodes.into_iter().map(Into::into).collect()))
            }
            Query::Watch(known) => self.0.watch(context, known).await.map(jobs_answer),
        };
        answer.map_err(Refusal::from)
    }

    async fn read_log(self, context: Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        self.0.read_log(context, request).await.map_err(Refusal::from)
    }

    async fn token(self, context: Context, request: TokenRequest) -> Result<TokenAnswer, Refusal> {
        let answer = match request {
            TokenRequest::Create { name, role, account, expires_in } => {
                let token = NewToken { name, role: role.into(), account, node: None, expires_in };
                self.0.create_token(context, token).await.map(|issued| TokenAnswer::Created(issued.text))
            }
            TokenRequest::List => {
                let tokens = self.0.list_tokens(context).await;
                tokens.map(|tokens| TokenAnswer::Listed(tokens.into_iter().map(Into::into).collect()))
            }
            TokenRequest::Revoke(name) => {
                self.0.revoke_token(context, name).await.map(|()| TokenAnswer::Revoked)
            }
        };
        answer.map_err(Refusal::from)
    }

    async fn models(self, context: Context, request: ModelRequest) -> Result<Models, Refusal> {
        let models = match request {
            ModelRequest::List => self.0.list_models(context).await,
            ModelRequest::Use(choice) => self.0.choose_model(context, choice).await,
        };
        models.map_err(Refusal::from)
    }

    async fn ping(self, context: Context) {
        self.0.ping(context).await;
    }
}

fn jobs_answer(jobs: Vec<JobRecord>) -> Answer {
    Answer::Jobs(jobs.into_iter().map(Into::into).collect())
}

/// A head's service for workers of protocol 5 that takes reports of protocol 4.
#[derive(Debug, Clone)]
pub struct HeadServiceAdapter<S>(pub S);

impl<S: crate::HeadService + Send> HeadService for HeadServiceAdapter<S> {
    async fn report(self, context: Context, reports: Vec<Report>) {
        self.0.report(context, reports.into_iter().map(Into::into).collect()).await;
    }

    async fn heartbeat(self, context: Context) {
        self.0.heartbeat(context).await;
    }
}

/// A worker's service of protocol 5 that takes orders of protocol 4.
#[derive(Debug, Clone)]
pub struct WorkerServiceAdapter<S>(pub S);

impl<S: crate::WorkerService + Send> WorkerService for WorkerServiceAdapter<S> {
    async fn order(self, context: Context, orders: Vec<Order>) {
        self.0.order(context, orders.into_iter().map(Into::into).collect()).await;
    }

    async fn read_log(self, context: Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        self.0.read_log(context, request).await.map_err(Refusal::from)
    }
}
