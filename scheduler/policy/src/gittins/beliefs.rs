//! What is believed of the work time of jobs, learned from every job that passes a bin or ends.
//!
//! A job that still runs counts too: whoever waits behind its siblings profits from their news before any of
//! them has ended.

use cohabit_types::Time;

use super::bins::{self, BINS};
use super::contexts::{Contexts, JobContexts, JobKind};
use super::estimates::{self, EstimateOrigin, EstimateRecords, EstimatedWork};
use super::hazards::{Hazards, Rest};

/// The beliefs about all jobs.
#[derive(Debug, Clone, Default)]
pub(super) struct Beliefs {
    contexts: Contexts,
}

/// What a belief about one job is based on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Evidence {
    /// What the job reports of its progress.
    Progress,
    /// An estimate that was made at its submission, and the probability that it comes true.
    Estimate(EstimateOrigin, f64),
    /// This many ended jobs of its kind.
    Kind(u64),
    /// This many ended jobs of its group, of other kinds.
    Group(u64),
    /// This many ended jobs of other groups.
    Others(u64),
    /// Nothing.
    None,
}

impl Beliefs {
    /// A job appears; it belongs to its contexts until [`Beliefs::leave`].
    pub(super) fn join(&mut self, kind: JobKind, submitted_at: Time) -> JobContexts {
        let contexts = self.contexts.of(kind, submitted_at);
        self.contexts.join_live(&contexts);
        contexts
    }

    /// A job is gone.
    pub(super) fn leave(&mut self, job: &JobContexts) {
        self.contexts.leave(job);
    }

    /// A job passed the end of a bin.
    pub(super) fn pass(&mut self, job: &JobContexts, bin: usize) {
        self.contexts.pass(job, bin);
    }

    /// A job ended, or will surely end, after this work time in seconds; it was counted as passing all bins
    /// before `from`.
    pub(super) fn end(&mut self, job: &JobContexts, from: usize, worked: f64) {
        let last = bins::containing(worked).max(from).min(BINS - 1);
        (from..last).for_each(|bin| self.contexts.pass(job, bin));
        self.contexts.end(job, last);
    }

    /// A job came out to have worked, or to work at least, for this time in seconds: so much for its
    /// estimate.
    pub(super) fn judge(&mut self, job: &JobContexts, estimate: EstimatedWork, worked: f64) {
        self.contexts.judge(job, estimate.source, estimate.comes_true(worked));
    }

    /// The rest of a job that has worked for `age` seconds, in seconds.
    pub(super) fn rest(
        &self,
        job: &JobContexts,
        estimated: Option<EstimatedWork>,
        age: f64,
        limit: f64,
    ) -> Rest {
        let contexts = self.contexts.of_job(job);
        let hazards = Hazards::of(contexts.iter().flatten().map(|context| &context.counts));
        let records = contexts.iter().flatten().map(|context| &context.estimates);
        match trusted(estimated, records) {
            Some((estimate, trust)) => hazards.believing(estimate.seconds, trust).rest(age, limit),
            None => hazards.rest(age, limit),
        }
    }

    #[cfg(test)]
    pub(super) fn hazards(&self, job: &JobContexts) -> Hazards {
        Hazards::of(self.contexts.counts(job))
    }

    pub(super) fn evidence(&self, job: &JobContexts, estimated: Option<EstimatedWork>) -> Evidence {
        let contexts = self.contexts.of_job(job);
        let records = contexts.iter().flatten().map(|context| &context.estimates);
        if let Some((estimate, trust)) = trusted(estimated, records) {
            return Evidence::Estimate(estimate.source, trust);
        }
        match self.contexts.ended(job) {
            [0, 0, 0] => Evidence::None,
            [0, 0, all] => Evidence::Others(all),
            [0, in_group, _] => Evidence::Group(in_group),
            [alike, ..] => Evidence::Kind(alike),
        }
    }

    #[cfg(test)]
    pub(super) fn counts<'b>(
        &'b self,
        job: &'b JobContexts,
    ) -> impl Iterator<Item = &'b super::counts::BinCounts> {
        self.contexts.counts(job)
    }
}

/// An estimate that is believed, and how far, by the records of the contexts of its job, the widest first.
fn trusted<'r>(
    estimated: Option<EstimatedWork>,
    records: impl Iterator<Item = &'r EstimateRecords>,
) -> Option<(EstimatedWork, f64)> {
    let estimate = estimated?;
    Some((estimate, estimates::trust(estimate.source, records)?))
}
