//! The planner: runs the policy on a thread of its own with a time limit, and plans first come, first
//! served when the policy fails or exceeds the limit.
//!
//! A slow or broken policy delays only its own plans, because the driver never waits for it. The policy's
//! view of the cluster is kept up to date by changes, which go to the thread with the next query even if the
//! last one failed.

mod request;
mod thread;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cohabit_actor::{Address, AskError, ReplyTo};
use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::{Action, DryRunResult, PendingJob, Plan, View, ViewChange, first_come_first_served};
use cohabit_scheduler_core::PolicyForecasts;
use cohabit_types::{PlanRequestId, Span, Time};

use crate::actor_thread::{self, ActorThread};
use request::{PlannerInput, PolicyPanic, PolicyQuery};
use thread::PlannerThread;

pub(crate) use request::PolicyFactory;

/// How many queries may wait for a slow policy.
const CAPACITY: usize = 4;

/// The driver's end of the planner.
#[derive(Debug)]
pub(crate) struct Planner {
    queries: Address<PolicyQuery>,
    /// What the policy has not learned yet.
    input: Arc<Mutex<PlannerInput>>,
    limit: Duration,
    _thread: ActorThread,
}

/// A plan, or why there is none in time.
#[derive(Debug)]
pub(crate) struct PlanReply {
    /// The request that it answers.
    pub(crate) request: PlanRequestId,
    /// The plan, or why the policy gave none.
    pub(crate) plan: Result<Plan, String>,
}

/// Makes a query of the place where its result goes.
type QueryConstructor<T> = Box<dyn FnOnce(ReplyTo<Result<T, PolicyPanic>>) -> PolicyQuery + Send>;

impl Planner {
    /// Starts the thread. Each query may take as long as `limit`.
    pub(crate) fn start(policy: PolicyFactory, limit: Duration) -> io::Result<Planner> {
        let input = Arc::<Mutex<PlannerInput>>::default();
        let mut planner = PlannerThread::new(policy, Arc::clone(&input));
        let (queries, thread) = actor_thread::spawn("planner", CAPACITY, move |inbox| planner.serve(inbox))?;
        Ok(Planner { queries, input, limit, _thread: thread })
    }

    /// Adds changes of the cluster, which the policy learns with the next query.
    pub(crate) fn add_changes(&self, changes: Vec<ViewChange>) {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).changes.extend(changes);
    }

    /// Sets the knowledge of interference, which the policy learns with the next query.
    pub(crate) fn set_interference(&self, knowledge: InterferenceContext) {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).knowledge = Some(knowledge);
    }

    /// Asks for a plan. The future never takes longer than the limit.
    pub(crate) fn plan(&self, request: PlanRequestId, now: Time) -> impl Future<Output = PlanReply> + use<> {
        let plan = self.ask(Box::new(move |reply_to| PolicyQuery::Plan(now, reply_to)));
        async move { PlanReply { request, plan: plan.await } }
    }

    /// Asks for forecasts; `None` if the policy gives none within the limit.
    pub(crate) fn forecast(&self, now: Time) -> impl Future<Output = Option<PolicyForecasts>> + use<> {
        let forecasts = self.ask(Box::new(move |reply_to| PolicyQuery::Forecast(now, reply_to)));
        async move { forecasts.await.ok() }
    }

    /// Asks where a job would go that was not submitted.
    ///
    /// # Errors
    /// Why the policy gives no answer.
    pub(crate) fn dry_run(
        &self,
        now: Time,
        job: PendingJob,
    ) -> impl Future<Output = Result<DryRunResult, String>> + use<> {
        let job = Box::new(job);
        self.ask(Box::new(move |reply_to| PolicyQuery::DryRun(now, job, reply_to)))
    }

    fn ask<T: Send + 'static>(
        &self,
        query: QueryConstructor<T>,
    ) -> impl Future<Output = Result<T, String>> + use<T> {
        let (queries, limit) = (self.queries.clone(), self.limit);
        async move {
            match queries.ask_within(limit, query).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(PolicyPanic)) => Err("it panicked".to_owned()),
                Err(AskError::TimedOut { .. }) => Err(format!("it took longer than {}", Span::from(limit))),
                Err(AskError::Closed(_) | AskError::NoReply) => Err("its thread has ended".to_owned()),
            }
        }
    }
}

/// A plan by first come, first served, for when the policy gave none. Each action says so in its reason.
pub(crate) fn fall_back(request: PlanRequestId, view: &View, problem: &str) -> Plan {
    tracing::warn!(
        request = request.0,
        problem,
        "the policy gave no plan; jobs are planned first come, first served"
    );
    let mut policy = first_come_first_served();
    policy.learn(view, &view.as_changes());
    let mut plan = policy.plan(view);
    for action in &mut plan.actions {
        let (Action::Place { why, .. }
        | Action::Preempt { why, .. }
        | Action::Reclaim { why, .. }
        | Action::StopIdle { why, .. }
        | Action::Allot { why, .. }) = action;
        let separator = if why.is_empty() { "" } else { "; " };
        *why = format!(
            "{why}{separator}planned first come, first served, because the policy gave no plan: {problem}"
        );
    }
    plan
}

#[cfg(test)]
mod tests;
