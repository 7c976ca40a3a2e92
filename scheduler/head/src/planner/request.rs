//! What passes between the planner and its thread.

use std::sync::Arc;

use cohabit_actor::ReplyTo;
use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::{DryRunResult, PendingJob, Plan, Policy, ViewChange};
use cohabit_scheduler_core::PolicyForecasts;
use cohabit_types::Time;

/// Creates a policy in its initial state.
pub(crate) type PolicyFactory = Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>;

/// What the policy must learn before it answers the next query.
#[derive(Debug, Default)]
pub(super) struct PlannerInput {
    /// Changes of the cluster, in their order.
    pub(super) changes: Vec<ViewChange>,
    /// The knowledge of interference, if it changed.
    pub(super) knowledge: Option<InterferenceContext>,
}

/// A query to the policy: the current time, and where the result goes.
pub(super) enum PolicyQuery {
    Plan(Time, ReplyTo<Result<Plan, PolicyPanic>>),
    Forecast(Time, ReplyTo<Result<PolicyForecasts, PolicyPanic>>),
    DryRun(Time, Box<PendingJob>, ReplyTo<Result<DryRunResult, PolicyPanic>>),
}

/// The policy panicked during the query.
#[derive(Debug)]
pub(super) struct PolicyPanic;
