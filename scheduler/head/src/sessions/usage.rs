//! Figures for metrics, and what jobs did with their GPUs.

use std::collections::BTreeSet;

use cohabit_types::{Figures, GpuTime, JobId, Refusal, RefusalCode, Role, UsagePoint, UsageRecord};

use super::client::ClientSession;
use crate::driver::Query;

/// The most jobs of one question.
const MOST_JOBS: usize = 256;

impl ClientSession {
    /// The figures. Where data is private, users see of others what lists show: not how busy they are. A
    /// viewer's token is for screens and exporters, which an admin sets up.
    pub(super) async fn visible_figures(&self) -> Result<Figures, Refusal> {
        let mut figures = self.ask(Query::Figures).await?;
        if self.sees_partly() && self.by.role != Role::Viewer {
            for (_, of_user) in figures.users.iter_mut().filter(|(user, _)| **user != self.by.user) {
                of_user.gpu_time = GpuTime { busy: 0.0, idle: 0.0, ..of_user.gpu_time };
            }
        }
        Ok(figures)
    }

    /// What ranks of these jobs did with their GPUs: those that have ended first, then those that run. Where
    /// data is private, only of one's own jobs.
    pub(super) async fn visible_usage(&self, jobs: Vec<JobId>) -> Result<Vec<UsageRecord>, Refusal> {
        if jobs.len() > MOST_JOBS {
            let message =
                format!("{} jobs are too many for one question: ask for at most {MOST_JOBS}", jobs.len());
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        // A job that is named twice is told of once.
        let jobs: BTreeSet<JobId> = jobs.into_iter().collect();
        let live = self.ask(|reply_to| Query::LiveUsage(jobs.clone(), reply_to)).await?;
        let ended = self.history(move |history| history.usage(&jobs)).await?;
        let known: BTreeSet<_> = ended.iter().map(|it| (it.rank, it.usage.device.clone())).collect();
        // A rank may have ended between the two looks.
        let live = live.into_iter().filter(|it| !known.contains(&(it.rank, it.usage.device.clone())));
        let mut records: Vec<UsageRecord> = ended.into_iter().chain(live).collect();
        records.retain(|record| !self.sees_partly() || self.owns(&record.user));
        let weight = |record: &UsageRecord| {
            size_of::<UsageRecord>() + record.usage.curve.points.len() * size_of::<UsagePoint>()
        };
        self.pace_answer(records.iter().map(weight).sum()).await;
        Ok(records)
    }
}
