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

pub use a_srpt::{ASrpt, Barrier, Options, QueueMode, QueueOrder, VirtualAlpha};
pub use baselines::{
    LeastAttained, Preemptive, Service, ShortestDuration, ShortestRemaining, SmallestWork, Urgency,
};
pub use estimator::{Estimator, Features, Finished, NoEstimates};
pub use first_fit::FirstFit;
pub use forecast::{Expectation, forecast};
pub use foresight::{Foresight, Thought};
pub use free::{FreeNodes, check_shape, could_ever_hold};
pub use mapped_place::{LinkDefaults, MappedPlace};
pub use pipeline::{Discipline, Fifo, Pipeline, Rank};
pub use place::{Cluster, Place, Proposal};
pub use plan::{Action, Plan, Prospect};
pub use policies::{POLICY_NAMES, UnknownPolicy, policy_by_name, policy_that_knows};
pub use policy::Policy;
pub use profile::{Ground, Profile, UNKNOWN_RUNTIME};
pub use queue::{ClassId, Needs, Queue, Turn, Walk};
pub use shortage::{Alone, Harm, Shortage};
pub use view::{
    Change, DeviceView, Intake, JobTraits, NodeView, PendingJob, RunPhase, RunningJob, SharingMode,
    SharingTerms, View,
};

#[cfg(test)]
mod tests;
