//! Events of format 6, the newest.
//!
//! Every field has a name, so a later version can add one with a default. Of a plan the entry has what was
//! decided: which jobs start where, which are preempted, and when the next plan is due.

use std::borrow::Cow;

use cohabit_policy::{Action, Plan};
use cohabit_scheduler_core::{Config, Event, SnapshotPart};
use cohabit_types::{
    ClientRequestId, HostShare, Inventory, JobId, Placement, PlanRequestId, Principal, Report, Request,
    Slowdown, Span, Time, WorkerKey,
};
use serde::{Deserialize, Serialize};
use serde_with::As;

use crate::shape::CowOf;
use crate::snapshot::SnapshotPartV6;
use crate::stored::{
    StoredConfig, StoredHostShare, StoredInventory, StoredPlacement, StoredPrincipal, StoredReport,
    StoredRequest, StoredWorkerKey,
};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventV6<'a> {
    HeadStarted {
        #[serde(with = "CowOf::<StoredConfig>")]
        config: Cow<'a, Config>,
    },
    ClientRequest {
        id: ClientRequestId,
        #[serde(with = "CowOf::<StoredPrincipal>")]
        by: Cow<'a, Principal>,
        #[serde(with = "CowOf::<StoredRequest>")]
        request: Cow<'a, Request>,
    },
    WorkerJoined {
        #[serde(with = "As::<StoredWorkerKey>")]
        worker: WorkerKey,
        #[serde(with = "CowOf::<StoredInventory>")]
        inventory: Cow<'a, Inventory>,
    },
    WorkerLost {
        #[serde(with = "As::<StoredWorkerKey>")]
        worker: WorkerKey,
        reason: Cow<'a, str>,
    },
    WorkerReport {
        #[serde(with = "As::<StoredWorkerKey>")]
        worker: WorkerKey,
        #[serde(with = "CowOf::<StoredReport>")]
        report: Cow<'a, Report>,
    },
    PlanDecided {
        request: PlanRequestId,
        decisions: Vec<DecisionV6<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_plan_at: Option<Time>,
    },
    TimerFired,
    InterferenceUpdated,
    ClockAdvanced {
        by: Span,
    },
    JobsRestored {
        #[serde(with = "CowOf::<SnapshotPartV6>")]
        jobs: Cow<'a, SnapshotPart>,
    },
    BackupRestored {
        last_number: u64,
        attempt_gap: u32,
    },
}

/// One decision of a plan.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionV6<'a> {
    Start {
        job: JobId,
        #[serde(with = "CowOf::<StoredPlacement>")]
        placement: Cow<'a, Placement>,
        #[serde(skip_serializing_if = "Option::is_none")]
        expected_runtime: Option<Span>,
        #[serde(skip_serializing_if = "Option::is_none")]
        predicted_slowdown: Option<Slowdown>,
        reason: Cow<'a, str>,
    },
    Preempt {
        job: JobId,
        reason: Cow<'a, str>,
    },
    Reclaim {
        job: JobId,
        reason: Cow<'a, str>,
    },
    StopIdle {
        job: JobId,
        reason: Cow<'a, str>,
    },
    Allot {
        job: JobId,
        #[serde(with = "As::<StoredHostShare>")]
        host: HostShare,
        reason: Cow<'a, str>,
    },
}

