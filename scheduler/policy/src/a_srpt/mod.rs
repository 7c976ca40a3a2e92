//! A-SRPT: shortest remaining processing time on a virtual machine decides when each job starts, and jobs
//! that are sensitive to their placement may wait for a better one.
//!
//! Start with `policy.rs`, which makes a plan; `queue_state.rs` keeps the jobs,
//! `queue/virtual_srpt_machine.rs` is the paper's instance A1, `round.rs` decides about one job,
//! `delay_rule.rs` is the waiting rule. The README in this directory lists the properties that are wanted,
//! which parts are the paper's and which are inferred, and where each is tested. Devices are chosen by a
//! [`crate::Placer`].

mod delay_rule;
mod delayed_jobs;
mod explain;
mod options;
mod policy;
mod queue_state;
mod recent_waits;
mod round;

pub(crate) use options::{ASrptOptions, QueueMode, QueueOrder, StarvationBarrier, VirtualAlpha};
pub(crate) use policy::ASrpt;

#[cfg(test)]
pub(crate) mod tests;
