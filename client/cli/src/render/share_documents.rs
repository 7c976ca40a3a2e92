//! Shares as JSON.

use std::collections::BTreeMap;

use cohabit_client::types::{PartyShare, ProjectShare, RunningLimits, ShareReport, UserLimits};
use serde::Serialize;

/// What everybody holds, used and is entitled to. Amounts are in GPUs.
#[derive(Debug, Serialize)]
pub(crate) struct ShareDocument {
    fair_share: bool,
    half_life_s: f64,
    price: BTreeMap<String, f64>,
    open_part: f64,
    keep_for_s: f64,
    user: UserLimitsDocument,
    capacity: f64,
    projects: Vec<ProjectDocument>,
}

/// What each user may have at most; `null` without a limit.
#[derive(Debug, Serialize)]
struct UserLimitsDocument {
    #[serde(flatten)]
    running: RunningLimitsDocument,
    queued_jobs: Option<u64>,
    submits_per_minute: Option<u32>,
    high_gpu_hours: u32,
}

#[derive(Debug, Default, Serialize)]
struct RunningLimitsDocument {
    running_gpus: Option<f64>,
    running_jobs: Option<u64>,
}

impl From<RunningLimits> for RunningLimitsDocument {
    fn from(limits: RunningLimits) -> RunningLimitsDocument {
        RunningLimitsDocument { running_gpus: limits.gpus.map(units), running_jobs: limits.jobs }
    }
}

impl From<&UserLimits> for UserLimitsDocument {
    fn from(limits: &UserLimits) -> UserLimitsDocument {
        UserLimitsDocument {
            running: limits.running.into(),
            queued_jobs: limits.queued_jobs,
            submits_per_minute: limits.submits_per_minute,
            high_gpu_hours: limits.high_gpu_hours,
        }
    }
}

#[derive(Debug, Serialize)]
struct ProjectDocument {
    /// `null` for a user who is in no project.
    project: Option<String>,
    guaranteed: f64,
    #[serde(flatten)]
    running: RunningLimitsDocument,
    #[serde(flatten)]
    share: PartyDocument,
    users: Vec<UserDocument>,
}

#[derive(Debug, Serialize)]
struct UserDocument {
    user: String,
    #[serde(flatten)]
    share: PartyDocument,
}

#[derive(Debug, Serialize)]
struct PartyDocument {
    held: f64,
    entitled: f64,
    waiting: f64,
    used_gpu_hours: f64,
    used_part: f64,
    weight: f64,
    counts: f64,
}

impl From<&ShareReport> for ShareDocument {
    fn from(report: &ShareReport) -> ShareDocument {
        let price = |(model, price): (&String, &u32)| (model.clone(), units((*price).into()));
        let project = |project: &ProjectShare| ProjectDocument {
            project: Some(project.name.clone()).filter(|name| report.table.projects.contains_key(name)),
            guaranteed: units(project.guaranteed),
            running: report.table.projects.get(&project.name).map(|it| it.running.into()).unwrap_or_default(),
            share: PartyDocument::from(&project.share),
            users: project
                .users
                .iter()
                .map(|it| UserDocument { user: it.user.clone(), share: PartyDocument::from(&it.share) })
                .collect(),
        };
        ShareDocument {
            fair_share: report.is_on,
            open_part: units(report.table.open_part.into()),
            keep_for_s: report.table.keep_for.as_secs_f64(),
            user: (&report.table.user).into(),
            half_life_s: report.table.half_life.as_secs_f64(),
            price: report.table.prices.iter().map(price).collect(),
            capacity: units(report.capacity),
            projects: report.projects.iter().map(project).collect(),
        }
    }
}

impl From<&PartyShare> for PartyDocument {
    fn from(share: &PartyShare) -> PartyDocument {
        PartyDocument {
            held: units(share.held),
            entitled: units(share.entitled),
            waiting: units(share.waiting),
            used_gpu_hours: share.used as f64 / 3_600_000.0,
            used_part: units(share.used_part),
            weight: units(share.weight),
            counts: units(share.factor),
        }
    }
}

fn units(thousandths: u64) -> f64 {
    thousandths as f64 / 1_000.0
}
