//! Where the replicas of a parallel training job go, so that little crosses the network.
//!
//! Pure functions of a job's graph and of servers: no view, no clock, no state but a memory of earlier
//! answers. The README beside this file says which properties are wanted and which steps are inferred.

mod arrangement;
mod bounds;
mod cache;
mod cluster;
mod draws;
mod graph;
mod heavy_edge;
mod iteration_time;
mod mapper;
mod options;
mod select;
mod server;
mod shape;
mod swaps;

pub use bounds::Bounds;
pub use graph::{GraphSignature, JobGraph};
pub use mapper::{Mapper, Mapping};
pub use options::{IterationModel, MapperOptions, NicShare, Selection, Toggle};
pub use select::select;
pub use server::{Server, Slot};

#[cfg(test)]
mod tests;
