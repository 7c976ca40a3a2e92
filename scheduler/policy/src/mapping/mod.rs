//! Where the replicas of a parallel training job go, so that little traffic crosses the network.
//!
//! Functions of a job's graph and of servers: no view, no clock, no state but a cache. Start with
//! `mapper.rs`; `select.rs` chooses servers, `heavy_edge.rs` and `swap_search.rs` spread the replicas,
//! `iteration_time.rs` computes the cost, by the convention of `traffic.rs`. The README in this directory
//! lists the properties that are wanted and the steps that are inferred.

mod arrangement;
mod bounds;
mod cache;
mod cluster_version;
mod graph;
mod heavy_edge;
mod iteration_time;
mod mapper;
mod options;
mod select;
mod server;
mod shape;
mod split_mix;
mod swap_search;
mod traffic;

pub use bounds::Bounds;
pub(crate) use cache::Cache;
pub(crate) use graph::GraphKey;
pub use graph::JobGraph;
pub use mapper::Mapper;
pub(crate) use mapper::Mapping;
pub use options::MapperOptions;
pub(crate) use options::{IterationModel, NicShare, Selection, Toggle};
pub(crate) use select::select;
pub use server::Server;
pub(crate) use server::Slot;
pub(crate) use traffic::{Directions, Flow, LinkRates, transfer_seconds};

#[cfg(test)]
mod tests;
