//! Samples of fair share: a head where users take turns, and a table.

use cohabit_policy::{Action, Plan};
use cohabit_scheduler_core::{Config, Event};
use cohabit_types::{
    ClientRequestId, JobId, PlanRequestId, Principal, Request, Role, RunningLimits, ShareProject, ShareTable,
    Span, UserLimits,
};

use super::config_samples::config;

/// A head starts with fair share, tables are applied, and a plan reclaims a job.
pub(super) fn events() -> Vec<Event> {
    let by = Principal::new("root", Role::Admin);
    let apply = Request::ApplyShares(Box::new(table()));
    let reclaim = Action::Reclaim { job: JobId::new(3), why: "makes room for job 4 of ben".into() };
    let idle = Action::StopIdle { job: JobId::new(5), why: "makes room for job 4 of ben".into() };
    let plan = Plan { actions: vec![reclaim, idle], wake: None };
    vec![
        Event::HeadStarted(Config {
            fair_share: true,
            idle_stop: Some(Span::from_secs(1_800)),
            succession: true,
            prefetch: Span::from_millis(60),
            ..config()
        }),
        Event::Client(ClientRequestId(9), by.clone(), apply),
        Event::Client(ClientRequestId(10), by, Request::ApplyShares(Box::new(limited()))),
        Event::Planned(PlanRequestId(7), plan),
    ]
}

/// A table with a price and a project.
fn table() -> ShareTable {
    let users = ["ada", "ben"].map(str::to_owned).into();
    ShareTable {
        half_life: Span::from_secs(86_400),
        prices: [("V100".to_owned(), 300)].into(),
        projects: [(
            "vision".to_owned(),
            ShareProject { weight: 2_000, guaranteed: 8_000, users, ..ShareProject::default() },
        )]
        .into(),
        ..ShareTable::default()
    }
}

/// A table with limits of all kinds.
fn limited() -> ShareTable {
    let running = RunningLimits { gpus: Some(4_000), jobs: Some(7) };
    let user =
        UserLimits { running, queued_jobs: Some(100), submits_per_minute: Some(60), high_gpu_hours: 12 };
    let vision = ShareProject { running, ..ShareProject::default() };
    ShareTable {
        projects: [("vision".to_owned(), vision)].into(),
        open_part: 250,
        keep_for: Span::from_secs(600),
        user,
        ..ShareTable::default()
    }
}
