//! The streams of tasks: items that a process makes, and those that it reads.

use bytes::Bytes;
use cohabit_types::RankId;

use crate::errors::CallError;
use crate::frames::{ToCallee, ToCaller};
use crate::held::HeldId;
use crate::ids::{CallNumber, Ticket};
use crate::limits::MAX_ARGUMENTS;
use crate::member::Member;
use crate::member_effect::MemberEffect;
use crate::stream_reader::ArrivedItem;
use crate::stream_window::ItemTotal;

impl Member {
    /// Whether a running task of this process may make the next item of its stream. If it may not, there is
    /// a [`MemberEffect::MakeMore`] as soon as it may.
    #[must_use]
    pub fn may_make(&self, ticket: Ticket) -> bool {
        self.task_gate.may_make(ticket)
    }

    /// A running task of this process has made the next item of its stream. `carries` are the handles in it,
    /// which the process still holds. An item that the caller got from an earlier runner is not sent.
    ///
    /// # Errors
    ///
    /// `Refused` if it is too large; the task has to end with this error.
    pub fn item(
        &mut self,
        ticket: Ticket,
        item: Bytes,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<(), CallError> {
        let bytes = item.len();
        if bytes > MAX_ARGUMENTS {
            let text = format!(
                "an item of {bytes} bytes; one of a stream has at most {MAX_ARGUMENTS}: make smaller ones"
            );
            return Err(CallError::Refused(text));
        }
        let Some((to, call, number)) = self.task_gate.make(ticket, bytes as u64) else { return Ok(()) };
        if self.admits(to) {
            let carries = self.carry_to(to, &carries, effects);
            let frame = ToCaller::Item { call, number, item, carries };
            effects.push(MemberEffect::ToCaller { to, frame });
        }
        Ok(())
    }

    /// The user of this process has taken the first item that it had not taken of a stream.
    pub fn read(&mut self, call: CallNumber, effects: &mut Vec<MemberEffect>) {
        if let Some((to, ItemTotal { items, bytes })) = self.task_calls.read(call) {
            effects.push(MemberEffect::ToCallee { to, frame: ToCallee::Credit { call, items, bytes } });
        }
    }

    /// A runner has made an item of a task of this process.
    pub(crate) fn item_arrives(
        &mut self,
        from: RankId,
        arrived: ArrivedItem,
        effects: &mut Vec<MemberEffect>,
    ) {
        let ArrivedItem { call, number, item, carries } = arrived;
        if self.task_calls.item(from, call, number, item.len() as u64) {
            effects.push(MemberEffect::Item { call, number, item, carries });
        } else {
            carries.into_iter().for_each(|carried| self.release(carried, effects));
        }
    }

    /// A caller has read items of a task that it sent.
    pub(crate) fn credited(
        &mut self,
        from: RankId,
        call: CallNumber,
        read: ItemTotal,
        effects: &mut Vec<MemberEffect>,
    ) {
        let resumed = self.task_gate.credit(from, call, read);
        effects.extend(resumed.map(|ticket| MemberEffect::MakeMore { ticket }));
    }
}
