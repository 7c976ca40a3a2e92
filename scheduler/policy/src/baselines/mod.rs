//! The policies that A-SRPT is compared with, on equal terms: they use the same profiles and the same
//! placer.
//!
//! `shortest_first.rs` holds orders for a `QueuePolicy`. `preemptive.rs` stops running jobs for more urgent
//! ones, by an [`Urgency`]: least attained service or shortest remaining time; `victims.rs` chooses which.
//! None of these policies delays the first job if it fits.

mod attained_service;
mod least_attained;
mod preemptive;
mod shortest_first;
mod shortest_remaining;
mod urgency;
mod victims;

pub(crate) use attained_service::AttainedService;
pub(crate) use least_attained::LeastAttained;
pub(crate) use preemptive::Preemptive;
pub(crate) use shortest_first::{ShortestDuration, SmallestWork};
pub(crate) use shortest_remaining::ShortestRemaining;
pub(crate) use urgency::Urgency;

#[cfg(test)]
mod tests;
