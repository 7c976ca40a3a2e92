//! The policies that A-SRPT is measured against, on equal terms: they get the same profiles and the same
//! choice of place.
//!
//! Orders for a pipeline, and policies that stop running jobs for more urgent ones. None of them delays a job
//! that has room and is first.

mod least_attained;
mod preemptive;
mod reach;
mod service;
mod shortest_remaining;
mod sizes;
mod urgency;
mod victims;

pub use least_attained::LeastAttained;
pub use preemptive::Preemptive;
pub use service::AttainedService;
pub use shortest_remaining::ShortestRemaining;
pub use sizes::{ShortestDuration, SmallestWork};
pub use urgency::Urgency;

#[cfg(test)]
mod tests;
