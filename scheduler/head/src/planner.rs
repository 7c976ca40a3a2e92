//! The planner: the policy on a thread of its own, a limit on its time, and a cheap policy for when it is
//! exceeded.
//!
//! A slow or broken policy costs its own plans and nothing else: the driver never waits for it. The thread
//! keeps the policy's view of the cluster up to date by changes, which are handed over with the next
//! question, whatever became of the last one.

mod thinker;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cohabit_actor::{Address, AskError, ReplyTo};
use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::{
    Action, DryRunResult, JobForecast, PendingJob, Plan, Policy, View, ViewChange, first_come_first_served,
};
use cohabit_types::{ColocationSlowdown, PlanRequestId, Time};

use crate::thread::{self, ActorThread};
use thinker::PlannerThread;

/// Makes a new policy that has seen nothing.
pub(crate) type PolicyFactory = Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>;

/// Questions that may wait for a policy that is late.
const CAPACITY: usize = 4;

/// The driver's end of the planner.
#[derive(Debug)]
pub(crate) struct Planner {
    questions: Address<PolicyQuery>,
    /// What the policy has not heard of yet.
    input: Arc<Mutex<PlannerInput>>,
    limit: Duration,
    _thread: ActorThread,
}

/// What the policy is told before it answers the next question.
#[derive(Debug, Default)]
struct PlannerInput {
    /// Of the cluster, in their order.
    changes: Vec<ViewChange>,
    /// What is known of interference, if that is new.
    knowledge: Option<InterferenceContext>,
}

/// The answer to a question for a plan, in time.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Which question.
    pub(crate) ticket: PlanRequestId,
    /// The plan, or why there is none.
    pub(crate) plan: Result<Plan, String>,
}

/// What people are told of jobs that nobody but a policy, or a predictor, knows.
#[derive(Debug)]
pub(crate) struct Forecasts {
    /// What those that wait have to expect.
    pub(crate) expected: Vec<JobForecast>,
    /// What neighbours on a device cost each other.
    pub(crate) company: Vec<ColocationSlowdown>,
}

/// To the thread: the moment, and where the answer goes.
enum PolicyQuery {
    Plan(Time, ReplyTo<Result<Plan, PolicyPanic>>),
    Outlook(Time, ReplyTo<Result<Forecasts, PolicyPanic>>),
    Consider(Time, Box<PendingJob>, ReplyTo<Result<DryRunResult, PolicyPanic>>),
}

/// Makes a question of the place where its answer goes.
type QueryConstructor<T> = Box<dyn FnOnce(ReplyTo<Result<T, PolicyPanic>>) -> PolicyQuery + Send>;

/// The policy panicked over the question.
#[derive(Debug)]
struct PolicyPanic;

impl Planner {
    /// Starts the thread. Each answer may take as long as `limit`.
    pub(crate) fn start(policy: PolicyFactory, limit: Duration) -> io::Result<Planner> {
        let input = Arc::<Mutex<PlannerInput>>::default();
        let mut thinker = PlannerThread::new(policy, Arc::clone(&input));
        let (questions, thread) = thread::spawn("planner", CAPACITY, move |inbox| thinker.answer_all(inbox))?;
        Ok(Planner { questions, input, limit, _thread: thread })
    }

    /// Hands over what changed; the policy hears of it with the next question.
    pub(crate) fn change(&self, changes: Vec<ViewChange>) {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).changes.extend(changes);
    }

    /// Hands over what is known of interference from now on.
    pub(crate) fn set_interference(&self, knowledge: InterferenceContext) {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).knowledge = Some(knowledge);
    }

    /// A question to wait for elsewhere; the answer never comes later than the limit.
    pub(crate) fn ask(&self, ticket: PlanRequestId, now: Time) -> impl Future<Output = Planned> + use<> {
        let answer = self.answer(Box::new(move |reply_to| PolicyQuery::Plan(now, reply_to)));
        async move { Planned { ticket, plan: answer.await } }
    }

    /// What jobs have to expect; nothing, if the policy cannot say in time.
    pub(crate) fn outlook(&self, now: Time) -> impl Future<Output = Option<Forecasts>> + use<> {
        let answer = self.answer(Box::new(move |reply_to| PolicyQuery::Outlook(now, reply_to)));
        async move { answer.await.ok() }
    }

    /// What becomes of a job that is only thought of.
    ///
    /// # Errors
    /// Why the policy cannot say.
    pub(crate) fn consider(
        &self,
        now: Time,
        job: PendingJob,
    ) -> impl Future<Output = Result<DryRunResult, String>> + use<> {
        let job = Box::new(job);
        self.answer(Box::new(move |reply_to| PolicyQuery::Consider(now, job, reply_to)))
    }

    fn answer<T: Send + 'static>(
        &self,
        question: QueryConstructor<T>,
    ) -> impl Future<Output = Result<T, String>> + use<T> {
        let (questions, limit) = (self.questions.clone(), self.limit);
        async move {
            match questions.ask_within(limit, question).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(PolicyPanic)) => Err("it panicked".to_owned()),
                Err(AskError::TimedOut { .. }) => Err(format!("it took longer than {limit:?}")),
                Err(AskError::Closed(_) | AskError::NoReply) => Err("its thread has ended".to_owned()),
            }
        }
    }
}

/// The plan of first come, first served, which says in each story whose place it takes.
pub(crate) fn fall_back(ticket: PlanRequestId, view: &View, trouble: &str) -> Plan {
    tracing::warn!(
        ticket = ticket.0,
        trouble,
        "the policy gave no plan; this one is first come, first served"
    );
    let mut policy = first_come_first_served();
    policy.learn(view, &view.as_changes());
    let mut plan = policy.plan(view);
    for action in &mut plan.actions {
        let (Action::Place { why, .. } | Action::Preempt { why, .. }) = action;
        let separator = if why.is_empty() { "" } else { "; " };
        *why = format!(
            "{why}{separator}planned first come, first served, for the policy gave no plan: {trouble}"
        );
    }
    plan
}

#[cfg(test)]
mod tests;
