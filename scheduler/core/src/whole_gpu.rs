//! Jobs that ask for a part of a GPU and get all of it, because nobody knows how much memory they need.

use cohabit_types::{Demand, GpuRequest, JobId, Share, Sharing};

use crate::head::Head;
use crate::job::Job;
use crate::submission::SubmissionState;

impl Head {
    /// What whoever submits a job should know of it.
    pub(crate) fn submission_notes(&self, submission: &SubmissionState, job: &Job) -> Vec<String> {
        let Some(part) = self.unshared_part(job.demand(submission)) else { return Vec::new() };
        vec![format!(
            "it asks for {part} of a GPU and gets a whole one, because how much memory it needs is unknown: add \
             --gpu-mem 20G, say, so that others can use the rest. After a few runs its memory is predicted"
        )]
    }

    /// Why a job needs, or has, more of a GPU than it asks for.
    pub(crate) fn whole_gpu_clause(&self, id: JobId, job: &Job) -> Option<String> {
        let submission = self.submissions.get(&id.number)?;
        let part = self.unshared_part(job.demand(submission))?;
        let verb = if job.live_attempt().is_some() { "has" } else { "needs" };
        Some(format!("it {verb} a whole GPU instead of {part} of one, because it states no --gpu-mem"))
    }

    /// The part of a GPU that is asked for, if it takes a whole one for want of a figure. Devices without
    /// memory of their own are shared all the same.
    fn unshared_part(&self, demand: Demand) -> Option<Share> {
        let (GpuRequest::Part(part), Sharing::Shared, 1, None) =
            (demand.gpus, demand.sharing, demand.nodes, demand.gpu_memory)
        else {
            return None;
        };
        let mut devices = self.nodes.values().flat_map(|node| &node.devices);
        devices.any(|it| it.device.memory.is_some()).then_some(part)
    }
}
