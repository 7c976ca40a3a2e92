//! How running tasks make the items of their streams: step by step, with pauses while too many are unread.

use cohabit_application_core::{CallError, HeldId, MemberEffect, TaskWait, Ticket};
use cohabit_types::{RankId, Span};

use super::event::ApplicationEvent;
use super::payload::{Tag, encode};
use super::planted_bug::ApplicationBug;
use super::task_process::TaskState;
use super::world::ApplicationWorld;

/// How long most items take.
const ITEM: (Span, Span) = (Span::from_micros(1), Span::from_millis(1));

impl ApplicationWorld {
    /// A task that has called all that it calls goes on: with its next item, or towards its end.
    pub(super) fn make_or_end(&mut self, member: RankId, ticket: Ticket) {
        let goes_on = self.random.chance(0.7);
        let Some(task) = self.task(member, ticket) else { return };
        let items_left = task.plan.items().is_some_and(|items| task.made < items);
        if items_left && task.failure.is_none() && (goes_on || task.open.is_empty()) {
            self.make_item(member, ticket);
        } else {
            task.is_paused = false;
            self.wait_or_end(member, ticket);
        }
    }

    fn make_item(&mut self, member: RankId, ticket: Ticket) {
        let (fails, is_quick) = (self.random.chance(0.005), self.random.chance(0.95));
        let is_bounded = self.plant != Some(ApplicationBug::UnboundedStream);
        let process = self.process(member);
        let may_make = process.core.may_make(ticket);
        let Some(task) = process.tasks.get_mut(&ticket) else { return };
        task.is_paused = is_bounded && !may_make;
        if task.interrupted {
            self.drive_end(member, ticket, Err(CallError::Cancelled));
        } else if task.is_paused {
            task.state = TaskState::Waiting;
            self.counters.pauses += 1;
            self.drive(member, |it, effects| it.core.task_waits(ticket, TaskWait::Others, effects));
        } else if fails {
            let text = format!("error {} after {} items", task.tag.0, task.made);
            self.drive_end(member, ticket, Err(CallError::Failed(text)));
        } else {
            task.made += 1;
            let most = if task.plan.has_handles(task.made) { 2 } else { 0 };
            let carries: Vec<HeldId> = task.handles.iter().copied().take(most).collect();
            let item = encode(Tag(task.plan.item(task.made)), &carries);
            let mut result = Ok(());
            self.drive(member, |it, effects| result = it.core.item(ticket, item, carries, effects));
            if let Err(error) = result {
                self.ledger.violated(format!("{member} may not make an item: {error}"));
            }
            let step = ApplicationEvent::TaskStep { member, ticket };
            if is_quick { self.after(ITEM, step) } else { self.method_ends_soon(step) }
        }
    }

    /// A task that has paused may make its next item.
    pub(super) fn make_more(&mut self, member: RankId, ticket: Ticket, more: &mut Vec<MemberEffect>) {
        let is_paused = self.task(member, ticket).is_some_and(|task| task.is_paused);
        if is_paused && self.plant != Some(ApplicationBug::LostMakeMore) {
            self.poll_task(member, ticket, more);
        }
    }
}
