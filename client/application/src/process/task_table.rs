//! The tasks that a process runs, and since when it has had none.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_application_core::{ObjectId, Ticket};
use futures::future::AbortRegistration;

use super::arrived::ArrivedArguments;
use super::running_task::{RunningTask, UnknownCalls};

/// The tasks of a process of tasks.
#[derive(Debug)]
pub(super) struct TaskTable {
    /// Those that were started and have not ended.
    running: HashMap<Ticket, Arc<RunningTask>>,
    phase: TaskPhase,
    /// The last rest that the core has not been told to be over: its number, and when it began.
    rest: Option<(u64, Instant)>,
    unknown_calls: UnknownCalls,
}

/// Whether the process goes on running tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskPhase {
    Serving,
    /// It was told to end.
    Stopping,
}

/// A task that is to be run.
#[derive(Debug)]
pub(crate) struct TaskStart {
    pub(crate) task: Arc<RunningTask>,
    /// Ends its future when the task is interrupted, perhaps before it begins.
    pub(crate) abort: AbortRegistration,
    pub(crate) function: u32,
    pub(crate) arguments: ArrivedArguments,
}

/// How a rest stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestState {
    /// None is over for this long at least.
    Left(Duration),
    /// The one with this number has just ended.
    Over(u64),
}

impl TaskTable {
    pub(super) fn new(unknown_calls: UnknownCalls) -> TaskTable {
        TaskTable { running: HashMap::new(), phase: TaskPhase::Serving, rest: None, unknown_calls }
    }

    /// A task begins, perhaps one that makes a lost object again; none if the process is to end.
    pub(super) fn start(
        &mut self,
        ticket: Ticket,
        function: u32,
        arguments: ArrivedArguments,
        remakes: Option<ObjectId>,
    ) -> Option<TaskStart> {
        if self.is_stopping() {
            return None;
        }
        let (task, abort) = RunningTask::new(ticket, remakes, &self.unknown_calls);
        self.running.insert(ticket, Arc::clone(&task));
        Some(TaskStart { task, abort, function, arguments })
    }

    pub(super) fn runs(&self, ticket: Ticket) -> bool {
        self.running.contains_key(&ticket)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether there is this task, which is interrupted then.
    pub(super) fn interrupt(&self, ticket: Ticket) -> bool {
        self.running.get(&ticket).map(|task| task.interrupt()).is_some()
    }

    /// A call of a task has ended.
    pub(super) fn wake(&self, ticket: Ticket) {
        self.running.get(&ticket).into_iter().for_each(|task| task.wake());
    }

    /// A task may make the next item of its stream.
    pub(super) fn make_more(&self, ticket: Ticket) {
        self.running.get(&ticket).into_iter().for_each(|task| task.make_more());
    }

    /// Whether the process is to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.phase == TaskPhase::Stopping
    }

    /// Interrupts all tasks; none starts any more.
    pub(super) fn stop(&mut self) {
        self.phase = TaskPhase::Stopping;
        self.running.values().for_each(|task| task.interrupt());
    }

    /// A task has ended here. Whether that counts: one that was interrupted because the process is to end is
    /// run again elsewhere, and may have returned early.
    pub(super) fn end(&mut self, ticket: Ticket) -> bool {
        self.running.remove(&ticket);
        self.phase == TaskPhase::Serving
    }

    /// There is no task.
    pub(super) fn begin_rest(&mut self, number: u64) {
        self.rest = Some((number, Instant::now()));
    }

    /// Whether a rest of this length is over, and how long it may be until one is.
    pub(super) fn look_at_rest(&mut self, length: Duration) -> RestState {
        match self.rest {
            None => RestState::Left(length),
            Some((number, since)) => match length.saturating_sub(since.elapsed()) {
                Duration::ZERO => {
                    self.rest = None;
                    RestState::Over(number)
                }
                left => RestState::Left(left),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::process::cancelled;

    #[test]
    fn a_process_that_is_to_end_starts_nothing_and_counts_no_end() {
        let mut tasks = TaskTable::new(UnknownCalls::default());
        let start = |tasks: &mut TaskTable, ticket| {
            let arguments = ArrivedArguments { bytes: Bytes::new(), needs: Vec::new(), carries: Vec::new() };
            tasks.start(Ticket(ticket), 0, arguments, None).map(|start| start.task)
        };
        start(&mut tasks, 1).unwrap();
        let second = start(&mut tasks, 2).unwrap();
        assert!(tasks.end(Ticket(1)));
        assert!(!tasks.interrupt(Ticket(1)) && !second.run(cancelled));
        tasks.stop();
        assert!(second.run(cancelled));
        assert!(start(&mut tasks, 3).is_none());
        assert!(!tasks.end(Ticket(2)) && tasks.is_empty());
    }

    #[test]
    fn only_the_last_rest_ends_and_only_once() {
        let mut tasks = TaskTable::new(UnknownCalls::default());
        let hour = Duration::from_secs(3_600);
        assert_eq!(tasks.look_at_rest(hour), RestState::Left(hour));
        tasks.begin_rest(1);
        tasks.begin_rest(2);
        assert!(matches!(tasks.look_at_rest(hour), RestState::Left(left) if left <= hour));
        assert_eq!(tasks.look_at_rest(Duration::ZERO), RestState::Over(2));
        assert_eq!(tasks.look_at_rest(Duration::ZERO), RestState::Left(Duration::ZERO));
    }
}
