//! Protocol 4, frozen: the services and the messages that only it has, and adapters to those of protocol 5.
//!
//! The frames and the answer to a hello are those of protocol 5; so are all message types that are not in
//! this module. `golden/v4.txt` holds their bytes as the last release of protocol 4 wrote them. When such a
//! type has to change, its earlier form moves here first, with a conversion. This module goes when a head no
//! longer serves protocol 4.

mod adapter;
pub mod demand;
pub mod device;
pub mod hello;
pub mod jobs;
pub mod messages;
pub mod node;
mod orders;
pub mod predictions;
pub mod principal;
pub mod refusal;
mod reports;

use cohabit_types::{LogChunk, LogRequest, Models};

pub use adapter::{ClientServiceAdapter, HeadServiceAdapter, WorkerServiceAdapter};
pub use orders::{JobSpec, Order, RunOrder};
pub use reports::Report;

use messages::{Answer, ModelRequest, Query, Reply, Request, TokenAnswer, TokenRequest};
use refusal::Refusal;

/// Client to head.
#[tarpc::service]
#[trait_variant::make(Send)]
pub trait ClientService {
    /// Changes something.
    async fn request(request: Request) -> Result<Reply, Refusal>;
    /// Reads something; [`Query::Watch`] is a long poll.
    async fn query(query: Query) -> Result<Answer, Refusal>;
    /// A piece of the output of a rank; a long poll at its end.
    async fn read_log(request: LogRequest) -> Result<LogChunk, Refusal>;
    /// Makes, lists and revokes tokens.
    async fn token(request: TokenRequest) -> Result<TokenAnswer, Refusal>;
    /// Lists the interference models, after choosing one if one is given.
    async fn models(request: ModelRequest) -> Result<Models, Refusal>;
    /// Whether the head is there.
    async fn ping();
}

/// Worker to head.
#[tarpc::service]
#[trait_variant::make(Send)]
pub trait HeadService {
    /// What happened, in order; comes back when the head has taken it in.
    async fn report(reports: Vec<Report>);
    /// The worker is there.
    async fn heartbeat();
}

/// Head to worker.
#[tarpc::service]
#[trait_variant::make(Send)]
pub trait WorkerService {
    /// What to do, in order; comes back when the worker has taken it in.
    async fn order(orders: Vec<Order>);
    /// A piece of the output of a rank; a long poll at its end.
    async fn read_log(request: LogRequest) -> Result<LogChunk, Refusal>;
}
