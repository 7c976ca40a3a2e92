//! The actor that a process holds: its constructions and its gate.

use crate::frames::{Construction, OnPanic};
use crate::gate::CallGate;
use crate::ids::{ActorId, IncarnationNumber};
use crate::member_effect::MemberEffect;

/// An actor with what is needed to construct it again.
#[derive(Debug)]
pub(crate) struct HeldActor {
    construction: Construction,
    demand: Demand,
    pub(crate) gate: CallGate,
}

/// Whether the actor has to be constructed as soon as no call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    None,
    Construction,
}

impl HeldActor {
    pub(crate) fn new(construction: Construction) -> HeldActor {
        let gate = CallGate::new(construction.concurrency);
        HeldActor { construction, demand: Demand::None, gate }
    }

    pub(crate) const fn actor(&self) -> ActorId {
        self.construction.actor
    }

    pub(crate) const fn incarnation(&self) -> IncarnationNumber {
        self.construction.incarnation
    }

    pub(crate) const fn demand_construction(&mut self) {
        self.demand = Demand::Construction;
    }

    pub(crate) fn construct(&mut self) -> MemberEffect {
        let Construction { actor, kind, incarnation, arguments, needs, .. } = &self.construction;
        let (actor, kind, incarnation) = (*actor, *kind, *incarnation);
        let (arguments, needs) = (arguments.clone(), needs.clone());
        MemberEffect::Construct { actor, kind, incarnation, arguments, needs }
    }

    /// The next construction, here or in other processes, if a panic demands it and no call runs any more.
    pub(crate) fn reconstruct_when_idle(&mut self) -> Option<MemberEffect> {
        if self.demand == Demand::None || !self.gate.is_shut_and_idle() {
            return None;
        }
        self.demand = Demand::None;
        if self.construction.on_panic == OnPanic::EndProcess {
            return Some(MemberEffect::Fail);
        }
        self.construction.incarnation = IncarnationNumber(self.construction.incarnation.0 + 1);
        Some(self.construct())
    }
}
