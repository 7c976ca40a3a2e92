//! The policies that A-SRPT is measured against, on equal terms: they get the same profiles and the same
//! choice of place.
//!
//! Orders for a pipeline, and policies that stop running jobs for more urgent ones. None of them delays a job
//! that has room and is first.

mod attained_service;
mod least_attained;
mod preemptive;
mod releasable_devices;
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
