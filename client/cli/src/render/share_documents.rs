//! Shares as JSON.

use std::collections::BTreeMap;

use cohabit_client::types::{PartyShare, ProjectShare, ShareReport};
use serde::Serialize;

/// What everybody holds, used and is entitled to. Amounts are in GPUs.
#[derive(Debug, Serialize)]
pub(crate) struct ShareDocument {
    fair_share: bool,
    half_life_s: f64,
    price: BTreeMap<String, f64>,
    capacity: f64,
    projects: Vec<ProjectDocument>,
}

#[derive(Debug, Serialize)]
struct ProjectDocument {
    /// `null` for a user who is in no project.
    project: Option<String>,
    guaranteed: f64,
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
            share: PartyDocument::from(&project.share),
            users: project
                .users
                .iter()
                .map(|it| UserDocument { user: it.user.clone(), share: PartyDocument::from(&it.share) })
                .collect(),
        };
        ShareDocument {
            fair_share: report.is_on,
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
