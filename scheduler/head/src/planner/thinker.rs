//! The policy with its view, on the planner's thread, and beside it the foresight that answers people.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::{
    DryRunResult, JobForecast, PendingJob, Policy, SlowdownReporter, View, ViewChange, forecast,
};
use cohabit_types::Time;

use super::{Forecasts, PlannerInput, PolicyFactory, PolicyPanic, PolicyQuery};
use crate::thread::Inbox;

pub(super) struct PlannerThread {
    new_policy: PolicyFactory,
    policy: Box<dyn Policy>,
    foresight: SlowdownReporter,
    view: View,
    /// What is known of interference; nothing but what the policy was made with, until that is told.
    knowledge: Option<InterferenceContext>,
    input: Arc<Mutex<PlannerInput>>,
}

impl PlannerThread {
    pub(super) fn new(new_policy: PolicyFactory, input: Arc<Mutex<PlannerInput>>) -> PlannerThread {
        PlannerThread {
            policy: new_policy(),
            new_policy,
            foresight: SlowdownReporter::default(),
            view: View::default(),
            knowledge: None,
            input,
        }
    }

    pub(super) fn answer_all(&mut self, mut inbox: Inbox<PolicyQuery>) {
        while let Some(question) = inbox.next() {
            match question {
                PolicyQuery::Plan(now, reply_to) => {
                    reply_to.send(self.run_guarded(now, |it| it.policy.plan(&it.view)));
                }
                PolicyQuery::Outlook(now, reply_to) => {
                    reply_to.send(self.run_guarded(now, PlannerThread::forecast_jobs))
                }
                PolicyQuery::Consider(now, job, reply_to) => {
                    reply_to.send(self.run_guarded(now, |it| it.consider(&job)));
                }
            }
        }
    }

    /// After a panic a new policy takes the place of the old one, and is told of everything that lives.
    fn run_guarded<T>(
        &mut self,
        now: Time,
        thought: impl FnOnce(&mut PlannerThread) -> T,
    ) -> Result<T, PolicyPanic> {
        let PlannerInput { changes, knowledge } =
            std::mem::take(&mut *self.input.lock().unwrap_or_else(PoisonError::into_inner));
        self.view.now = now;
        self.view.apply(&changes);
        self.knowledge = knowledge.clone().or_else(|| self.knowledge.take());
        let answer = catch_unwind(AssertUnwindSafe(|| {
            if let Some(knowledge) = knowledge {
                self.policy.set_interference(&knowledge);
                self.foresight.set_interference(&knowledge);
            }
            self.policy.learn(&self.view, &changes);
            self.foresight.learn(&self.view, &changes);
            thought(self)
        }));
        if answer.is_err() {
            self.policy = (self.new_policy)();
            self.foresight = SlowdownReporter::default();
            let everything = self.view.as_changes();
            let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
            input.changes.splice(..0, everything);
            input.knowledge = input.knowledge.take().or_else(|| self.knowledge.clone());
        }
        answer.map_err(|_| PolicyPanic)
    }

    fn forecast_jobs(&mut self) -> Forecasts {
        let prospects = self.policy.explain_pending(&self.view);
        Forecasts {
            expected: forecast(&self.view, prospects),
            company: self.foresight.report_current(&self.view),
        }
    }

    fn consider(&mut self, job: &PendingJob) -> DryRunResult {
        let place = self.policy.dry_run(&self.view, job);
        let company = match &place {
            Ok(proposal) => self.foresight.report_with(&self.view, job, &proposal.placement),
            Err(_) => Vec::new(),
        };
        let present = self.foresight.report_current(&self.view);
        DryRunResult { place, with_job: company, current: present, forecast: self.forecast_of(job) }
    }

    /// What the job has to expect behind those that wait. A policy of its own is asked: in the books of the
    /// one that plans, nothing may be left of a job that nobody submitted.
    fn forecast_of(&self, job: &PendingJob) -> Option<JobForecast> {
        let mut view = self.view.clone();
        view.apply(&[ViewChange::Pending(job.clone())]);
        let mut policy = (self.new_policy)();
        if let Some(knowledge) = &self.knowledge {
            policy.set_interference(knowledge);
        }
        policy.learn(&view, &view.as_changes());
        forecast(&view, policy.explain_pending(&view)).into_iter().find(|it| it.job == job.id)
    }
}
