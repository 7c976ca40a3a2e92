//! The way of items from the code of a running task to the core, and its pauses.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use cohabit_application_core::{CallError, HeldId};
use tokio::task::coop::consume_budget;

use super::member_process::MemberProcess;
use super::member_state::MemberState;
use super::running_task::RunningTask;
use crate::values::EncodedValue;

/// Sends the items of the running task.
pub(crate) struct ItemSender {
    process: &'static MemberProcess,
    task: Arc<RunningTask>,
}

impl ItemSender {
    /// That of the task whose code this thread runs now.
    ///
    /// # Errors
    /// If it runs none.
    pub(crate) fn current() -> Result<ItemSender, CallError> {
        let unknown = || CallError::Refused("items of a stream are made by the code of a task".into());
        let process = MemberProcess::current().map_err(|error| CallError::Refused(error.to_string()))?;
        Ok(ItemSender { process, task: RunningTask::current().ok_or_else(unknown)? })
    }

    /// Waits until the next item may be made. An interrupted task waits for its end.
    pub(crate) async fn room(&self) {
        // A stream that is always ready would let neither parked tasks go on nor an interrupted one end.
        consume_budget().await;
        poll_fn(|context| self.poll_room(context)).await;
    }

    fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        if self.task.is_interrupted() {
            return Poll::Pending;
        }
        match self.task.pause_unless(|| self.may_make(), context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn may_make(&self) -> bool {
        self.process.with(|state| state.may_make(&self.task))
    }

    /// Sends an item.
    ///
    /// # Errors
    /// If it is too large.
    pub(crate) fn send(&self, item: EncodedValue) -> Result<(), CallError> {
        let carries = item.carries();
        let EncodedValue { bytes, holds } = item;
        let sent = self.process.with(|state| state.send_item(&self.task, bytes, carries));
        drop(holds);
        sent
    }
}

impl<H> MemberState<H> {
    fn may_make(&self, task: &RunningTask) -> bool {
        self.member.may_make(task.ticket())
    }

    fn send_item(&mut self, task: &RunningTask, item: Bytes, carries: Vec<HeldId>) -> Result<(), CallError> {
        // One that is made because the process is to end may be wrong; another process makes it anew.
        if self.tasks.is_stopping() {
            return Ok(());
        }
        self.member.item(task.ticket(), item, carries, &mut self.effects)
    }
}
