//! CLWP and NLWP: a job goes to the node whose jobs are least like it, and its tasks to those GPUs of the
//! node on which they and their neighbours lose least time to each other and to communication.
//!
//! The README beside this file says which properties are wanted, what of this is the paper's and what is
//! inferred, and where each is tested. What room is, and when a job starts, is not decided here.

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
