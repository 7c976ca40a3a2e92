//! A-SRPT: shortest remaining processing time on a virtual machine guides when each job starts, and jobs that
//! suffer from a bad place may hold out for a better one.
//!
//! The README beside this file says which properties are wanted, what of this is the paper's and what is
//! inferred, and where each is tested. Choosing devices is not done here: that is a [`crate::Placer`].

mod books;
mod capacity;
mod hold_outs;
mod options;
mod patience;
mod policy;
mod recent_waits;
mod round;
mod vacancies;
mod virtual_machine;
mod why;

pub use options::{ASrptOptions, QueueMode, QueueOrder, StarvationBarrier, VirtualAlpha};
pub use policy::ASrpt;

#[cfg(test)]
mod tests;
