//! The JSON lines on a rank's socket: `{"started":1800000000000000}`, `{"signal":[15,"group"]}`.
//!
//! Their version is that of the executor's files. A new message is a new variant, which peers of earlier
//! versions pass over; a variant is never changed.

use cohabit_types::{Signal, StopReason, Time};
use cohabit_worker_core::{Lease, SignalTarget, StopStep, Stopping};
use serde::{Deserialize, Serialize};

use super::outcome::OutcomeFile;
use super::progress::ProgressPart;
use super::stop_reason::{self, AddedReasons};
use crate::messages::{ExecutorCommand, ExecutorEvent};

/// From the executor to the daemon.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventLine {
    Stopping(StopLine),
    Started(Time),
    Process(i32),
    Progress(ProgressPart),
    Ended(Box<OutcomeFile>),
}

/// From the daemon to the executor.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExecutorCommandLine {
    Stopping(StopLine),
    Signal(Signal, TargetJson),
    Lease(LeaseJson),
    LeaseAt(LeaseJson, Time),
}

#[derive(Serialize, Deserialize)]
pub(super) struct StopLine {
    why: StopReason,
    next: StepJson,
    due_at: Time,
    #[serde(flatten)]
    added: AddedReasons,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepJson {
    Terminate,
    Kill,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TargetJson {
    Group,
    Everything,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LeaseJson {
    Held,
    Orphaned,
}

impl From<&ExecutorEvent> for EventLine {
    fn from(event: &ExecutorEvent) -> EventLine {
        match event {
            ExecutorEvent::Stopping(stopping) => EventLine::Stopping((*stopping).into()),
            ExecutorEvent::Started(at) => EventLine::Started(*at),
            ExecutorEvent::Process(pid) => EventLine::Process(*pid),
            ExecutorEvent::Progress(progress) => EventLine::Progress(progress.clone().into()),
            ExecutorEvent::Ended(ended) => EventLine::Ended(Box::new(OutcomeFile::from(&**ended))),
        }
    }
}

impl From<EventLine> for ExecutorEvent {
    fn from(line: EventLine) -> ExecutorEvent {
        match line {
            EventLine::Stopping(stopping) => ExecutorEvent::Stopping(stopping.into()),
            EventLine::Started(at) => ExecutorEvent::Started(at),
            EventLine::Process(pid) => ExecutorEvent::Process(pid),
            EventLine::Progress(progress) => ExecutorEvent::Progress(progress.into()),
            EventLine::Ended(ended) => ExecutorEvent::Ended(Box::new((*ended).into())),
        }
    }
}

impl From<&ExecutorCommand> for ExecutorCommandLine {
    fn from(command: &ExecutorCommand) -> ExecutorCommandLine {
        match *command {
            ExecutorCommand::Stopping(stopping) => ExecutorCommandLine::Stopping(stopping.into()),
            ExecutorCommand::Signal(signal, SignalTarget::Group) => {
                ExecutorCommandLine::Signal(signal, TargetJson::Group)
            }
            ExecutorCommand::Signal(signal, SignalTarget::Everything) => {
                ExecutorCommandLine::Signal(signal, TargetJson::Everything)
            }
            ExecutorCommand::Lease(lease) => ExecutorCommandLine::Lease(lease.into()),
            ExecutorCommand::LeaseAt(lease, at) => ExecutorCommandLine::LeaseAt(lease.into(), at),
        }
    }
}

impl From<ExecutorCommandLine> for ExecutorCommand {
    fn from(line: ExecutorCommandLine) -> ExecutorCommand {
        match line {
            ExecutorCommandLine::Stopping(stopping) => ExecutorCommand::Stopping(stopping.into()),
            ExecutorCommandLine::Signal(signal, TargetJson::Group) => {
                ExecutorCommand::Signal(signal, SignalTarget::Group)
            }
            ExecutorCommandLine::Signal(signal, TargetJson::Everything) => {
                ExecutorCommand::Signal(signal, SignalTarget::Everything)
            }
            ExecutorCommandLine::Lease(lease) => ExecutorCommand::Lease(lease.into()),
            ExecutorCommandLine::LeaseAt(lease, at) => ExecutorCommand::LeaseAt(lease.into(), at),
        }
    }
}

impl From<Lease> for LeaseJson {
    fn from(lease: Lease) -> LeaseJson {
        match lease {
            Lease::Held => LeaseJson::Held,
            Lease::Orphaned => LeaseJson::Orphaned,
        }
    }
}

impl From<LeaseJson> for Lease {
    fn from(lease: LeaseJson) -> Lease {
        match lease {
            LeaseJson::Held => Lease::Held,
            LeaseJson::Orphaned => Lease::Orphaned,
        }
    }
}

impl From<Stopping> for StopLine {
    fn from(stopping: Stopping) -> StopLine {
        let next = match stopping.next {
            StopStep::Terminate => StepJson::Terminate,
            StopStep::Kill => StepJson::Kill,
        };
        let (why, added) = stop_reason::split(stopping.why);
        StopLine { why, next, due_at: stopping.due_at, added }
    }
}

impl From<StopLine> for Stopping {
    fn from(line: StopLine) -> Stopping {
        let next = match line.next {
            StepJson::Terminate => StopStep::Terminate,
            StepJson::Kill => StopStep::Kill,
        };
        Stopping { why: stop_reason::join(line.why, line.added), next, due_at: line.due_at }
    }
}
