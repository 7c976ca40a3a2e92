//! Figures of the cluster for metrics, and what jobs did with their GPUs.

use cohabit_types::{Figures, JobId, UsageRecord, UsageReport, UsageReportRequest};

use crate::Error;
use crate::call::{Client, short_call_context};
use crate::link::HeadConnection;

impl Client {
    /// What there is in the cluster now, and what its head has counted since it started.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn figures(&self) -> Result<Figures, Error> {
        let figures = |to: HeadConnection| async move { to.service.figures(short_call_context()).await };
        Ok(*self.call(figures).await?)
    }

    /// What ranks of these jobs did with their GPUs: those that have ended first, then those that run, as of
    /// the last minute. Nothing for jobs on host slots, or whose GPUs were never read. At most 256 jobs;
    /// of more than 2,048 records, the earliest attempts of the last jobs are left out.
    ///
    /// # Errors
    /// Those of the link, and too many jobs.
    pub async fn usage(&self, jobs: Vec<JobId>) -> Result<Vec<UsageRecord>, Error> {
        let usage = move |to: HeadConnection| {
            let jobs = jobs.clone();
            async move { to.service.usage(short_call_context(), jobs).await }
        };
        self.call(usage).await
    }

    /// What users and projects had over some days, and what became of it: to admins and viewers of all, to
    /// users of themselves and their project. At most ten years.
    ///
    /// # Errors
    /// Those of the link, and days that make no sense.
    pub async fn usage_report(&self, request: UsageReportRequest) -> Result<UsageReport, Error> {
        let report = move |to: HeadConnection| async move {
            to.service.usage_report(short_call_context(), request).await
        };
        Ok(*self.call(report).await?)
    }
}
