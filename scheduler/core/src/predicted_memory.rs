//! Predicted GPU memory, for jobs that do not say how much they need: with a prediction, such a job may share
//! a GPU.
//!
//! A wrong prediction costs a job at most one attempt. After the first failure that it may have caused, or
//! when no GPU is left that has so much memory, the prediction is dropped and the job has its GPU alone.

use std::collections::BTreeMap;

use cohabit_types::{AttemptId, Bytes, Demand, Inventory, JobEventKind, JobId, NodeId, ReasonCode, Time};

use crate::head::Head;
use crate::job::{Attempt, Job};
use crate::node::Node;
use crate::submission::SubmissionState;
use crate::transition::Transition;

impl SubmissionState {
    /// The memory predicted on each device, for a job that may share a GPU only because of the prediction.
    pub(crate) fn predicted_memory(&self) -> Option<Bytes> {
        let demand = self.spec.demand;
        let with = Demand { gpu_memory: self.estimate.as_ref()?.gpu_memory, ..demand };
        with.gpu_memory.filter(|_| with.may_have_neighbors() && !demand.may_have_neighbors())
    }
}

impl Job {
    /// Its predicted memory, while it may share a GPU because of that.
    pub(crate) fn predicted_memory(&self, submission: &SubmissionState) -> Option<Bytes> {
        let is_used = self.exclusive_from_attempt.is_none() && !self.is_isolated();
        submission.predicted_memory().filter(|_| is_used)
    }

    /// What its attempts occupy: what its user demands, and its predicted memory.
    pub(crate) fn demand(&self, submission: &SubmissionState) -> Demand {
        let demand = submission.spec.demand;
        let gpu_memory = demand.gpu_memory.or(self.predicted_memory(submission));
        self.isolate(Demand { gpu_memory, has_code: submission.spec.code.is_some(), ..demand })
    }

    /// Whether this attempt's failure was attributed to the prediction.
    pub(crate) fn failed_by_prediction(&self, failed: &Attempt) -> bool {
        self.exclusive_from_attempt == Some(failed.number + 1)
    }

    /// Explains that it no longer shares a GPU although a prediction would allow it.
    pub(crate) fn exclusive_gpu_sentence(&self, submission: &SubmissionState) -> Option<String> {
        let (predicted, attempt) = (submission.predicted_memory()?, self.exclusive_from_attempt?);
        let goes_on = self.ended().is_none();
        goes_on.then(|| {
            format!(
                "The GPU memory predicted for it ({predicted}) is no longer used: from attempt {attempt} \
                 on, it has a GPU to itself."
            )
        })
    }

    fn next_attempt(&self) -> u32 {
        self.attempt_count() + 1
    }
}

impl Head {
    /// What the attempts of a job in memory occupy.
    pub(crate) fn demand(&self, id: JobId) -> Demand {
        self.jobs[&id].demand(&self.submissions[&id.number])
    }

    /// A job of this submission to which nothing has happened yet.
    pub(crate) fn new_job(&self, submission: &SubmissionState, now: Time) -> Job {
        let mut job = submission.initial_job(now);
        if self.is_too_large(&job, submission) {
            job.exclusive_from_attempt = Some(1);
        }
        job
    }

    /// Whether jobs that fitted before may be too large once this node has joined with this inventory. While
    /// no node is known, everything fits.
    pub(crate) fn may_hold_less(&self, id: NodeId, inventory: &Inventory) -> bool {
        let is_first = !self.nodes.iter().any(|(other, node)| *other != id && !node.is_lost());
        let now = || inventory.devices.iter().map(|it| it.memory);
        let changed = |node: &Node| !node.devices.iter().map(|it| it.device.memory).eq(now());
        is_first || self.nodes.get(&id).is_some_and(changed)
    }

    /// Whether no GPU has the memory that is predicted for it: it must not wait for one for ever.
    fn is_too_large(&self, job: &Job, submission: &SubmissionState) -> bool {
        let is_predicted = job.predicted_memory(submission).is_some();
        is_predicted && self.check_satisfiable(&job.demand(submission)).is_err()
    }
}

impl Transition<'_> {
    /// Attributes a failure to predicted memory, if that may have caused it.
    pub(crate) fn attribute_to_prediction(
        &mut self,
        id: JobId,
        failed: &Attempt,
        reason: ReasonCode,
    ) -> bool {
        let for_memory = matches!(reason, ReasonCode::GpuOom | ReasonCode::ExitCode | ReasonCode::Signalled);
        for_memory && self.drop_memory_prediction(id, Some(id.attempt(failed.number)))
    }

    /// Drops the prediction of a waiting job if no GPU has that much memory.
    pub(crate) fn drop_prediction_if_too_large(&mut self, id: JobId) {
        if self.head.is_too_large(&self.head.jobs[&id], &self.head.submissions[&id.number]) {
            self.drop_memory_prediction(id, None);
        }
    }

    /// The same for all waiting jobs, after the largest nodes may have become smaller.
    pub(crate) fn drop_predictions_too_large(&mut self) {
        let mut sizes: BTreeMap<Demand, bool> = BTreeMap::new();
        let head = &self.head;
        let mut is_too_large = |id: &JobId| {
            let (job, submission) = (&head.jobs[id], &head.submissions[&id.number]);
            let waits = job.waiting().is_some();
            let is_predicted = waits && job.predicted_memory(submission).is_some();
            let demand = job.demand(submission);
            is_predicted && *sizes.entry(demand).or_insert_with(|| head.check_satisfiable(&demand).is_err())
        };
        let too_large: Vec<JobId> = head.active.iter().filter(|id| is_too_large(id)).copied().collect();
        for id in too_large {
            self.drop_memory_prediction(id, None);
            self.refresh_eligibility(id);
        }
    }

    /// Gives the next attempt, and all later ones, a GPU of their own. False if there was no prediction to
    /// drop.
    fn drop_memory_prediction(&mut self, id: JobId, failed: Option<AttemptId>) -> bool {
        let job = &self.head.jobs[&id];
        let Some(predicted) = job.predicted_memory(&self.head.submissions[&id.number]) else { return false };
        let next = job.next_attempt();
        self.job_mut(id).exclusive_from_attempt = Some(next);
        self.record_event(id, JobEventKind::Distrusted { attempt: id.attempt(next), predicted, failed });
        true
    }
}
