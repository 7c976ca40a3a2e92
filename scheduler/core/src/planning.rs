//! Requests for plans, and the plans that come back.
//!
//! At most one request is open. Whatever changes meanwhile leads to one more request afterwards. A plan is
//! checked action by action against the present state. An action that no longer fits is dropped, and the
//! job's history says why.

use cohabit_policy::{Action, Plan, check_shape};
use cohabit_types::{
    Cause, Demand, JobEventKind, JobId, JobState, Placement, PlanRequestId, StopReason, Time,
};

use crate::head::Head;
use crate::interface::Effect;
use crate::placement::PlannedStart;
use crate::transition::Transition;
use crate::view_tracker::MAX_STARTS_PER_PLAN;

impl Transition<'_> {
    /// Requests a plan if there is a reason to and no request is open.
    pub(crate) fn ask_for_plan(&mut self) {
        if !self.head.replan_needed || self.head.open_plan_request.is_some() {
            return;
        }
        self.head.replan_needed = false;
        let reconsiders =
            std::mem::take(&mut self.head.reconsider_colocations) && self.head.has_colocated_jobs();
        let changes_shares = !self.head.volatile.fungible.is_empty();
        let is_alarmed = self.head.next_plan_at.is_some();
        if self.head.eligible.is_empty() && !is_alarmed && !reconsiders && !changes_shares {
            return;
        }
        self.head.last_request += 1;
        let request = PlanRequestId(self.head.last_request);
        self.head.open_plan_request = Some(request);
        self.effect(Effect::Plan(request));
    }

    /// The policy's model of interference changed.
    pub(crate) fn interference_updated(&mut self) {
        self.head.interference_aware = true;
        self.reconsider();
    }

    /// Asks for a plan even if no job waits: jobs that share a device may have to be separated.
    pub(crate) fn reconsider(&mut self) {
        self.head.reconsider_colocations = self.head.interference_aware;
        self.head.replan_needed = true;
    }

    /// Carries out what still fits of a plan, if it answers the open request.
    pub(crate) fn planned(&mut self, request: PlanRequestId, plan: Plan) {
        if self.head.open_plan_request != Some(request) {
            return;
        }
        self.cause = Cause::Plan(request);
        self.head.open_plan_request = None;
        self.head.next_plan_at = plan.wake;
        self.head.replan_needed |= plan.actions.len() as u64 >= MAX_STARTS_PER_PLAN;
        for action in plan.actions {
            match action {
                Action::Place { job, placement, runtime, slowdown, why } => {
                    self.place(job, PlannedStart { placement, runtime, slowdown, why });
                }
                Action::Preempt { job, why } => self.preempt(job, &why, StopReason::Preempted),
                Action::Reclaim { job, why } => self.preempt(job, &why, StopReason::Reclaimed),
                Action::StopIdle { job, why } => self.stop_idle(job, &why),
                Action::Allot { job, host, why } => self.allot(job, host, why),
            }
        }
    }

    fn place(&mut self, id: JobId, planned: PlannedStart) {
        if !self.head.eligible.contains(&id) {
            return;
        }
        let submission = &self.head.submissions[&id.number];
        let demand = self.head.placeable_demand(id);
        let fit = match (submission.array_slots_left(), self.head.beyond_running_limit(id)) {
            (0, _) => Err("the array already runs as many members at once as it may".to_owned()),
            (_, Some(beyond)) => Err(beyond),
            (_, None) => self.head.fits(&demand, &planned.placement, self.now),
        };
        match fit {
            Ok(()) => self.start(id, planned),
            Err(why) => self.record_event(id, JobEventKind::PlanDropped(why)),
        }
    }

    fn preempt(&mut self, id: JobId, why: &str, reason: StopReason) {
        let running = self.head.jobs.get(&id).is_some_and(|job| job.state() == JobState::Running);
        if !running {
            let not_running = format!("the plan preempts it ({why}), but it does not run");
            self.record_event(id, JobEventKind::PlanDropped(not_running));
            return;
        }
        self.stop_attempt(id, reason);
    }
}

impl Head {
    /// Whether the placement is what the demand asks for, and there is room for it.
    pub(crate) fn fits(&self, demand: &Demand, placement: &Placement, now: Time) -> Result<(), String> {
        check_shape(demand, placement)?;
        placement.parts.iter().try_for_each(|part| {
            let node = self.nodes.get(&part.node).filter(|node| node.takes_jobs());
            let node = node.ok_or("the plan uses a node that takes no jobs")?;
            self.node_view_at(part.node, node, now).fits(demand, part)
        })
    }
}
