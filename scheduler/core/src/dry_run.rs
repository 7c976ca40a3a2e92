//! Dry runs: what would happen to a job if it were submitted now. Nothing of it is kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use cohabit_policy::{
    DryRunResult, JobFeatures, PastRuns, PendingJob, Proposal, QueueForecast, RemainingTime,
};
use cohabit_types::{
    ColocationSlowdown, DryRun, DryRunNeighbor, DryRunPlacement, JobId, JobPrediction, NodeId, Placement,
    Principal, Refusal, Role, Share, Slowdown, Span, Submit, Time,
};

use crate::expected_start::{ExpectedRun, ExpectedTime, expected_runs};
use crate::expected_times::{is_stated, with_run_times, with_times};
use crate::forecasts::PolicyForecasts;
use crate::head::Head;
use crate::reader::HeadReader;
use crate::reason::{AwaitedJobs, not_yet_eligible};
use crate::submission::SubmissionState;

/// A job as it would be if it were submitted now.
#[derive(Debug, Clone)]
pub struct DryRunJob {
    /// What a policy would see of it; of an array, the first member.
    pub job: PendingJob,
    features: JobFeatures,
    /// Whether its submission says how many steps it takes, and how long each.
    is_stated: bool,
    /// Why it would not be eligible, whatever is free.
    not_eligible: Option<String>,
    now: Time,
}

impl Head {
    /// Checks the job as its submission would, and prepares what a policy would see of it.
    ///
    /// # Errors
    /// The refusal that its submission would get.
    pub fn prepare_dry_run(&self, now: Time, by: &Principal, submit: Submit) -> Result<DryRunJob, Refusal> {
        self.check_submission(by, &submit.spec)?;
        let submission = SubmissionState::new(by, submit, now);
        let mut job = self.new_job(&submission, now);
        let mut not_before = None;
        let live = |earlier: &JobId| self.final_state(*earlier).is_none();
        let awaited: BTreeSet<JobId> =
            submission.spec.depends_on.iter().map(|it| it.job).filter(live).collect();
        if let Some(waiting) = job.waiting_mut() {
            waiting.has_dependencies = !awaited.is_empty();
            not_before = waiting.not_before;
        }
        let number = self.last_number + 1;
        let id = submission.jobs(number).first().copied().unwrap_or(JobId::new(number));
        let limit = || self.running_limit_reason(&by.user, id).filter(|_| by.role != Role::Admin);
        let count = awaited.len();
        let not_eligible = not_yet_eligible(now, &job, || AwaitedJobs::of(awaited, count));
        let not_eligible = not_eligible.map(|(_, why)| why).or_else(limit);
        let traits = Arc::new(submission.traits());
        let demand = self.with_constraints(&submission, job.demand(&submission));
        let features = JobFeatures::of(&submission.user, &submission.spec, now);
        let is_stated = is_stated(&submission.spec);
        let job = submission.pending(id, &job, not_before.unwrap_or(now), traits, demand);
        Ok(DryRunJob { job, features, is_stated, not_eligible, now })
    }

    /// What the policy said about the job, with the names that people know, and the run times of jobs like
    /// it.
    pub fn finish_dry_run(&self, job: &DryRunJob, result: &DryRunResult, past_runs: &PastRuns) -> DryRun {
        let queue = PolicyForecasts::new(result.queue.clone(), Vec::new());
        let reader = self.at(job.now).with_forecasts(&queue).with_past_runs(past_runs);
        let own = |it: &&ColocationSlowdown| it.job == job.job.id;
        let neighbors = result.with_job.iter().filter(|it| !own(it));
        DryRun {
            place: result.place.as_ref().ok().map(|proposal| self.dry_run_placement(&proposal.placement)),
            reason: job.reason(result),
            predicted: job.predicted(result, reader),
            slowdown: result.with_job.iter().find(own).cloned(),
            neighbors: neighbors.map(|then| self.dry_run_neighbor(then, &result.current)).collect(),
        }
    }

    fn dry_run_placement(&self, placement: &Placement) -> DryRunPlacement {
        let parts = &placement.parts;
        let name = |node: &NodeId| self.nodes.get(node).map(|node| node.name.clone());
        DryRunPlacement {
            nodes: parts.iter().filter_map(|part| name(&part.node)).collect(),
            devices: parts.iter().flat_map(|part| part.devices.clone()).collect(),
            share: parts.first().map_or(Share::WHOLE, |part| part.share),
        }
    }

