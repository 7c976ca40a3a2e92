//! The last tasks of a process that have ended, for whoever looks at the application.

use std::collections::VecDeque;

use cohabit_types::{Span, shortened};

use crate::descriptions::{EndedTaskDescription, TaskOutcome};
use crate::errors::CallError;
use crate::ids::CallNumber;
use crate::limits::{MAX_DESCRIBED_TEXT, MAX_REMEMBERED_TASKS};
use crate::object_value::CallValue;
use crate::queued_task::QueuedTask;

/// The last ones, the newest last.
#[derive(Debug)]
pub(crate) struct EndedTasks {
    last: VecDeque<EndedTaskDescription>,
    /// How many have ended, those that are forgotten included.
    count: u64,
}

impl EndedTasks {
    pub(crate) const fn new() -> EndedTasks {
        EndedTasks { last: VecDeque::new(), count: 0 }
    }

    /// A task has ended.
    pub(crate) fn push(
        &mut self,
        call: CallNumber,
        task: &QueuedTask,
        result: &Result<CallValue, CallError>,
    ) {
        if self.last.len() >= MAX_REMEMBERED_TASKS {
            self.last.pop_front();
        }
        let (outcome, text) = result.as_ref().err().map_or((TaskOutcome::Returned, String::new()), outcome);
        let (function, depth, runner) = (task.function, task.depth, task.place.runner());
        self.last.push_back(EndedTaskDescription {
            call,
            function,
            depth,
            outcome,
            text,
            runner,
            took: None,
        });
        self.count += 1;
    }

    /// The task that has just ended took so long; nothing if it goes on.
    pub(crate) fn took(&mut self, call: CallNumber, took: Span) {
        if let Some(last) = self.last.back_mut().filter(|last| last.call == call) {
            last.took = Some(took);
        }
    }

    /// The newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &EndedTaskDescription> {
        self.last.iter().rev()
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }
}

fn outcome(error: &CallError) -> (TaskOutcome, String) {
    let short = |text: &str| shortened(text, MAX_DESCRIBED_TEXT);
    match error {
        CallError::Failed(text) | CallError::Refused(text) | CallError::Deadlock(text) => {
            (TaskOutcome::Failed, short(text))
        }
        CallError::Panicked(text) => (TaskOutcome::Panicked, short(text)),
        CallError::NoRunner(why) => (TaskOutcome::NoRunner, short(why)),
        CallError::Lost { .. } => (TaskOutcome::Lost, short(&error.to_string())),
        CallError::Cancelled => (TaskOutcome::Cancelled, String::new()),
        CallError::Restarted
        | CallError::Ended(_)
        | CallError::Full
        | CallError::Dependency(_)
        | CallError::ObjectLost(_)
        | CallError::StoreFull(_)
        | CallError::TimedOut(_) => (TaskOutcome::Failed, short(&error.to_string())),
    }
}
