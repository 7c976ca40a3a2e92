//! A-SRPT: a single virtual machine decides when each job's turn comes, and a job that is sensitive to its
//! placement may wait for a better one.
//!
//! Jobs whose virtual turn has come are tried in the order of the queue, by default the shortest first. A
//! job that does not fit is passed, or blocks the others; a barrier may reserve resources for one that is
//! starving. A plan looks at the jobs that start, at one job of each class that does not fit, and at those
//! that wait for a better placement or conflict with a reservation: never at all pending jobs.

use cohabit_types::{ReasonCode, Time};

use super::queue_state::{Entry, QueueState};
use super::round::{JobDecision, Round, Rules};
use super::{ASrptOptions, explain};
use crate::interference::InterferenceContext;
use crate::placement::{NoOutlooks, dry_run};
use crate::queue::pending_reasons::explain_wait;
use crate::queue::virtual_srpt_machine::VirtualJob;
use crate::{
    FreeNodes, PendingJob, PendingReason, Placer, Plan, Policy, Proposal, Shortage, View, ViewChange,
};

/// The policy. Its placer's proposals say how much slower a placement is than the best one.
#[derive(Debug, Clone)]
pub(crate) struct ASrpt<P> {
    placer: P,
    rules: Rules,
    state: QueueState,
}

impl<P: Placer> ASrpt<P> {
    /// A policy with these options that knows no jobs yet.
    #[must_use]
    pub(crate) fn new(options: &ASrptOptions, placer: P) -> ASrpt<P> {
        ASrpt { placer, rules: Rules::new(options), state: QueueState::new(options) }
    }

    /// The virtual turn (`q_i`) of a job that is pending or running, if it has come.
    #[cfg(test)]
    pub(crate) fn turn_at(&self, job: cohabit_types::JobId) -> Option<Time> {
        self.state.get(job)?.turn_at
    }

    /// The jobs in the queue, in order.
    fn explain_queued(&mut self, view: &View) -> Vec<PendingReason> {
        let ASrpt { placer, rules, state } = self;
        let (usual_wait, ends) = (state.waits.median(), &mut state.ends.clone());
        let mut round = Round::new(rules, placer, view, ends, usual_wait, state.capacity.free());
        let mut reasons = Vec::new();
        for (ahead, turn) in state.queue.walk(state.queue.turns(view)).starting_each().enumerate() {
            let (job, entry) = (&view.pending[&turn.job], &state[turn.job]);
            let offer = round.offer(turn.class, job, entry).clone();
            let waits_for = match offer {
                Err(shortage) => explain_wait(job.id, Some(&shortage), ahead),
                Ok(proposal) => match round.find_delay(entry, &proposal) {
                    None => explain_wait(job.id, None, ahead),
                    Some(until) => PendingReason {
                        code: ReasonCode::WaitingForDevices,
                        why: explain::explain_delay(view.now, until, &proposal),
                        not_before: Some(until),
                        ..explain_wait(job.id, None, ahead)
                    },
                },
            };
            reasons.push(PendingReason { runtime: entry.profile.expected_at(1.0), ..waits_for });
        }
        reasons
    }

    /// The pending jobs whose virtual turn has not come, in the order in which it comes if no other job
    /// arrives.
    fn explain_on_machine(&self, view: &View) -> Vec<PendingReason> {
        let waits = |task: &VirtualJob| {
            view.pending.contains_key(&task.job) && self.state.queue.key(task.job).is_none()
        };
        let on_machine = self.state.machine.list_completions().enumerate();
        let reason = |(ahead, (task, turn_at)): (usize, (VirtualJob, Option<Time>))| PendingReason {
            job: task.job,
            code: ReasonCode::WaitingForVirtualTurn,
            why: explain::explain_turn(view.now, &task, turn_at, ahead),
            not_before: turn_at,
            runtime: self.state[task.job].profile.expected_at(1.0),
        };
        on_machine.filter(|(_, (task, _))| waits(task)).map(reason).collect()
    }
}

impl<P: Placer> Policy for ASrpt<P> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.state.learn(view, changes, &mut self.placer);
    }

    fn plan(&mut self, view: &View) -> Plan {
        let ASrpt { placer, rules, state } = self;
        state.advance(view, view.now);
        let mut plan = Plan { wake: state.machine.next_completion(), ..Plan::default() };
        let mut ends = std::mem::take(&mut state.ends);
        let (usual_wait, free_millis) = (state.waits.median(), state.capacity.free());
        let mut round = Round::new(rules, placer, view, &mut ends, usual_wait, free_millis);
        let mut walk = state.queue.walk_by_turns(view);
        let mut blocked = false;
        while let Some(turn) = walk.next() {
            let (job, entry): (_, &Entry) = (&view.pending[&turn.job], &state[turn.job]);
            match round.decide(turn.class, job, entry, &state.delayed_jobs) {
                JobDecision::Start(proposal) => {
                    let why = explain::explain_start(view.now, entry, &proposal);
                    plan.actions.push(Proposal { why, ..proposal }.start(job.id, &entry.profile));
                    walk.note_start();
                }
                JobDecision::Delay(until) => wake_by(&mut plan, until),
                JobDecision::DelayClass(until) => {
                    wake_by(&mut plan, until);
                    walk.close();
                }
                JobDecision::ConflictsWithReservation => {}
                JobDecision::Pass => {
                    walk.close();
                }
                JobDecision::Block => {
                    blocked = true;
                    break;
                }
            }
        }
        let scans = round.scans;
        state.ends = ends;
        // After a block, jobs that were not scanned may be the first to stop waiting.
        if !blocked {
            state.delayed_jobs.record_scans(scans);
        }
        plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        self.state.advance(view, view.now);
        let mut reasons = self.explain_queued(view);
        reasons.extend(self.explain_on_machine(view));
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

/// The end of time is no reason to wake up.
fn wake_by(plan: &mut Plan, at: Time) {
    let earliest = plan.wake.map_or(at, |wake| wake.min(at));
    plan.wake = Some(earliest).filter(|at| *at < Time::NEVER);
}