impl<'a> From<&'a Event> for EventV6<'a> {
    fn from(event: &'a Event) -> EventV6<'a> {
        use Cow::Borrowed;
        match event {
            Event::HeadStarted(config) => EventV6::HeadStarted { config: Borrowed(config) },
            Event::Client(id, by, request) => {
                EventV6::ClientRequest { id: *id, by: Borrowed(by), request: Borrowed(request) }
            }
            Event::Joined(worker, inventory) => {
                EventV6::WorkerJoined { worker: *worker, inventory: Borrowed(inventory) }
            }
            Event::Lost(worker, reason) => EventV6::WorkerLost { worker: *worker, reason: Borrowed(reason) },
            Event::Report(worker, report) => {
                EventV6::WorkerReport { worker: *worker, report: Borrowed(report) }
            }
            Event::Planned(request, Plan { actions, wake }) => EventV6::PlanDecided {
                request: *request,
                decisions: actions.iter().map(DecisionV6::from).collect(),
                next_plan_at: *wake,
            },
            Event::Alarm => EventV6::TimerFired,
            Event::InterferenceUpdated => EventV6::InterferenceUpdated,
            Event::ClockSet(by) => EventV6::ClockAdvanced { by: *by },
            Event::Restored(jobs) => EventV6::JobsRestored { jobs: Borrowed(jobs) },
            Event::BackupRestored { last_number, attempt_gap } => {
                EventV6::BackupRestored { last_number: *last_number, attempt_gap: *attempt_gap }
            }
        }
    }
}

impl<'a> From<&'a Action> for DecisionV6<'a> {
    fn from(action: &'a Action) -> DecisionV6<'a> {
        use Cow::Borrowed;
        match action {
            Action::Place { job, placement, runtime, slowdown, why } => DecisionV6::Start {
                job: *job,
                placement: Borrowed(placement),
                expected_runtime: *runtime,
                predicted_slowdown: *slowdown,
                reason: Borrowed(why),
            },
            Action::Preempt { job, why } => DecisionV6::Preempt { job: *job, reason: Borrowed(why) },
            Action::Reclaim { job, why } => DecisionV6::Reclaim { job: *job, reason: Borrowed(why) },
            Action::StopIdle { job, why } => DecisionV6::StopIdle { job: *job, reason: Borrowed(why) },
            Action::Allot { job, host, why } => {
                DecisionV6::Allot { job: *job, host: *host, reason: Borrowed(why) }
            }
        }
    }
}

impl From<EventV6<'_>> for Event {
    fn from(stored: EventV6<'_>) -> Event {
        match stored {
            EventV6::HeadStarted { config } => Event::HeadStarted(config.into_owned()),
            EventV6::ClientRequest { id, by, request } => {
                Event::Client(id, by.into_owned(), request.into_owned())
            }
            EventV6::WorkerJoined { worker, inventory } => Event::Joined(worker, inventory.into_owned()),
            EventV6::WorkerLost { worker, reason } => Event::Lost(worker, reason.into_owned()),
            EventV6::WorkerReport { worker, report } => Event::Report(worker, report.into_owned()),
            EventV6::PlanDecided { request, decisions, next_plan_at } => {
                let actions = decisions.into_iter().map(Action::from).collect();
                Event::Planned(request, Plan { actions, wake: next_plan_at })
            }
            EventV6::TimerFired => Event::Alarm,
            EventV6::InterferenceUpdated => Event::InterferenceUpdated,
            EventV6::ClockAdvanced { by } => Event::ClockSet(by),
            EventV6::JobsRestored { jobs } => Event::Restored(jobs.into_owned()),
            EventV6::BackupRestored { last_number, attempt_gap } => {
                Event::BackupRestored { last_number, attempt_gap }
            }
        }
    }
}

impl From<DecisionV6<'_>> for Action {
    fn from(stored: DecisionV6<'_>) -> Action {
        match stored {
            DecisionV6::Start { job, placement, expected_runtime, predicted_slowdown, reason } => {
                Action::Place {
                    job,
                    placement: placement.into_owned(),
                    runtime: expected_runtime,
                    slowdown: predicted_slowdown,
                    why: reason.into_owned(),
                }
            }
            DecisionV6::Preempt { job, reason } => Action::Preempt { job, why: reason.into_owned() },
            DecisionV6::Reclaim { job, reason } => Action::Reclaim { job, why: reason.into_owned() },
            DecisionV6::StopIdle { job, reason } => Action::StopIdle { job, why: reason.into_owned() },
            DecisionV6::Allot { job, host, reason } => Action::Allot { job, host, why: reason.into_owned() },
        }
    }
}
