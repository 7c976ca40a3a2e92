//! Memory of a GPU that was predicted for a job which does not say how much it needs: with it, it may share.
//!
//! A wrong prediction may cost a job one attempt and nothing more. After the first failure that may be due to
//! it, or when no GPU is left that holds so much, the job has its GPU alone, as if nothing had been
//! predicted.

use std::collections::BTreeMap;

use cohabit_types::{
    AttemptId, Bytes, Demand, Inventory, JobEventKind, JobId, JobPhase, NodeId, ReasonCode, Time,
};

use crate::head::Head;
use crate::job::{Attempt, Job};
use crate::node::Node;
use crate::submission::Submission;
use crate::turn::Transition;

impl Submission {
    /// The memory on each device that was predicted, for a job that may share by it and not without.
    pub(crate) fn predicted_memory(&self) -> Option<Bytes> {
        let demand = self.spec.demand;
        let with = Demand { gpu_memory: self.estimate.as_ref()?.gpu_memory, ..demand };
        with.gpu_memory.filter(|_| with.may_have_neighbours() && !demand.may_have_neighbours())
    }
}

impl Job {
    /// What is predicted of its memory, as long as that is trusted.
    pub(crate) fn predicted_memory(&self, submission: &Submission) -> Option<Bytes> {
        submission.predicted_memory().filter(|_| self.alone_from.is_none())
    }

    /// What its attempts occupy: what its user demands, with what is predicted.
    pub(crate) fn demand(&self, submission: &Submission) -> Demand {
        let demand = submission.spec.demand;
        Demand { gpu_memory: demand.gpu_memory.or(self.predicted_memory(submission)), ..demand }
    }

    /// Whether the failure of this attempt was laid to what had been predicted.
    pub(crate) fn failed_by_prediction(&self, failed: &Attempt) -> bool {
        self.alone_from == Some(failed.number + 1)
    }

    /// For people: that it does not share any more, although it might by what was predicted.
    pub(crate) fn exclusive_gpu_sentence(&self, submission: &Submission) -> Option<String> {
        let (predicted, attempt) = (submission.predicted_memory()?, self.alone_from?);
        let goes_on = self.state.phase() != JobPhase::Ended;
        goes_on.then(|| {
            format!(
                "Memory for it was only predicted ({predicted}), and that counts no longer: from attempt \
                 {attempt} on it has its GPU alone."
            )
        })
    }

    const fn next_attempt(&self) -> u32 {
        self.attempts.len() as u32 + 1
    }
}

impl Head {
    /// What the attempts of a job in memory occupy.
    pub(crate) fn demand(&self, id: JobId) -> Demand {
        self.jobs[&id].demand(&self.submissions[&id.number])
    }

    /// A job of this submission as it is before anything happened to it.
    pub(crate) fn new_job(&self, submission: &Submission, now: Time) -> Job {
        let mut job = submission.initial_job(now);
        if self.is_too_large(&job, submission) {
            job.alone_from = Some(1);
        }
        job
    }

    /// Whether less may fit into the nodes once this one is there as its inventory says: while none was
    /// known, anything did.
    pub(crate) fn may_hold_less(&self, id: NodeId, inventory: &Inventory) -> bool {
        let is_first = !self.nodes.iter().any(|(other, node)| *other != id && !node.is_lost());
        let now = || inventory.devices.iter().map(|it| it.memory);
        let changed = |node: &Node| !node.devices.iter().map(|it| it.device.memory).eq(now());
        is_first || self.nodes.get(&id).is_some_and(changed)
    }

    /// Whether no GPU holds what is predicted for it: it must not wait for one that never comes.
    fn is_too_large(&self, job: &Job, submission: &Submission) -> bool {
        let is_predicted = job.predicted_memory(submission).is_some();
        is_predicted && self.check_satisfiable(&job.demand(submission)).is_err()
    }
}

impl Transition<'_> {
    /// Lays a failure to memory that was only predicted, if it may be due to that.
    pub(crate) fn attribute_to_prediction(
        &mut self,
        id: JobId,
        failed: &Attempt,
        reason: ReasonCode,
    ) -> bool {
        let for_memory = matches!(reason, ReasonCode::GpuOom | ReasonCode::ExitCode | ReasonCode::Signalled);
        for_memory && self.drop_memory_prediction(id, Some(id.attempt(failed.number)))
    }

    /// A waiting job for which more memory is predicted than any GPU has is to have one alone.
    pub(crate) fn drop_prediction_if_too_large(&mut self, id: JobId) {
        if self.head.is_too_large(&self.head.jobs[&id], &self.head.submissions[&id.number]) {
            self.drop_memory_prediction(id, None);
        }
    }

    /// The same for all that wait, when the nodes hold less than before.
    pub(crate) fn drop_predictions_too_large(&mut self) {
        let mut sizes: BTreeMap<Demand, bool> = BTreeMap::new();
        let head = &self.head;
        let mut is_too_large = |id: &JobId| {
            let (job, submission) = (&head.jobs[id], &head.submissions[&id.number]);
            let waits = job.state.phase() == JobPhase::Waiting;
            let is_predicted = waits && job.predicted_memory(submission).is_some();
            let demand = job.demand(submission);
            is_predicted && *sizes.entry(demand).or_insert_with(|| head.check_satisfiable(&demand).is_err())
        };
        let too_large: Vec<JobId> = head.unended.iter().filter(|id| is_too_large(id)).copied().collect();
        for id in too_large {
            self.drop_memory_prediction(id, None);
            self.refresh_eligibility(id);
        }
    }

    /// The next attempt has its GPU alone, as all later ones. False if nothing was trusted.
    fn drop_memory_prediction(&mut self, id: JobId, failed: Option<AttemptId>) -> bool {
        let job = &self.head.jobs[&id];
        let Some(predicted) = job.predicted_memory(&self.head.submissions[&id.number]) else { return false };
        let next = job.next_attempt();
        self.job_mut(id).alone_from = Some(next);
        self.record_event(id, JobEventKind::Distrusted { attempt: id.attempt(next), predicted, failed });
        true
    }
}
