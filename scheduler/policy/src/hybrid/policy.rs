//! The policy: A-SRPT over shared devices, with a watchdog beside it.

use super::HybridOptions;
use super::choice::LeastCostChooser;
use super::watchdog::SlowdownGuard;
use crate::interference::InterferenceContext;
use crate::shared_place::SharedPlacer;
use crate::{
    ASrpt, ASrptOptions, MappedPlacer, PendingJob, PendingReason, Plan, Policy, Proposal, Shortage, View,
    ViewChange,
};

/// A-SRPT's order and mapping, and shared devices within everybody's bound.
pub(crate) struct Hybrid {
    starts: ASrpt<SharedPlacer<LeastCostChooser>>,
    watchdog: SlowdownGuard,
}

impl Hybrid {
    pub(crate) fn new(
        options: HybridOptions,
        order: &ASrptOptions,
        whole: MappedPlacer,
        knowledge: &InterferenceContext,
    ) -> Hybrid {
        let place = SharedPlacer::new(LeastCostChooser::new(options, knowledge), whole, knowledge);
        Hybrid { starts: ASrpt::new(order, place), watchdog: SlowdownGuard::new(options, knowledge) }
    }
}

impl Policy for Hybrid {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.starts.learn(view, changes);
        self.watchdog.learn(view, changes);
    }

    fn plan(&mut self, view: &View) -> Plan {
        let mut plan = self.watchdog.plan(view);
        let Plan { actions, wake } = self.starts.plan(view);
        plan.actions.extend(actions);
        plan.wake = plan.wake.into_iter().chain(wake).min();
        plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        self.starts.explain_pending(view)
    }

    fn consider(&mut self, view: &View, job: &PendingJob) -> Result<Proposal, Shortage> {
        self.starts.consider(view, job)
    }

    fn uses_interference(&self) -> bool {
        true
    }

    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        self.starts.set_interference(knowledge);
        self.watchdog.set_interference(knowledge);
    }
}
