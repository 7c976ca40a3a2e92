//! Events of formats 1 to 5. Only read: [`v6`](crate::v6) is what the head writes.

use cohabit_policy::{Action, Plan};
use cohabit_scheduler_core::{Config, Event};
use cohabit_types::{
    ClientRequestId, Inventory, JobId, Placement, PlanRequestId, Principal, Report, Request, Slowdown, Span,
    Time, WorkerKey,
};
use serde::Deserialize;
use serde_with::As;

use crate::stored::{
    StoredConfig, StoredInventory, StoredPlacement, StoredPrincipal, StoredReport, StoredRequest,
    StoredWorkerKey,
};

#[derive(Deserialize)]
pub(crate) enum EventV5 {
    Configured(#[serde(with = "As::<StoredConfig>")] Config),
    Client(
        ClientRequestId,
        #[serde(with = "As::<StoredPrincipal>")] Principal,
        #[serde(with = "As::<StoredRequest>")] Request,
    ),
    Joined(
        #[serde(with = "As::<StoredWorkerKey>")] WorkerKey,
        #[serde(with = "As::<StoredInventory>")] Inventory,
    ),
    Lost(#[serde(with = "As::<StoredWorkerKey>")] WorkerKey, String),
    Report(#[serde(with = "As::<StoredWorkerKey>")] WorkerKey, #[serde(with = "As::<StoredReport>")] Report),
    Planned(PlanRequestId, PlanV5),
    Alarm,
    Learned,
    ClockSet(Span),
}

#[derive(Deserialize)]
pub(crate) struct PlanV5 {
    actions: Vec<ActionV5>,
    wake: Option<Time>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ActionV5 {
    Place {
        job: JobId,
        #[serde(with = "As::<StoredPlacement>")]
        placement: Placement,
        #[serde(default)]
        runtime: Option<Span>,
        #[serde(default)]
        slowdown: Option<Slowdown>,
        why: String,
    },
    Preempt {
        job: JobId,
        why: String,
    },
}

impl From<EventV5> for Event {
    fn from(stored: EventV5) -> Event {
        match stored {
            EventV5::Configured(config) => Event::HeadStarted(config),
            EventV5::Client(id, by, request) => Event::Client(id, by, request),
            EventV5::Joined(worker, inventory) => Event::Joined(worker, inventory),
            EventV5::Lost(worker, reason) => Event::Lost(worker, reason),
            EventV5::Report(worker, report) => Event::Report(worker, report),
            EventV5::Planned(request, plan) => Event::Planned(request, plan.into()),
            EventV5::Alarm => Event::Alarm,
            EventV5::Learned => Event::InterferenceUpdated,
            EventV5::ClockSet(by) => Event::ClockSet(by),
        }
    }
}

impl From<PlanV5> for Plan {
    fn from(stored: PlanV5) -> Plan {
        Plan { actions: stored.actions.into_iter().map(Action::from).collect(), wake: stored.wake }
    }
}

impl From<ActionV5> for Action {
    fn from(stored: ActionV5) -> Action {
        match stored {
            ActionV5::Place { job, placement, runtime, slowdown, why } => {
                Action::Place { job, placement, runtime, slowdown, why }
            }
            ActionV5::Preempt { job, why } => Action::Preempt { job, why },
        }
    }
}
