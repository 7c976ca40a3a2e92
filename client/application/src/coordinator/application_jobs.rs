//! The jobs of the other processes, whoever runs them: the head, or threads of a test.

use std::future::pending;

use cohabit_application_core::{ActorId, GangSpec, NodeNumber, RunnerReport, TaskClass, TaskRunnerNumber};
use cohabit_client::{Error, JobsWatcher};
use cohabit_types::{ApplicationAnswer, ApplicationQuestion, JobId};

use super::report::report_of;
use super::runner_jobs::RunnerJobs;
use crate::local::ThreadJobs;

/// Whoever runs the other processes.
pub(super) enum ApplicationJobs {
    OfHead(RunnerJobs),
    OfThreads(ThreadJobs),
}

/// Follows jobs that are added by and by.
pub(super) enum JobReports {
    OfHead(JobsWatcher),
    /// It follows all.
    OfThreads(ThreadJobs),
}

impl ApplicationJobs {
    /// Submits the first main.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_main(&self, name: &str) -> Result<JobId, String> {
        match self {
            ApplicationJobs::OfHead(jobs) => jobs.submit_main(name).await,
            ApplicationJobs::OfThreads(jobs) => Ok(jobs.submit_main()),
        }
    }

    /// Submits the job of actors, of which this one is the first.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_gang(&self, first: ActorId, gang: &GangSpec) -> Result<JobId, String> {
        match self {
            ApplicationJobs::OfHead(jobs) => jobs.submit_gang(first, gang).await,
            ApplicationJobs::OfThreads(jobs) => Ok(jobs.submit_gang(gang)),
        }
    }

    /// Submits a runner of tasks. It is not started again: what it was to do, others do.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_tasks(
        &self,
        runner: TaskRunnerNumber,
        class: &TaskClass,
    ) -> Result<JobId, String> {
        match self {
            ApplicationJobs::OfHead(jobs) => jobs.submit_tasks(runner, class).await,
            ApplicationJobs::OfThreads(jobs) => Ok(jobs.submit_tasks()),
        }
    }

    /// Submits the store of a further node. It is started again whenever it ends.
    ///
    /// # Errors
    /// What the head says. Threads are on one node.
    pub(super) async fn submit_store(&self, node: NodeNumber, name: String) -> Result<JobId, String> {
        match self {
            ApplicationJobs::OfHead(jobs) => jobs.submit_store(node, name).await,
            ApplicationJobs::OfThreads(_) => Err("a test has one node".into()),
        }
    }

    /// Ends a runner. Its end comes as a report.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn cancel(&self, job: JobId) -> Result<(), Error> {
        match self {
            ApplicationJobs::OfHead(jobs) => jobs.cancel(job).await,
            ApplicationJobs::OfThreads(jobs) => {
                jobs.cancel(job);
                Ok(())
            }
        }
    }

    pub(super) fn watch(&self) -> JobReports {
        match self {
            ApplicationJobs::OfHead(jobs) => JobReports::OfHead(jobs.watch()),
            ApplicationJobs::OfThreads(jobs) => JobReports::OfThreads(jobs.clone()),
        }
    }

    /// Waits for questions of users about the application. Nobody has any about a test.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn questions(&self) -> Result<Vec<ApplicationQuestion>, Error> {
        match self {
            ApplicationJobs::OfHead(jobs) => jobs.questions().await,
            ApplicationJobs::OfThreads(_) => pending().await,
        }
    }

    /// Answers one of them.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn answer(&self, number: u64, answer: ApplicationAnswer) -> Result<(), Error> {
        match self {
            ApplicationJobs::OfHead(jobs) => jobs.answer(number, answer).await,
            ApplicationJobs::OfThreads(_) => Ok(()),
        }
    }
}

impl JobReports {
    /// Follows this one, too.
    pub(super) fn add(&mut self, job: JobId) {
        match self {
            JobReports::OfHead(watcher) => watcher.add(job),
            JobReports::OfThreads(_) => {}
        }
    }

    /// Waits for changes.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn next(&mut self) -> Result<Vec<(JobId, RunnerReport)>, Error> {
        match self {
            JobReports::OfHead(watcher) => {
                let records = watcher.changes().await?;
                Ok(records.iter().map(|record| (record.id, report_of(record))).collect())
            }
            JobReports::OfThreads(jobs) => Ok(jobs.reports().await),
        }
    }
}
