//! The policy: another one decides which job starts when and where, and this one stops jobs for those who
//! hold less than is due to them.

use std::sync::Arc;

use super::claims::RoomClaim;
use super::longest_waiting::LongestWaiting;
use super::looks::{NextLook, RunningSets};
use super::reclaim_draft::{ReclaimDraft, WAITED_AT_ONCE};
use crate::interference::InterferenceContext;
use crate::maifs::Agents;
use crate::{
    EndedRun, FreeNodes, PendingJob, PendingReason, Plan, Policy, Proposal, SensitivityProfiles,
    SharesChange, Shortage, View, ViewChange,
};

/// A policy whose users get what is due to them. Where users do not take turns, it is the other policy.
pub(crate) struct Reclaiming {
    policy: Box<dyn Policy>,
    waiting: LongestWaiting,
    running: RunningSets,
    claims: Vec<RoomClaim>,
    next_look: NextLook,
}

impl Reclaiming {
    pub(crate) fn new(policy: Box<dyn Policy>) -> Reclaiming {
        Reclaiming {
            policy,
            waiting: LongestWaiting::default(),
            running: RunningSets::default(),
            claims: Vec::new(),
            next_look: NextLook::default(),
        }
    }

    fn note(&mut self, view: &View, change: &ViewChange) {
        match change {
            ViewChange::Pending(job) => {
                self.running.remove(job.id);
                self.waiting.insert(job, view);
                self.next_look.sooner(job.eligible_at + WAITED_AT_ONCE);
            }
            ViewChange::Running(job) => {
                self.waiting.remove(job.id);
                self.running.insert(job);
                job.idle_from.into_iter().for_each(|at| self.next_look.sooner(at));
            }
            ViewChange::Gone(job) => {
                self.waiting.remove(*job);
                self.running.remove(*job);
            }
            ViewChange::Shares(SharesChange::Table(_)) => self.next_look.sooner(view.now),
            ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(SharesChange::Used(..)) => {}
        }
    }
}

impl Policy for Reclaiming {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.policy.learn(view, changes);
        if view.fair_shares.is_some() {
            changes.iter().for_each(|change| self.note(view, change));
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        let mut plan = self.policy.plan(view);
        self.claims.retain_mut(|claim| claim.update(view));
        let Some(shares) = &view.fair_shares else { return plan };
        let may_stop = !self.running.stoppable.is_empty() && !self.waiting.is_empty();
        let looks = may_stop && self.next_look.at <= view.now;
        if self.claims.is_empty() && !looks {
            self.next_look.wake.filter(|_| may_stop).into_iter().for_each(|at| plan.wake_at(at));
            return plan;
        }
        let mut draft = ReclaimDraft::new(view, shares, &self.waiting, &self.running, plan);
        draft.keep_room(&mut self.claims, self.policy.as_mut());
        if looks {
            self.next_look = draft.reclaim(&mut self.claims, self.policy.as_mut());
        }
        let mut plan = draft.into_plan(&self.claims);
        self.next_look.wake.filter(|_| may_stop).into_iter().for_each(|at| plan.wake_at(at));
        plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        let mut reasons = self.policy.explain_pending(view);
        for claim in &self.claims {
            let stopping: Vec<String> = claim.stopping(view).map(|job| format!("job {job}")).collect();
            if let Some(reason) = reasons.iter_mut().find(|reason| reason.job == claim.job)
                && !stopping.is_empty()
            {
                reason.why = format!("Room is being made for it: {} will end", stopping.join(", "));
            }
        }
        reasons
    }

    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        let proposal = self.policy.dry_run_on(view, job, free)?;
        let turns = view.turns(self.waiting.lines(), |party| self.waiting.demand_of(party));
        match turns.is_none_or(|turns| turns.may_lend(view.party(&job.traits), &job.demand)) {
            true => Ok(proposal),
            false => Err(Shortage::KeptForOthers),
        }
    }

    fn recall(&mut self, ended: &[EndedRun]) {
        self.policy.recall(ended);
    }

    fn set_sensitivity(&mut self, profiles: &Arc<SensitivityProfiles>) {
        self.policy.set_sensitivity(profiles);
    }

    fn set_agents(&mut self, agents: Box<dyn Agents>) {
        self.policy.set_agents(agents);
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        self.policy.set_interference(context);
    }
}
