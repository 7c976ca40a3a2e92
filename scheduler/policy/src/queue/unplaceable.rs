//! Demands that did not fit the plan being made. A demand for at least as much does not fit either, so only
//! the smallest demands cost a search.
//!
//! This holds only as long as nothing is released.

use cohabit_types::{Bytes, Demand};

/// The demands that did not fit so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct UnplaceableDemands(Vec<Demand>);

impl UnplaceableDemands {
    pub(crate) fn insert(&mut self, demand: Demand) {
        self.0.push(demand);
    }

    /// Whether the demand cannot fit because a smaller one did not.
    pub(crate) fn covers(&self, demand: &Demand) -> bool {
        self.0.iter().any(|smaller| is_at_least(demand, smaller))
    }
}

fn is_at_least(one: &Demand, other: &Demand) -> bool {
    one.account == other.account
        && one.has_code == other.has_code
        && one.spans_nodes == other.spans_nodes
        && one.node == other.node
        && one.held_for == other.held_for
        && one.reservations == other.reservations
        && one.spread == other.spread
        && one.nodes >= other.nodes
        && one.devices() >= other.devices()
        && one.may_have_neighbors() == other.may_have_neighbors()
        && one.limits >= other.limits
        && one.share() >= other.share()
        && needs_as_much(one.gpu_memory, other.gpu_memory)
        && one.cpus >= other.cpus
        && one.memory >= other.memory
}

/// A demand that does not state its memory is refused for other reasons than one that does.
fn needs_as_much(one: Option<Bytes>, other: Option<Bytes>) -> bool {
    one.is_some() == other.is_some() && one >= other
}
