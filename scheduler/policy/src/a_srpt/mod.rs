//! A-SRPT: shortest remaining processing time on a virtual machine guides when each job starts, and jobs that
//! suffer from a bad place may hold out for a better one.
//!
//! The README beside this file says which properties are wanted, what of this is the paper's and what is
//! inferred, and where each is tested. Choosing devices is not done here: that is a [`crate::Placer`].

mod capacity;
mod delay_rule;
mod delayed_jobs;
mod expected_releases;
mod explain;
mod options;
mod policy;
mod queue_state;
mod recent_waits;
mod round;
mod virtual_srpt_machine;

pub(crate) use options::{ASrptOptions, QueueMode, QueueOrder, StarvationBarrier, VirtualAlpha};
pub(crate) use policy::ASrpt;

#[cfg(test)]
mod tests;
