//! The policy: the order by Gittins indices on shared devices, and a guard that separates jobs.

use super::HybridOptions;
use super::least_cost::LeastCostChooser;
use super::slowdown_guard::SlowdownGuard;
use crate::gittins::{GittinsOrder, OrderOptions};
use crate::interference::InterferenceContext;
use crate::sharing::SharedPlacer;
use crate::{
    EndedRun, FreeNodes, MappedPlacer, PendingJob, PendingReason, Plan, Policy, Proposal, Shortage, View,
    ViewChange,
};

/// The order by Gittins indices, and A-SRPT's mapping, on devices that are shared within the slowdown limits.
pub(crate) struct Hybrid {
    starts: GittinsOrder<SharedPlacer<LeastCostChooser>>,
    watchdog: SlowdownGuard,
}

impl Hybrid {
    pub(crate) fn new(
        options: HybridOptions,
        order: OrderOptions,
        whole: MappedPlacer,
        context: &InterferenceContext,
    ) -> Hybrid {
        let place = SharedPlacer::new(LeastCostChooser::new(options, context), whole, context);
        Hybrid { starts: GittinsOrder::new(order, place), watchdog: SlowdownGuard::new(options, context) }
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

    fn recall(&mut self, ended: &[EndedRun]) {
        self.starts.recall(ended);
    }

    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        self.starts.dry_run_on(view, job, free)
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        self.starts.set_interference(context);
        self.watchdog.set_interference(context);
    }
}
