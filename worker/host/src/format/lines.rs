//! The JSON lines on a rank's socket: `{"started":1800000000000000}`, `{"signal":[15,"group"]}`.
//!
//! Their version is that of the executor's files. A new message is a new variant, which peers of earlier
//! versions pass over; a variant is never changed.

use cohabit_types::{Progress, Signal, StopReason, Time};
use cohabit_worker_core::{Lease, SignalTarget, StopStep, Stopping};
use serde::{Deserialize, Serialize};

use crate::messages::{ExecutorCommand, ExecutorEvent};

/// From the executor to the daemon.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventLine {
    Stopping(StopLine),
    Started(Time),
    Process(i32),
    Progress(Progress),
}

/// From the daemon to the executor.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExecutorCommandLine {
    Stopping(StopLine),
    Signal(Signal, TargetWord),
    Lease(LeaseWord),
}

#[derive(Serialize, Deserialize)]
pub(super) struct StopLine {
    why: StopReason,
    next: StepWord,
    due_at: Time,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepWord {
    Terminate,
    Kill,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TargetWord {
    Group,
    Everything,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LeaseWord {
    Held,
    Orphaned,
}

impl From<&ExecutorEvent> for EventLine {
    fn from(event: &ExecutorEvent) -> EventLine {
        match event {
            ExecutorEvent::Stopping(stopping) => EventLine::Stopping((*stopping).into()),
            ExecutorEvent::Started(at) => EventLine::Started(*at),
            ExecutorEvent::Process(pid) => EventLine::Process(*pid),
            ExecutorEvent::Progress(progress) => EventLine::Progress(progress.clone()),
        }
    }
}

impl From<EventLine> for ExecutorEvent {
    fn from(line: EventLine) -> ExecutorEvent {
        match line {
            EventLine::Stopping(stopping) => ExecutorEvent::Stopping(stopping.into()),
            EventLine::Started(at) => ExecutorEvent::Started(at),
            EventLine::Process(pid) => ExecutorEvent::Process(pid),
            EventLine::Progress(progress) => ExecutorEvent::Progress(progress),
        }
    }
}

impl From<&ExecutorCommand> for ExecutorCommandLine {
    fn from(command: &ExecutorCommand) -> ExecutorCommandLine {
        match *command {
            ExecutorCommand::Stopping(stopping) => ExecutorCommandLine::Stopping(stopping.into()),
            ExecutorCommand::Signal(signal, SignalTarget::Group) => {
                ExecutorCommandLine::Signal(signal, TargetWord::Group)
            }
            ExecutorCommand::Signal(signal, SignalTarget::Everything) => {
                ExecutorCommandLine::Signal(signal, TargetWord::Everything)
            }
            ExecutorCommand::Lease(Lease::Held) => ExecutorCommandLine::Lease(LeaseWord::Held),
            ExecutorCommand::Lease(Lease::Orphaned) => ExecutorCommandLine::Lease(LeaseWord::Orphaned),
        }
    }
}

impl From<ExecutorCommandLine> for ExecutorCommand {
    fn from(line: ExecutorCommandLine) -> ExecutorCommand {
        match line {
            ExecutorCommandLine::Stopping(stopping) => ExecutorCommand::Stopping(stopping.into()),
            ExecutorCommandLine::Signal(signal, TargetWord::Group) => {
                ExecutorCommand::Signal(signal, SignalTarget::Group)
            }
            ExecutorCommandLine::Signal(signal, TargetWord::Everything) => {
                ExecutorCommand::Signal(signal, SignalTarget::Everything)
            }
            ExecutorCommandLine::Lease(LeaseWord::Held) => ExecutorCommand::Lease(Lease::Held),
            ExecutorCommandLine::Lease(LeaseWord::Orphaned) => ExecutorCommand::Lease(Lease::Orphaned),
        }
    }
}

impl From<Stopping> for StopLine {
    fn from(stopping: Stopping) -> StopLine {
        let next = match stopping.next {
            StopStep::Terminate => StepWord::Terminate,
            StopStep::Kill => StepWord::Kill,
        };
        StopLine { why: stopping.why, next, due_at: stopping.due_at }
    }
}

impl From<StopLine> for Stopping {
    fn from(line: StopLine) -> Stopping {
        let next = match line.next {
            StepWord::Terminate => StopStep::Terminate,
            StepWord::Kill => StopStep::Kill,
        };
        Stopping { why: line.why, next, due_at: line.due_at }
    }
}
