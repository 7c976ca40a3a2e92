//! Multi-resource packing: the job that fits the free resources of a node best starts there, and among
//! those that fit about as well the one with the least work left.
//!
//! After R. Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM 2014 (Tetris); the
//! README says what is the paper's and what is ours. `alignment.rs` scores a job on a node, `candidates.rs`
//! finds the best pair of all classes and nodes, and `policy.rs` is the policy. Which devices of the node a
//! job gets is not decided here.

mod alignment;
mod candidates;
mod policy;
#[cfg(test)]
mod tests;

pub(crate) use policy::Tetris;
