//! The policy: A-SRPT over shared devices, with a watchdog beside it.

use super::HybridOptions;
use super::choice::Seating;
use super::watchdog::Watchdog;
use crate::interference::Knowledge;
use crate::shared_place::SharedPlace;
use crate::{
    ASrpt, Change, MappedPlace, Options, PendingJob, Plan, Policy, Proposal, Prospect, Shortage, View,
};

/// A-SRPT's order and mapping, and shared devices within everybody's bound.
pub(crate) struct Hybrid {
    starts: ASrpt<SharedPlace<Seating>>,
    watchdog: Watchdog,
}

impl Hybrid {
    pub(crate) fn new(
        options: HybridOptions,
        order: &Options,
        whole: MappedPlace,
        knowledge: &Knowledge,
    ) -> Hybrid {
        let place = SharedPlace::new(Seating::new(options, knowledge), whole, knowledge);
        Hybrid { starts: ASrpt::new(order, place), watchdog: Watchdog::new(options, knowledge) }
    }
}

impl Policy for Hybrid {
    fn learn(&mut self, view: &View, changes: &[Change]) {
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

    fn outlook(&mut self, view: &View) -> Vec<Prospect> {
        self.starts.outlook(view)
    }

    fn consider(&mut self, view: &View, job: &PendingJob) -> Result<Proposal, Shortage> {
        self.starts.consider(view, job)
    }

    fn know(&mut self, knowledge: &Knowledge) {
        self.starts.know(knowledge);
        self.watchdog.know(knowledge);
    }
}
