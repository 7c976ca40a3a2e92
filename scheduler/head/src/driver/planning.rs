//! Requests to the planner and its replies: plans for the head, forecasts and dry runs for clients.

use cohabit_actor::{Context, ReplyTo};
use cohabit_scheduler_core::{Event, PolicyForecasts};
use cohabit_types::{DryRun, JobSpec, Principal, Refusal, RefusalCode, Submit};

use super::dry_run::FinishedDryRun;
use super::message::{Message, Query};
use super::state::Driver;
use crate::planner::{PlanReply, fall_back};

impl Driver {
    /// Requests one plan for all that changed since the last request, once the policy knows which sets did
    /// not fit.
    pub(super) fn request_plan(&mut self, context: &mut Context<Driver>) {
        if self.has_unlearned_misfits() {
            return;
        }
        // A broken state may book devices wrongly: no plan is requested for it.
        let request = self.plan_request.take().filter(|_| !self.state_check.is_broken());
        let Some(request) = request else { return };
        self.pass_changes();
        self.figures.begin_plan();
        let now = self.parts.clock.now();
        context.pipe_to_self(self.parts.planner.plan(request, now), Message::Planned);
    }

    /// Queues the plan, or one by first come, first served if the policy gave none.
    pub(super) fn planned(&mut self, PlanReply { request, plan }: PlanReply) {
        self.figures.end_plan();
        let plan = plan.unwrap_or_else(|problem| {
            fall_back(request, &self.parts.head.view(self.parts.clock.now()), &problem)
        });
        self.queue(Event::Planned(request, plan), None);
    }

    /// Answers at once what needs no forecast, or only fresh ones; asks the policy first for the rest.
    pub(super) fn query(&mut self, query: Query, context: &mut Context<Driver>) {
        let head = &self.parts.head;
        let has_forecasts = head.has_pending() || head.has_colocated_jobs();
        let may_help = query.needs_forecasts() && has_forecasts;
        // The policy must not see a broken state, which may lack what it looks for.
        if !may_help || self.state_check.is_broken() || self.forecast_cache.is_fresh(head) {
            return self.answer(query);
        }
        if !self.forecast_cache.wait(query) {
            return;
        }
        self.pass_changes();
        let now = self.parts.clock.now();
        context.pipe_to_self(self.parts.planner.forecast(now), Message::Forecast);
    }

    /// Answers the queries that waited. Without forecasts the next query asks the policy again.
    pub(super) fn forecasts_arrived(&mut self, forecasts: Option<PolicyForecasts>) {
        if let Some(forecasts) = forecasts {
            self.forecast_cache.update(forecasts);
        }
        for query in self.forecast_cache.take_waiting() {
            self.answer(query);
        }
    }

    /// Asks the policy where a job would go that was not submitted.
    pub(super) fn dry_run(
        &mut self,
        by: &Principal,
        spec: JobSpec,
        reply_to: ReplyTo<Result<Box<DryRun>, Refusal>>,
        context: &mut Context<Driver>,
    ) {
        if let Some(refusal) = self.state_check.refusal() {
            return reply_to.send(Err(refusal));
        }
        if let Err(refusal) = self.check_new(&spec) {
            return reply_to.send(Err(refusal));
        }
        let now = self.parts.clock.now();
        let mut submit = Submit { spec, idempotency_key: None, estimate: None };
        self.fill_estimates(&by.user, &mut submit);
        let job = match self.parts.head.prepare_dry_run(now, by, submit) {
            Ok(job) => job,
            Err(refusal) => return reply_to.send(Err(refusal)),
        };
        self.pass_changes();
        let result = self.parts.planner.dry_run(now, job.job.clone());
        let finished =
            move |result| Message::FinishedDryRun(Box::new(FinishedDryRun { job, result, reply_to }));
        context.pipe_to_self(result, finished);
    }

    pub(super) fn finish_dry_run(&self, finished: FinishedDryRun) {
        let FinishedDryRun { job, result, reply_to } = finished;
        reply_to.send(match result {
            Ok(result) => {
                Ok(Box::new(self.parts.head.finish_dry_run(&job, &result, self.parts.estimates.past_runs())))
            }
            Err(problem) => {
                let message = format!("the policy did not answer where the job would go: {problem}");
                Err(Refusal::new(RefusalCode::Unavailable, message))
            }
        });
    }

    /// The policy must know all changes before it answers.
    fn pass_changes(&mut self) {
        let changes = self.view_tracker.changes(&self.parts.head, self.parts.clock.now());
        self.parts.planner.add_changes(changes);
    }
}
