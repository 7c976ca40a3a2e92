//! CLWP and NLWP: a job goes to the node whose jobs are least similar to it, and its tasks to those GPUs of
//! the node on which they and their neighbors lose least time to each other and to communication.
//!
//! Start with `placer.rs`; `candidate_nodes.rs` is CLWP, `assignment.rs` is NLWP. The README in this
//! directory lists the properties that are wanted, which parts are the paper's and which are inferred, and
//! where each is tested. Which devices a job fits, and when it starts, is not decided here.

mod assignment;
mod candidate_nodes;
mod contention_table;
mod links;
mod options;
mod placer;
mod task_devices;
mod tasks;
#[cfg(test)]
mod tests;

pub(crate) use options::{ClwpNlwpOptions, CostWeights, SimilarityMeasure, SlotNormalization};
pub(crate) use placer::ClwpNlwp;
pub(crate) use tasks::TrafficPattern;
