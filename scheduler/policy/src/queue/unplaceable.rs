//! Demands that found no room in the plan being made. Who demands at least as much finds none either, so that
//! only the smallest of them cost a look at the nodes.
//!
//! It holds only as long as nothing is given back.

use cohabit_types::{Bytes, Demand};

/// What found no room so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct UnplaceableDemands(Vec<Demand>);

impl UnplaceableDemands {
    pub(crate) fn insert(&mut self, demand: Demand) {
        self.0.push(demand);
    }

    /// Whether the demand cannot find room, because less found none.
    pub(crate) fn covers(&self, demand: &Demand) -> bool {
        self.0.iter().any(|smaller| is_at_least(demand, smaller))
    }
}

fn is_at_least(one: &Demand, other: &Demand) -> bool {
    one.spread == other.spread
        && one.nodes >= other.nodes
        && one.devices() >= other.devices()
        && one.may_have_neighbours() == other.may_have_neighbours()
        && one.limits >= other.limits
        && one.share() >= other.share()
        && needs_as_much(one.gpu_memory, other.gpu_memory)
        && one.cpus >= other.cpus
        && one.memory >= other.memory
}

/// Who does not say what it needs is turned away for other reasons than who does.
fn needs_as_much(one: Option<Bytes>, other: Option<Bytes>) -> bool {
    one.is_some() == other.is_some() && one >= other
}
