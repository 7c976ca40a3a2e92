//! A job that is only thought of: what would become of it if it were submitted now. Nothing of it is kept.

use cohabit_policy::{DryRunResult, JobForecast, PendingJob, Proposal};
use cohabit_types::{
    ColocationSlowdown, DryRun, DryRunNeighbor, DryRunPlacement, JobId, JobPrediction, NodeId, Placement,
    Principal, Refusal, Share, Slowdown, Span, Submit, Time,
};

use crate::explain::too_early;
use crate::head::Head;
use crate::submission::Submission;

/// A job as it would be if it were submitted now.
#[derive(Debug, Clone)]
pub struct DryRunJob {
    /// What a policy sees of it; of an array, its first member.
    pub job: PendingJob,
    /// What keeps it from its turn, whatever is free.
    too_early: Option<String>,
    now: Time,
}

impl Head {
    /// Checks the job as its submission would, and shows it as a policy would see it.
    ///
    /// # Errors
    /// The refusal that its submission would meet.
    pub fn prepare_dry_run(&self, now: Time, by: &Principal, submit: Submit) -> Result<DryRunJob, Refusal> {
        self.check_submission(&submit.spec)?;
        let submission = Submission::new(by, submit, now);
        let mut job = self.new_job(&submission, now);
        job.waits_for.retain(|earlier| self.final_state(*earlier).is_none());
        let number = self.last_number + 1;
        let id = submission.jobs(number).first().copied().unwrap_or(JobId::new(number));
        let too_early = too_early(now, &job).map(|(_, why)| why);
        Ok(DryRunJob { job: submission.pending(id, &job, job.not_before.unwrap_or(now)), too_early, now })
    }

    /// What the policy said of an imagined job, in words that people know.
    pub fn considered(&self, imagined: &DryRunJob, thought: &DryRunResult) -> DryRun {
        let own = |it: &&ColocationSlowdown| it.job == imagined.job.id;
        let neighbours = thought.with_job.iter().filter(|it| !own(it));
        DryRun {
            place: thought.place.as_ref().ok().map(|proposal| self.dry_run_placement(&proposal.placement)),
            reason: imagined.reason(thought),
            predicted: imagined.predicted(thought),
            company: thought.with_job.iter().find(own).cloned(),
            neighbours: neighbours.map(|then| self.dry_run_neighbor(then, &thought.current)).collect(),
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
    fn start<'t>(&self, thought: &'t DryRunResult) -> Option<&'t Proposal> {
        let at_once = |expected: &JobForecast| expected.starts_at.is_some_and(|at| at <= self.now);
        let its_turn = self.too_early.is_none() && thought.forecast.as_ref().is_none_or(at_once);
        thought.place.as_ref().ok().filter(|_| its_turn)
    }

    fn reason(&self, thought: &DryRunResult) -> String {
        if let Some(why) = &self.too_early {
            return why.clone();
        }
        match (self.start(thought), &thought.forecast, &thought.place) {
            (Some(Proposal { why, .. }), ..) if why.is_empty() => "it would start at once".to_owned(),
            (Some(Proposal { why, .. }), ..) => format!("it would start at once: {why}"),
            (None, Some(expected), _) => expected.why.clone(),
            (None, None, Err(shortage)) => shortage.to_string(),
            (None, None, Ok(proposal)) => proposal.why.clone(),
        }
    }

    fn predicted(&self, thought: &DryRunResult) -> JobPrediction {
        let estimate = self.job.traits.estimate.as_ref();
        let expected = thought.forecast.as_ref();
        let runtime = estimate.and_then(|it| it.runtime).or_else(|| expected?.runtime);
        let company = thought.with_job.iter().find(|it| it.job == self.job.id);
        let colocation_slowdown =
            thought.place.as_ref().ok().and_then(|proposal| proposal.colocation_slowdown);
        let (starts_at, ends_at) = self.times(thought, runtime);
        JobPrediction {
            iterations: estimate.and_then(|it| it.iterations),
            runtime,
            slowdown: company.map(|it| it.predicted.expected).or(colocation_slowdown),
            gpu_memory: estimate.and_then(|it| it.gpu_memory),
            starts_at,
            ends_at,
        }
    }

    /// When it would start and end. A forecast that sees it start now although there is no place is none.
    fn times(&self, thought: &DryRunResult, runtime: Option<Span>) -> (Option<Time>, Option<Time>) {
        if let Some(Proposal { slowdown, .. }) = self.start(thought) {
            let there = |alone: Span| Span::from_secs_f64(alone.as_secs_f64() * slowdown);
            return (Some(self.now), runtime.map(|alone| self.now + there(alone)));
        }
        let expected = thought.forecast.as_ref().filter(|_| self.too_early.is_none());
        let later = expected.filter(|it| it.starts_at.is_some_and(|at| at > self.now));
        (later.and_then(|it| it.starts_at), later.and_then(|it| it.ends_at))
    }
}
