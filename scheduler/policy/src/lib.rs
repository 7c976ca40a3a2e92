//! Cohabit's scheduling policies: what a policy sees, what it answers, and the policies themselves.
//!
//! A policy is a pure function of what it saw: no clock, no randomness of its own, no IO. The same object
//! runs in the simulator and in the live head. Its answer is only a proposal: the head checks every action
//! against its own state and drops what no longer fits.
#![warn(missing_docs)]

mod a_srpt;
mod baselines;
mod clwp_nlwp;
mod device_fit;
mod draft;
mod ends;
mod estimator;
mod first_fit;
mod fitting;
mod forecast;
mod foresight;
mod free;
mod hybrid;
pub mod interference;
mod isacpp;
mod lacks;
mod mapped_place;
pub mod mapping;
mod pipeline;
mod place;
mod plan;
mod policies;
mod policy;
mod profile;
mod prospects;
mod queue;
mod reservation;
mod shared_place;
mod shortage;
mod stages;
mod view;
mod without_room;

pub use a_srpt::{ASrpt, ASrptOptions, QueueMode, QueueOrder, StarvationBarrier, VirtualAlpha};
pub use baselines::{
    AttainedService, LeastAttained, Preemptive, ShortestDuration, ShortestRemaining, SmallestWork, Urgency,
};
pub use estimator::{CompletedRun, Estimator, JobFeatures, UserEstimator};
pub use first_fit::FirstFit;
pub use forecast::{JobForecast, forecast};
pub use foresight::{DryRunResult, SlowdownReporter};
pub use free::{FreeNodes, check_shape, could_ever_hold};
pub use mapped_place::{LinkDefaults, MappedPlacer};
pub use pipeline::{Discipline, Fifo, JobOrder, QueuePolicy};
pub use place::{ClusterChange, Placer, Proposal};
pub use plan::{Action, PendingReason, Plan};
pub use policies::{POLICY_NAMES, PolicyParseError, parse_policy, parse_policy_with};
pub use policy::Policy;
pub use profile::{EstimateBasis, Profile, UNKNOWN_RUNTIME};
pub use queue::{ClassId, ClassKey, PendingQueue, QueueEntry, Walk};
pub use shortage::{ExclusiveReason, SharingConflict, Shortage};
pub use view::{
    DeviceAvailability, DeviceView, JobTraits, NodeView, PendingJob, RunPhase, RunningJob, SharingMode,
    SharingTerms, View, ViewChange,
};

#[cfg(test)]
mod tests;
