//! What hosts and runners of tasks do with the process.

use std::time::Duration;

use cohabit_application_core::{CallError, CallValue, HeldId, Ticket};
use cohabit_types::Span;
use tokio::time::timeout;

use super::member_process::MemberProcess;
use super::member_state::MemberState;
use super::running_task::RunningTask;
use super::task_table::RestState;

impl<H> MemberState<H> {
    /// A task has ended here.
    pub(crate) fn task_ended(
        &mut self,
        task: &RunningTask,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
        took: Duration,
    ) {
        if self.tasks.end(task.ticket()) {
            let took = Span::from_micros(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
            self.member.task_ended(task.ticket(), result, carries, took, &mut self.effects);
        }
    }

    /// A task waits for its calls, or for who reads its stream.
    pub(crate) fn task_waits(&mut self, task: &RunningTask) {
        self.member.task_waits(task.ticket(), task.wait(), &mut self.effects);
    }

    /// A task that waited is to be polled again.
    pub(crate) fn task_goes_on(&mut self, task: &RunningTask) {
        self.member.task_goes_on(task.ticket(), &mut self.effects);
    }

    /// Whether this task has not ended; the process is to end without it then.
    pub(crate) fn abandon(&mut self, ticket: Ticket) -> bool {
        let runs = self.tasks.runs(ticket);
        if runs {
            self.member.abandon(&mut self.effects);
        }
        runs
    }

    /// Tells the core if the process has had no task for this long. Returns how long it may be until the next
    /// such time.
    pub(crate) fn look_at_rest(&mut self, length: Duration) -> Duration {
        // Tasks that have ended may have passed on references of calls that have not.
        if !self.calls.is_empty() || !self.backlogs.is_empty() {
            return length;
        }
        match self.tasks.look_at_rest(length) {
            RestState::Left(left) => left,
            RestState::Over(rest) => {
                self.member.rested(rest, &mut self.effects);
                length
            }
        }
    }

    fn stop_tasks(&mut self) {
        self.clear_work();
        self.tasks.stop();
    }
}

impl MemberProcess {
    /// Starts no more tasks, and waits until those that run have ended at their next await, but not longer
    /// than this.
    pub(crate) async fn stop_tasks(&self, limit: Duration) {
        self.with(MemberState::stop_tasks);
        let ended = async {
            while !self.with(|state| state.tasks.is_empty()) {
                self.task_ended.notified().await;
            }
        };
        // What does not end is ended with the process.
        let _ended = timeout(limit, ended).await;
    }
}
