//! The three services that travel over links: what clients ask of the head, and what head and worker tell
//! each other.
//!
//! Calls of one link are handled beside each other: whoever needs them in order sends the next when the one
//! before has come back. Refusals are part of the answers. A tarpc `ServerError` only ever means that the
//! other side broke a promise; its `kind` arrives wrong and is never looked at.

use cohabit_types::{
    Answer, LogChunk, LogRequest, ModelRequest, Models, Order, Query, Refusal, Reply, Report, Request,
    TokenAnswer, TokenRequest,
};

/// Client → head.
#[tarpc::service]
#[trait_variant::make(Send)]
pub trait ClientService {
    /// Changes something; comes back when that is durable.
    async fn request(request: Request) -> Result<Reply, Refusal>;
    /// Reads something; [`Query::Watch`] is a long poll.
    async fn query(query: Query) -> Result<Answer, Refusal>;
    /// A piece of a rank's output; a long poll at its end.
    async fn read_log(request: LogRequest) -> Result<LogChunk, Refusal>;
    /// Makes, lists and revokes tokens.
    async fn token(request: TokenRequest) -> Result<TokenAnswer, Refusal>;
    /// Lists the models of interference, once another is chosen if one is.
    async fn models(request: ModelRequest) -> Result<Models, Refusal>;
    /// Whether the head is there.
    async fn ping();
}

/// Worker → head.
#[tarpc::service]
#[trait_variant::make(Send)]
pub trait HeadService {
    /// What happened, in order; comes back when the head has taken it in.
    async fn report(reports: Vec<Report>);
    /// The worker is there.
    async fn heartbeat();
}

/// Head → worker.
#[tarpc::service]
#[trait_variant::make(Send)]
pub trait WorkerService {
    /// What to do, in order; comes back when the worker has taken it in.
    async fn order(orders: Vec<Order>);
    /// A piece of a rank's output; a long poll at its end.
    async fn read_log(request: LogRequest) -> Result<LogChunk, Refusal>;
}
