//! The networks in plain Rust, for deciding: the same as `networks.rs` over the same weights, several times
//! as fast.
//!
//! The networks are so small that the tensor library spends most of the time on its own bookkeeping and on
//! exact hyperbolic tangents.

mod agent_inference;
mod dense;
mod stored_tensors;

pub(super) use agent_inference::AgentInference;
pub(super) use stored_tensors::StoredTensors;
pub use stored_tensors::WeightsError;
