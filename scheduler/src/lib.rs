//! Cohabit's scheduling policies: what a policy sees, what it answers, and the policies themselves.
//!
//! A policy is a pure function of what it saw: no clock, no randomness of its own, no IO. The same object
//! runs in the simulator and in the live head. Its answer is only a proposal: the head checks every action
//! against its own state and drops what no longer fits.
#![warn(missing_docs)]

mod estimator;
mod first_fit;
mod free;
mod pipeline;
mod plan;
mod policies;
mod policy;
mod shortage;
mod view;

pub use estimator::{Estimator, Features, Finished, NoEstimates};
pub use first_fit::FirstFit;
pub use free::FreeNodes;
pub use pipeline::{Fifo, Pipeline, Place, Rank};
pub use plan::{Action, Plan, Wait};
pub use policies::{POLICY_NAMES, UnknownPolicy, policy_by_name};
pub use policy::{Fact, Policy};
pub use shortage::Shortage;
pub use view::{DeviceView, JobTraits, NodeView, PendingJob, RunningJob, View};

#[cfg(test)]
mod tests;