    fn dry_run_neighbor(&self, then: &ColocationSlowdown, present: &[ColocationSlowdown]) -> DryRunNeighbor {
        let submission = self.submissions.get(&then.job.number);
        let now =
            present.iter().find(|it| it.job == then.job).map_or(Slowdown::NONE, ColocationSlowdown::slowdown);
        DryRunNeighbor {
            name: submission.map(|it| it.spec.name.clone()).unwrap_or_default(),
            now,
            then: then.clone(),
        }
    }
}

impl DryRunJob {
    /// Where it would start at once, if it would.
    fn start<'r>(&self, result: &'r DryRunResult) -> Option<&'r Proposal> {
        let its_turn = self.not_eligible.is_none() && self.is_next(&result.queue);
        result.place.as_ref().ok().filter(|_| its_turn)
    }

    /// Whether it need not wait for the end of another job, as far as the policy says.
    fn is_next(&self, queue: &QueueForecast) -> bool {
        let Some(place) = queue.jobs.iter().position(|it| it.job == self.job.id) else { return true };
        let starts = queue.replay(self.now, place + 1, |_| None);
        starts[place].is_some_and(|at| at <= self.now)
    }

    /// Why it would start at once, or would not.
    fn reason(&self, result: &DryRunResult) -> String {
        if let Some(why) = &self.not_eligible {
            return why.clone();
        }
        match (self.start(result), result.queue.job(self.job.id), &result.place) {
            (Some(Proposal { why, .. }), ..) if why.is_empty() => "it would start at once".to_owned(),
            (Some(Proposal { why, .. }), ..) => format!("it would start at once: {why}"),
            (None, Some(expected), _) => expected.why.clone(),
            (None, None, Err(shortage)) => shortage.to_string(),
            (None, None, Ok(proposal)) => proposal.why.clone(),
        }
    }

    fn predicted(&self, result: &DryRunResult, reader: HeadReader<'_>) -> JobPrediction {
        let memory = self.job.traits.estimate.as_ref().and_then(|it| it.gpu_memory);
        let known = reader.past_runs.and_then(|past| past.like(&self.features));
        let stated = result.queue.job(self.job.id).and_then(|it| it.runtime).filter(|_| self.is_stated);
        let (alone, times) = match &known {
            Some(known) => (
                Some(known.distribution.remaining(Span::ZERO)),
                with_run_times(JobPrediction::default(), known),
            ),
            None => (
                stated.map(RemainingTime::exactly),
                JobPrediction { runtime: stated, ..JobPrediction::default() },
            ),
        };
        let own = result.with_job.iter().find(|it| it.job == self.job.id);
        let colocation_slowdown =
            result.place.as_ref().ok().and_then(|proposal| proposal.colocation_slowdown);
        let run = self.expected_run(result, alone, reader);
        JobPrediction {
            iterations: self.features.iterations,
            slowdown: own.map(|it| it.predicted.expected).or(colocation_slowdown),
            gpu_memory: memory,
            ..with_times(times, run.map(|it| it.start), run.and_then(|it| it.end))
        }
    }

    /// When it would start and end, where it takes `alone` without a neighbor. A forecast that says 'now'
    /// although there is no place for it is ignored.
    fn expected_run(
        &self,
        result: &DryRunResult,
        alone: Option<RemainingTime>,
        reader: HeadReader<'_>,
    ) -> Option<ExpectedRun> {
        if let Some(Proposal { slowdown, .. }) = self.start(result) {
            let there = alone.map(|alone| alone.times(*slowdown));
            let end = there.map(|there| ExpectedTime::after(self.now, there));
            return Some(ExpectedRun { start: ExpectedTime { at: self.now, between: None }, end });
        }
        if self.not_eligible.is_some() {
            return None;
        }
        let time_left = |job| if job == self.job.id { alone } else { reader.time_left(job) };
        let run = *expected_runs(&result.queue, self.now, time_left).get(&self.job.id)?;
        Some(run).filter(|run| run.start.at > self.now)
    }
}
