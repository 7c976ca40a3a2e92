//! The policy: users take turns by their dominant shares, and each job goes where `first-fit-sharing` would
//! put it. A running job is never stopped.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{Demand, JobId};

use super::demand_queues::{DemandQueues, TurnKey, turn_key};
use super::dominant_share::DominantShare;
use super::fair_turns::FairTurns;
use super::user_holdings::UserHoldings;
use crate::interference::InterferenceContext;
use crate::placement::{NoOutlooks, dry_run};
use crate::queue::fit_tracker::fits;
use crate::queue::pending_reasons::list_pending_reasons;
use crate::sharing::{FirstFitSharing, SharedPlacer};
use crate::{
    ClusterChange, FreeNodes, JobTraits, MappedPlacer, PendingJob, PendingReason, Placer, Plan, Policy,
    Profile, Proposal, ResourceAmounts, Shortage, View, ViewChange,
};

/// The policy.
#[derive(Debug)]
pub(crate) struct Drf {
    placer: SharedPlacer<FirstFitSharing>,
    waiting: DemandQueues,
    known: BTreeMap<JobId, UserJob>,
    holdings: UserHoldings,
}

/// A job that waits.
#[derive(Debug)]
struct UserJob {
    traits: Arc<JobTraits>,
    demand: Demand,
    key: TurnKey,
    profile: Profile,
}

impl Drf {
    pub(crate) fn new(whole: MappedPlacer, context: &InterferenceContext) -> Drf {
        Drf {
            placer: SharedPlacer::new(FirstFitSharing, whole, context),
            waiting: DemandQueues::default(),
            known: BTreeMap::new(),
            holdings: UserHoldings::default(),
        }
    }

    fn enqueue(&mut self, job: &PendingJob) {
        self.forget(job.id);
        let profile = self.placer.profile(&job.demand, &job.traits);
        let (traits, demand, key) = (Arc::clone(&job.traits), job.demand, turn_key(job));
        self.waiting.insert(&traits.user, &demand, key);
        self.known.insert(job.id, UserJob { traits, demand, key, profile });
    }

    /// The job neither waits nor runs.
    fn forget(&mut self, job: JobId) {
        self.holdings.remove(job);
        if let Some(UserJob { traits, demand, key, profile: _ }) = self.known.remove(&job) {
            self.waiting.remove(&traits.user, &demand, key);
        }
    }

    /// All waiting jobs in the order in which they would start if there were room for all.
    fn order(&self, view: &View) -> Vec<(JobId, Demand)> {
        let whole = ResourceAmounts::of_nodes(&view.nodes);
        let mut turns = FairTurns::new(&self.waiting, &self.holdings, whole, |_| true);
        let mut order = Vec::new();
        while let Some(turn) = turns.next() {
            let demand = self.known[&turn.job()].demand;
            order.push((turn.job(), demand));
            turns.started(turn, ResourceAmounts::of_demand(&demand));
        }
        order
    }
}

impl Policy for Drf {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.placer.learn(view, changes);
        if self.placer.prepare(view) == ClusterChange::Changed {
            view.pending.values().for_each(|job| self.enqueue(job));
        }
        for change in changes {
            match change {
                ViewChange::Pending(job) => self.enqueue(job),
                ViewChange::Running(job) => {
                    self.forget(job.id);
                    self.holdings.insert(job);
                }
                ViewChange::Gone(job) => self.forget(*job),
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        let (mut free, mut plan) = (FreeNodes::new(&view.nodes), Plan::default());
        let whole = ResourceAmounts::of_nodes(&view.nodes);
        let mut turns = FairTurns::new(&self.waiting, &self.holdings, whole, |demand| fits(demand, &free));
        while let Some(turn) = turns.next() {
            let (job, profile) = (&view.pending[&turn.job()], &self.known[&turn.job()].profile);
            let placed =
                fits(&job.demand, &free).then(|| self.placer.place(job, profile, &free).ok()).flatten();
            let Some(mut proposal) = placed else {
                turns.passed(turn);
                continue;
            };
            free.take_as_resident(job.id, &job.demand, &proposal.placement);
            turns.started(turn, ResourceAmounts::of_placement(&job.demand, &proposal.placement));
            proposal.why = explain_start(turn.share, &proposal.why);
            plan.actions.push(proposal.start(job.id, profile));
        }
        plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        let order = self.order(view).into_iter();
        let profile = |job| self.known.get(&job).map(|known| &known.profile);
        let mut reasons = list_pending_reasons(order, profile, &mut self.placer, view);
        let whole = ResourceAmounts::of_nodes(&view.nodes);
        for reason in &mut reasons {
            let user = &view.pending[&reason.job].traits.user;
            let share = DominantShare::of(self.holdings.of(user), whole);
            reason.why = format!("{}. {}", reason.why, explain_share(user, share));
        }
        reasons
    }

    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        dry_run(&mut self.placer, view, job, free, &NoOutlooks)
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        self.placer.set_interference(context);
    }
}

fn explain_start(share: DominantShare, placement: &str) -> String {
    let why = format!("its user {share} (dominant share)");
    if placement.is_empty() { why } else { format!("{why}; {placement}") }
}

fn explain_share(user: &str, share: DominantShare) -> String {
    format!("User {user} {share} (dominant share); users with a smaller one go first")
}
