//! How callers read the streams of their tasks: now and then, some slowly, and some drop theirs.

use cohabit_application_core::{CallError, CallNumber, CallValue, MemberEffect};
use cohabit_types::{RankId, Span};

use super::event::ApplicationEvent;
use super::open_stream::{OpenStream, UnreadItem};
use super::payload::decode;
use super::task_process::TaskState;
use super::world::ApplicationWorld;

/// How long readers that are quick wait before they look again.
const QUICK: (Span, Span) = (Span::from_micros(1), Span::from_millis(1));

impl ApplicationWorld {
    /// An item has come.
    pub(super) fn item_arrives(
        &mut self,
        member: RankId,
        call: CallNumber,
        item: UnreadItem,
        more: &mut Vec<MemberEffect>,
    ) {
        let Some(stream) = self.process(member).streams.get_mut(&call) else {
            return self.give_back(member, item.carries, more);
        };
        let (tag, number, value) = (stream.open.tag, item.number, decode(&item.item).0.0);
        stream.unread.push_back(item);
        if let Some(violation) = self.task_ledger.item_arrives(tag, number, value) {
            self.ledger.violated(violation);
        }
        self.read_soon(member, call);
    }

    /// The task of a stream has ended; its reader learns of it after the items. `false` if nobody reads it.
    pub(super) fn end_stream(
        &mut self,
        member: RankId,
        call: CallNumber,
        result: &Result<CallValue, CallError>,
    ) -> bool {
        let Some(stream) = self.process(member).streams.get_mut(&call) else { return false };
        stream.end = Some(result.clone());
        self.read_soon(member, call);
        true
    }

    fn read_soon(&mut self, member: RankId, call: CallNumber) {
        let is_quick = self.random.chance(0.6);
        let Some(stream) = self.stream(member, call) else { return };
        if std::mem::replace(&mut stream.is_due, true) {
            return;
        }
        let read = ApplicationEvent::Read { member, call };
        if is_quick { self.after(QUICK, read) } else { self.method_ends_soon(read) }
    }

    /// A reader looks at its stream.
    pub(super) fn read_stream(&mut self, member: RankId, call: CallNumber) {
        let (drops, most) = (self.random.chance(0.01), self.random.between(1, 4));
        let Some(stream) = self.stream(member, call) else { return };
        stream.is_due = false;
        let caller = stream.open.caller.map(|(ticket, _)| ticket);
        if let Some(ticket) = caller {
            if self.task(member, ticket).is_none_or(|task| task.state == TaskState::Stuck) {
                return;
            }
            let mut effects = Vec::new();
            self.poll_task(member, ticket, &mut effects);
            self.drive(member, |_, all| all.append(&mut effects));
        }
        if drops {
            return self.leave_stream(member, call);
        }
        for _ in 0..most {
            self.read_item(member, call);
        }
        match self.stream(member, call) {
            Some(stream) if !stream.unread.is_empty() => self.read_soon(member, call),
            Some(stream) if stream.end.is_some() => self.read_end(member, call),
            Some(_) | None => {}
        }
    }

    fn read_item(&mut self, member: RankId, call: CallNumber) {
        let Some(stream) = self.stream(member, call) else { return };
        let Some(UnreadItem { number, item, carries }) = stream.unread.pop_front() else { return };
        let value = decode(&item).0.0;
        stream.values.push(value);
        let open = stream.open.clone();
        self.counters.items += 1;
        if let Some(violation) = self.task_ledger.item_read(open.tag, number, value) {
            self.ledger.violated(violation);
        }
        let (owner, mut effects) = (self.owner_of_values(member, &open), Vec::new());
        self.take_handles(member, &item, owner, &mut effects);
        self.give_back(member, carries, &mut effects);
        self.drive(member, |it, all| {
            all.append(&mut effects);
            it.core.read(call, all);
        });
    }

    /// A reader has read all items, and sees the end.
    fn read_end(&mut self, member: RankId, call: CallNumber) {
        let Some(OpenStream { open, values, end: Some(end), .. }) =
            self.process(member).streams.remove(&call)
        else {
            return;
        };
        if let Some(violation) = self.task_ledger.end_read(open.tag, &end) {
            self.ledger.violated(violation);
        }
        let plan = self.task_ledger.plan(open.tag);
        let value = plan.map_or(0, |plan| plan.combine(&values));
        let result = end.map(|_| value).map_err(|error| error.to_string());
        let mut effects = Vec::new();
        self.task_call_ends(member, call, &open, result, &mut effects);
        self.drive(member, |_, all| all.append(&mut effects));
    }

    /// A reader drops its stream.
    fn leave_stream(&mut self, member: RankId, call: CallNumber) {
        let Some(stream) = self.stream(member, call) else { return };
        let (open, has_ended) = (stream.open.clone(), stream.end.is_some());
        self.cancel_task_call(member, call, open.tag);
        if has_ended && self.processes.contains_key(&member) {
            let (result, mut effects) = (Err("its stream was dropped".to_owned()), Vec::new());
            self.task_call_ends(member, call, &open, result, &mut effects);
            self.drive(member, |_, all| all.append(&mut effects));
        }
    }

    /// Nobody reads a stream any more: what has come of it is dropped.
    pub(super) fn drop_stream(&mut self, member: RankId, call: CallNumber, more: &mut Vec<MemberEffect>) {
        if let Some(stream) = self.process(member).streams.remove(&call) {
            let carries = stream.unread.into_iter().flat_map(|item| item.carries).collect();
            self.give_back(member, carries, more);
        }
    }

    fn stream(&mut self, member: RankId, call: CallNumber) -> Option<&mut OpenStream> {
        self.processes.get_mut(&member)?.streams.get_mut(&call)
    }
}
