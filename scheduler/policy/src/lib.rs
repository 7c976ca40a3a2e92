//! Cohabit's scheduling policies: what a policy sees, what it answers, and the policies themselves.
//!
//! A policy is a pure function of the changes that it was told: no clock, no randomness of its own, no I/O.
//! The same code runs in the simulator and in the live head. A plan is only a proposal: the head checks
//! every action against its own state and drops what no longer fits.
//!
//! # Map
//!
//! | Directory or file | What is in it |
//! |---|---|
//! | [`policy.rs`](Policy), [`plan.rs`](Plan) | the trait of all policies, and what they answer |
//! | `view/` | nodes, devices and jobs as a policy sees them; whether a demand fits, and what is short |
//! | `placement/` | choosing devices for one job: `Placer`, profiles, job classes, first fit, mapped placer |
//! | `mapping/` | a parallel job as a graph, its replicas on servers, and the time of one iteration |
//! | `queue/` | pending jobs in order; a policy made of an order, a placer and a discipline; reservations |
//! | `sharing/` | choosing a GPU that other jobs use: shared placer, simple choosers, multi-stage estimates |
//! | [`interference`] | how much jobs on one GPU slow each other down: types, predictors, observations |
//! | `forecast/` | what people ask: expected starts, slowdowns of co-located jobs, runtime estimators |
//! | `baselines/` | policies to compare with: LAS, SRTF, shortest and smallest first |
//! | `gittins/` | the order of `a-srpt` and `hybrid`: learned run times, and stops |
//! | `a_srpt/`, `isacpp/`, `clwp_nlwp/` | one directory for each paper, each with a README |
//! | `drf/`, `tetris/` | the same, to compare with: fair shares of users, and packing |
//! | [`maifs`] | nodes as agents that choose jobs and shares of cores and memory together |
//! | `hybrid/` | the default: the order of `gittins/` and interference-aware sharing of GPUs |
//! | `policies/` | policies by name, and their parameters |
//!
//! # Where to start reading
//!
//! `policy.rs`, then `view/cluster_view.rs` and `plan.rs`: the whole contract. `queue/queue_policy.rs` is
//! the simplest complete policy; `placement/first_fit.rs` the simplest placer. `policies/mod.rs` shows what
//! each name stands for.
//!
//! # How to add a policy
//!
//! 1. If it only orders jobs differently, implement `JobOrder` (see `baselines/shortest_first.rs`). If it
//!    only chooses devices differently, implement `Placer` (see `placement/first_fit.rs`) or, for GPUs that
//!    are shared, `DeviceChooser` (see `sharing/least_loaded.rs`). `QueuePolicy` joins an order and a
//!    placer. Anything else implements [`Policy`] itself, in a directory of its own with a README.
//! 2. Give it a name: add a line to `POLICIES` in `policies/mod.rs`. The tests in `tests/policies.rs` then
//!    run it on random clusters and check that its plans fit.
//! 3. Say what it is in docs/OPERATIONS.md, and compare it: `cohabit simulate --policy NAME,fifo`.
#![warn(missing_docs)]

mod a_srpt;
mod baselines;
mod clwp_nlwp;
mod drf;
mod forecast;
mod gittins;
mod hybrid;
pub mod interference;
mod isacpp;
pub mod maifs;
pub mod mapping;
mod placement;
mod plan;
mod policies;
mod policy;
mod queue;
mod reclaim;
mod sensitivity;
mod sharing;
mod tetris;
mod total_order;
mod tune;
mod view;

pub use forecast::{
    CompletedRun, DryRunResult, Estimator, JobFeatures, JobForecast, KnownRunTimes, PastRuns, QueueForecast,
    RemainingTime, RunTimeDistribution, SlowdownReporter, UserEstimator, work_time,
};
pub(crate) use placement::{
    ClassKey, ClusterChange, EstimateBasis, FirstFit, LinkDefaults, MappedPlacer, Placer, Profile,
};
pub use placement::{Proposal, UNKNOWN_RUNTIME};
pub use plan::{Action, PendingReason, Plan};
pub use policies::{
    POLICY_NAMES, PolicyParseError, first_come_first_served, parse_policy, parse_policy_with, uses_agents,
    uses_interference, uses_sensitivity,
};
pub use policy::{EndedRun, Policy};
pub(crate) use queue::{ClassId, Discipline, Fifo, JobOrder, PendingQueue, QueueEntry, QueuePolicy};
pub use sensitivity::{JobCurve, SensitivityError, SensitivityProfiles, SensitivityTable};
pub(crate) use view::ResourceAmounts;
pub use view::{
    AttainedTime, DeviceAvailability, DeviceView, ExclusiveReason, FreeNodes, JobTraits, NodeView,
    NodeWindow, PendingJob, RunPhase, RunningJob, SharesChange, SharingConflict, SharingMode, SharingTerms,
    SharingUsers, Shortage, View, ViewChange, check_shape, could_ever_hold,
};

#[cfg(test)]
mod tests;
