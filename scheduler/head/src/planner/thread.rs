//! The planner's thread: the policy with its view of the cluster, and the reporter of predicted slowdowns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::{DryRunResult, PendingJob, Policy, QueueForecast, SlowdownReporter, View, ViewChange};
use cohabit_scheduler_core::PolicyForecasts;
use cohabit_types::Time;

use super::request::{PlannerInput, PolicyFactory, PolicyPanic, PolicyQuery};
use crate::actor_thread::Inbox;

pub(super) struct PlannerThread {
    new_policy: PolicyFactory,
    policy: Box<dyn Policy>,
    slowdowns: SlowdownReporter,
    view: View,
    /// The latest knowledge of interference; `None` until there is any beyond what the policy was created
    /// with.
    knowledge: Option<InterferenceContext>,
    input: Arc<Mutex<PlannerInput>>,
}

impl PlannerThread {
    pub(super) fn new(new_policy: PolicyFactory, input: Arc<Mutex<PlannerInput>>) -> PlannerThread {
        PlannerThread {
            policy: new_policy(),
            new_policy,
            slowdowns: SlowdownReporter::default(),
            view: View::default(),
            knowledge: None,
            input,
        }
    }

    pub(super) fn serve(&mut self, mut inbox: Inbox<PolicyQuery>) {
        while let Some(query) = inbox.next() {
            match query {
                PolicyQuery::Plan(now, reply_to) => {
                    reply_to.send(self.run_guarded(now, |it| it.policy.plan(&it.view)));
                }
                PolicyQuery::Forecast(now, reply_to) => {
                    reply_to.send(self.run_guarded(now, PlannerThread::forecast_jobs))
                }
                PolicyQuery::DryRun(now, job, reply_to) => {
                    reply_to.send(self.run_guarded(now, |it| it.dry_run(&job)));
                }
            }
        }
    }

    /// Brings the policy up to date and runs the query. After a panic a new policy replaces it and learns
    /// the whole view.
    fn run_guarded<T>(
        &mut self,
        now: Time,
        query: impl FnOnce(&mut PlannerThread) -> T,
    ) -> Result<T, PolicyPanic> {
        let PlannerInput { changes, knowledge } =
            std::mem::take(&mut *self.input.lock().unwrap_or_else(PoisonError::into_inner));
        self.view.now = now;
        self.view.apply(&changes);
        self.knowledge = knowledge.clone().or_else(|| self.knowledge.take());
        let answer = catch_unwind(AssertUnwindSafe(|| {
            if let Some(knowledge) = knowledge {
                self.policy.set_interference(&knowledge);
                self.slowdowns.set_interference(&knowledge);
            }
            self.policy.learn(&self.view, &changes);
            self.slowdowns.learn(&self.view, &changes);
            query(self)
        }));
        if answer.is_err() {
            self.policy = (self.new_policy)();
            self.slowdowns = SlowdownReporter::default();
            let everything = self.view.as_changes();
            let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
            input.changes.splice(..0, everything);
            input.knowledge = input.knowledge.take().or_else(|| self.knowledge.clone());
        }
        answer.map_err(|_| PolicyPanic)
    }

    fn forecast_jobs(&mut self) -> PolicyForecasts {
        let pending = self.policy.explain_pending(&self.view);
        PolicyForecasts::new(
            QueueForecast::new(&self.view, pending),
            self.slowdowns.report_current(&self.view),
        )
    }

    fn dry_run(&mut self, job: &PendingJob) -> DryRunResult {
        let place = self.policy.dry_run(&self.view, job);
        let with_job = match &place {
            Ok(proposal) => self.slowdowns.report_with(&self.view, job, &proposal.placement),
            Err(_) => Vec::new(),
        };
        let present = self.slowdowns.report_current(&self.view);
        DryRunResult { place, with_job, current: present, queue: self.queue_with(job) }
    }

    /// The queue with this job among those that wait already. A new policy answers this, because the one that
    /// plans must keep no trace of a job that was not submitted.
    fn queue_with(&self, job: &PendingJob) -> QueueForecast {
        let mut view = self.view.clone();
        view.apply(&[ViewChange::Pending(job.clone())]);
        let mut policy = (self.new_policy)();
        if let Some(knowledge) = &self.knowledge {
            policy.set_interference(knowledge);
        }
        policy.learn(&view, &view.as_changes());
        QueueForecast::new(&view, policy.explain_pending(&view))
    }
}
