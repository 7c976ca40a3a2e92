//! How well a job fits a node, and how much work it is.

use cohabit_types::{Demand, Span};

use crate::{NodeView, PendingJob, Profile, ResourceAmounts};

/// The dot product of what the demand would hold on a node and of what is free there, each as fractions of
/// what the node has; `None` where it does not fit.
pub(super) fn alignment(demand: &Demand, node: &NodeView) -> Option<f64> {
    let held = ResourceAmounts::on_node(demand, node)?;
    let whole = ResourceAmounts::of_node(node);
    let free = ResourceAmounts::free_on(node).fractions_of(whole);
    Some(held.fractions_of(whole).iter().zip(free).map(|(held, free)| held * free).sum())
}

/// The expected run time that is left of a job. Only one that may be stopped has a checkpoint to continue
/// from.
pub(super) fn rest_of(job: &PendingJob, profile: &Profile) -> Span {
    let done = if job.traits.preemptible { job.attained.worked } else { Span::ZERO };
    profile.runtime - done
}

/// The work of a demand for so long: seconds times the sum of its fractions of all the cluster has.
pub(super) fn work(demand: &Demand, rest: Span, whole: ResourceAmounts) -> f64 {
    let parts: f64 = ResourceAmounts::of_demand(demand).fractions_of(whole).iter().sum();
    rest.as_secs_f64() * parts
}
