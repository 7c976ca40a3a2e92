//! The references of a process: those of its calls, those that came from others, and their way to others.
//!
//! A reference travels with its value where that is small and has no handles in it, or with the name of the
//! stored object. Everything else is *shared*: the coordinator passes its value on as soon as it is known.
//!
//! A drop can cancel calls whose arguments hold references, and a failed call can fail others that wait for
//! it: such chains are as long as the user makes them. So their links are worked off one after the other.

use std::collections::BTreeSet;

use bytes::Bytes;
use cohabit_types::RankId;

use crate::dependents::Callee;
use crate::errors::CallError;
use crate::frames::ToCoordinator;
use crate::held::HeldId;
use crate::ids::{CallNumber, ObjectId, RequestNumber};
use crate::limits::MAX_ATTACHED;
use crate::member::Member;
use crate::member_effect::MemberEffect;
use crate::object_frames::{FromDirectory, ToDirectory};
use crate::object_value::{CallValue, Carried, CarriedValue, ObjectValue, SharedValue, StoredObject};
use crate::references::Dropped;

/// What is still to be done after a change.
#[derive(Debug)]
pub(crate) enum Chore {
    /// A handle was dropped.
    Release(HeldId),
    /// The value of a reference is known: calls may wait for it.
    Tell(ObjectId),
}

impl Member {
    /// A handle or a reference was cloned or decoded. `false` if the process does not hold it, as when it is
    /// decoded from a file: it is of no use then.
    #[must_use]
    pub fn hold(&mut self, held: HeldId) -> bool {
        self.holds.add(held)
    }

    /// A handle or a reference was dropped. The last reference of a call that has not ended cancels it.
    pub fn release(&mut self, held: HeldId, effects: &mut Vec<MemberEffect>) {
        self.chores.push_back(Chore::Release(held));
        self.work_off(effects);
    }

    /// What a reference that the process holds stands for; none while that is not known.
    #[must_use]
    pub fn object_value(&self, object: ObjectId) -> Option<ObjectValue> {
        self.references.value(object).cloned()
    }

    /// A small value becomes an object, which the process holds once. `carries` are the handles in it, which
    /// the process still holds.
    pub fn keep_inline(
        &mut self,
        value: Bytes,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) -> ObjectId {
        let object = self.references.name();
        self.holds.gain(HeldId::Object(object));
        let inner: Vec<HeldId> = carries.into_iter().filter(|held| self.holds.add(*held)).collect();
        let has_handles = !inner.is_empty();
        self.references.add_known(object, ObjectValue::Inline(value), inner);
        if has_handles {
            self.share(object, effects);
        }
        object
    }

    /// The name of an object that is about to be stored.
    pub const fn new_object(&mut self) -> ObjectId {
        self.references.name()
    }

    /// The store of the node has an object, which the process holds once. `carries` are the handles in it,
    /// which the process still holds.
    pub fn stored(
        &mut self,
        object: ObjectId,
        bytes: u64,
        carries: &[HeldId],
        effects: &mut Vec<MemberEffect>,
    ) -> StoredObject {
        let (home, has_handles) = (self.node(), !carries.is_empty());
        let stored = StoredObject { object, bytes, home, has_handles };
        self.holds.settle(HeldId::Object(object), self.coordinator);
        self.references.add_stored(stored);
        let carries = self.carry_all(carries, effects);
        effects.push(to_directory(ToDirectory::Stored { stored, carries }));
        stored
    }

    /// Asks for the handles in a stored object; the answer is `Opened`.
    pub fn open_object(&mut self, object: ObjectId, effects: &mut Vec<MemberEffect>) -> RequestNumber {
        let request = self.next_request();
        effects.push(to_directory(ToDirectory::Open { request, object }));
        request
    }

    /// A reference whose call has not ended fails with this error, and the call is cancelled.
    pub fn fail_reference(&mut self, object: ObjectId, error: CallError, effects: &mut Vec<MemberEffect>) {
        let Some(pending) = self.references.pending(object) else { return };
        self.references.take_call(pending.call);
        if pending.callee == Callee::Task {
            self.task_calls.wake_caller_of(pending.call);
            self.update_all_needs(effects);
        }
        self.resolve(object, ObjectValue::Failed(error), Vec::new(), None, effects);
        self.cancel_callee(pending.call, pending.callee, effects);
    }

    /// The call of a reference goes on when the last reference is dropped.
    pub fn detach_reference(&mut self, object: ObjectId) {
        self.references.detach(object);
    }

    /// The coordinator has said something about an object.
    pub(crate) fn receive_news(&mut self, news: FromDirectory, effects: &mut Vec<MemberEffect>) {
        match news {
            FromDirectory::Known { object, value } if !self.references.contains(object) => {
                // It was dropped meanwhile. What is in it is not looked at: it may lead back to it.
                for held in value.lent() {
                    self.holds.settle(held, self.coordinator);
                    self.release(held, effects);
                }
            }
            FromDirectory::Known { object, value } => {
                let (value, inner) = self.accept_shared(value, effects);
                self.resolve(object, value, inner, None, effects);
            }
            FromDirectory::Unwanted { object } => {
                if !self.holds.is_held(HeldId::Object(object))
                    && let Dropped::Cancel(pending) = self.references.unwanted(object)
                {
                    self.cancel_callee(pending.call, pending.callee, effects);
                }
            }
            FromDirectory::Opened { request, carries } => {
                let carries = self.accept_all(carries, self.coordinator, effects);
                effects.push(MemberEffect::Opened { request, carries });
            }
            FromDirectory::Remake { object, remake, lineage } => {
                self.remake(object, remake, *lineage, effects);
            }
            FromDirectory::Inquire { object } => effects.push(to_directory(ToDirectory::Said { object })),
        }
    }

    /// Checks that the process holds all of these.
    pub(crate) fn check_held<'a>(&self, held: impl IntoIterator<Item = &'a HeldId>) -> Result<(), CallError> {
        match held.into_iter().find(|held| !self.holds.is_held(**held)) {
            Some(unknown) => Err(CallError::Refused(format!("this process holds no {unknown}"))),
            None => Ok(()),
        }
    }

    /// The references among these whose values are not known yet.
    ///
    /// # Errors
    /// `Dependency` if one of them has none, `Refused` if the process does not hold one.
    pub(crate) fn missing(&self, needs: &[ObjectId]) -> Result<BTreeSet<ObjectId>, CallError> {
        let mut missing = BTreeSet::new();
        for object in needs {
            match self.references.value(*object) {
                Some(ObjectValue::Failed(error)) => return Err(error.of_argument()),
                Some(ObjectValue::Inline(_) | ObjectValue::Stored(_)) => {}
                None if self.references.contains(*object) => _ = missing.insert(*object),
                None => {
                    let text = format!("this process holds no reference to object {object}");
                    return Err(CallError::Refused(text));
                }
            }
        }
        Ok(missing)
    }

    /// A call of this process has ended.
    pub(crate) fn end_call(
        &mut self,
        call: CallNumber,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) {
        self.dependents.forget(call);
        let Some(object) = self.references.take_call(call) else {
            return effects.push(MemberEffect::Finish { call, result, carries });
        };
        let value = match result {
            Ok(CallValue::Inline(value)) => ObjectValue::Inline(value),
            Ok(CallValue::Stored(stored)) => ObjectValue::Stored(stored),
            Err(error) => ObjectValue::Failed(error),
        };
        self.resolve(object, value, carries, Some(call), effects);
    }

    /// Takes what came with a frame: the handles, each of which the process holds once more.
    pub(crate) fn accept_all(
        &mut self,
        carries: Vec<Carried>,
        from: RankId,
        effects: &mut Vec<MemberEffect>,
    ) -> Vec<HeldId> {
        carries.into_iter().map(|carried| self.accept(carried, from, effects)).collect()
    }

    /// What is sent for handles that the process holds; nothing is lent by this.
    pub(crate) fn carry_all(&mut self, carries: &[HeldId], effects: &mut Vec<MemberEffect>) -> Vec<Carried> {
        let mut attached = 0;
        carries.iter().map(|held| self.carry(*held, &mut attached, effects)).collect()
    }

    /// What is sent to a member for handles that the process holds; they are lent to it.
    pub(crate) fn carry_to(
        &mut self,
        to: RankId,
        carries: &[HeldId],
        effects: &mut Vec<MemberEffect>,
    ) -> Vec<Carried> {
        let carried = self.carry_all(carries, effects);
        let lent = carried.iter().filter_map(Carried::lent);
        effects.extend(lent.map(|held| MemberEffect::ToCoordinator(ToCoordinator::Lend { held, to })));
        carried
    }

    fn accept(&mut self, carried: Carried, from: RankId, effects: &mut Vec<MemberEffect>) -> HeldId {
        let (object, value) = match carried {
            Carried::Actor(actor) => {
                self.holds.settle(HeldId::Actor(actor), from);
                return HeldId::Actor(actor);
            }
            Carried::Object { object, value } => (object, value),
        };
        let held = HeldId::Object(object);
        match value {
            CarriedValue::Shared => {
                self.holds.settle(held, from);
                if !self.references.contains(object) {
                    self.references.add_foreign(object);
                    effects.push(to_directory(ToDirectory::Watch { object, lender: from }));
                }
            }
            CarriedValue::Stored(stored) => {
                self.holds.settle(HeldId::Object(stored.object), from);
                self.references.add_stored(stored);
                if stored.object != object {
                    self.holds.gain(held);
                    let inner = vec![HeldId::Object(stored.object)];
                    self.learn(object, ObjectValue::Stored(stored), inner, effects);
                }
            }
            CarriedValue::Inline(value) => {
                self.holds.gain(held);
                self.learn(object, ObjectValue::Inline(value), Vec::new(), effects);
            }
            CarriedValue::Failed(error) => {
                self.holds.gain(held);
                self.learn(object, ObjectValue::Failed(error), Vec::new(), effects);
            }
        }
        held
    }

    /// A value came with its reference.
    fn learn(
        &mut self,
        object: ObjectId,
        value: ObjectValue,
        inner: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) {
        if !self.references.contains(object) {
            self.references.add_known(object, value, inner);
        } else if self.references.pending(object).is_some() {
            // Its call knows better.
            inner.into_iter().for_each(|held| self.release(held, effects));
        } else {
            self.resolve(object, value, inner, None, effects);
        }
    }

    fn accept_shared(
        &mut self,
        value: SharedValue,
        effects: &mut Vec<MemberEffect>,
    ) -> (ObjectValue, Vec<HeldId>) {
        match value {
            SharedValue::Inline { value, carries } => {
                let inner = self.accept_all(carries, self.coordinator, effects);
                (ObjectValue::Inline(value), inner)
            }
            SharedValue::Stored(stored) => {
                self.holds.settle(HeldId::Object(stored.object), self.coordinator);
                self.references.add_stored(stored);
                (ObjectValue::Stored(stored), vec![HeldId::Object(stored.object)])
            }
            SharedValue::Failed(error) => (ObjectValue::Failed(error), Vec::new()),
        }
    }

    fn carry(&mut self, held: HeldId, attached: &mut usize, effects: &mut Vec<MemberEffect>) -> Carried {
        let object = match held {
            HeldId::Actor(actor) => return Carried::Actor(actor),
            HeldId::Object(object) => object,
        };
        let known = self.references.known(object);
        let value = match known.map(|known| (&known.value, known.inner.is_empty())) {
            Some((ObjectValue::Stored(stored), _)) => CarriedValue::Stored(*stored),
            Some((ObjectValue::Failed(error), _)) if *attached + error.to_string().len() <= MAX_ATTACHED => {
                *attached += error.to_string().len();
                CarriedValue::Failed(error.clone())
            }
            Some((ObjectValue::Inline(value), true)) if *attached + value.len() <= MAX_ATTACHED => {
                *attached += value.len();
                CarriedValue::Inline(value.clone())
            }
            Some((ObjectValue::Inline(_) | ObjectValue::Failed(_), _)) | None => {
                self.share(object, effects);
                CarriedValue::Shared
            }
        };
        Carried::Object { object, value }
    }

    /// The coordinator is to pass a reference on, which the process holds.
    fn share(&mut self, object: ObjectId, effects: &mut Vec<MemberEffect>) {
        if self.references.share(object) {
            self.holds.note_lend(HeldId::Object(object), self.coordinator);
            let value = self.shared_value(object, effects);
            effects.push(to_directory(ToDirectory::Share { object, value }));
        }
    }

    fn shared_value(&mut self, object: ObjectId, effects: &mut Vec<MemberEffect>) -> Option<SharedValue> {
        let known = self.references.known(object)?;
        match &known.value {
            ObjectValue::Stored(stored) => Some(SharedValue::Stored(*stored)),
            ObjectValue::Failed(error) => Some(SharedValue::Failed(error.clone())),
            ObjectValue::Inline(value) => {
                let (value, inner) = (value.clone(), known.inner.clone());
                // Those among them that have handles themselves are shared already.
                let carries = self.carry_all(&inner, effects);
                Some(SharedValue::Inline { value, carries })
            }
        }
    }

    /// The value of a reference is known: by the end of its call, or from the coordinator.
    fn resolve(
        &mut self,
        object: ObjectId,
        value: ObjectValue,
        inner: Vec<HeldId>,
        call: Option<CallNumber>,
        effects: &mut Vec<MemberEffect>,
    ) {
        let has_handles = matches!(value, ObjectValue::Inline(_)) && !inner.is_empty();
        let was_pending = self.references.pending(object).is_some();
        let is_held = self.holds.is_held(HeldId::Object(object));
        match self.references.resolve(object, value, inner) {
            Err(inner) => {
                self.chores.extend(inner.into_iter().map(Chore::Release));
                if call.is_none() {
                    // It was known before, or is gone.
                    return self.work_off(effects);
                }
            }
            Ok(()) if was_pending && self.references.is_shared(object) => {
                if let Some(value) = self.shared_value(object, effects) {
                    effects.push(to_directory(ToDirectory::Resolve { object, value }));
                }
            }
            // So no chain of references is ever shared at once.
            Ok(()) if has_handles && is_held => self.share(object, effects),
            Ok(()) => {}
        }
        effects.push(MemberEffect::ObjectReady { object, call });
        if is_held {
            self.chores.push_back(Chore::Tell(object));
        } else {
            let inner = self.references.remove(object);
            self.chores.extend(inner.into_iter().map(Chore::Release));
        }
        self.work_off(effects);
    }

    /// Carries out what a change brings about, and only then what follows from that: later changes must not
    /// overtake it.
    pub(crate) fn in_order(
        &mut self,
        effects: &mut Vec<MemberEffect>,
        carry_out: impl FnOnce(&mut Member, &mut Vec<MemberEffect>),
    ) {
        let was_working = std::mem::replace(&mut self.is_working, true);
        carry_out(self, effects);
        self.is_working = was_working;
        self.work_off(effects);
    }

    fn work_off(&mut self, effects: &mut Vec<MemberEffect>) {
        if std::mem::replace(&mut self.is_working, true) {
            return;
        }
        while let Some(chore) = self.chores.pop_front() {
            match chore {
                Chore::Release(held) => self.release_one(held, effects),
                Chore::Tell(object) => self.tell_dependents(object, effects),
            }
        }
        self.is_working = false;
    }

    fn release_one(&mut self, held: HeldId, effects: &mut Vec<MemberEffect>) {
        let Some(settled) = self.holds.remove(held) else { return };
        match held {
            HeldId::Actor(actor) => {
                self.forget_queue(actor);
                effects.push(MemberEffect::ToCoordinator(ToCoordinator::Release { held, settled }));
            }
            HeldId::Object(object) => {
                if !settled.is_empty() {
                    effects.push(MemberEffect::ToCoordinator(ToCoordinator::Release { held, settled }));
                }
                match self.references.let_go(object) {
                    Dropped::Nothing => {}
                    Dropped::Release(inner) => self.chores.extend(inner.into_iter().map(Chore::Release)),
                    Dropped::Cancel(pending) => self.cancel_callee(pending.call, pending.callee, effects),
                }
            }
        }
    }

    fn tell_dependents(&mut self, object: ObjectId, effects: &mut Vec<MemberEffect>) {
        let error = match self.references.value(object) {
            Some(ObjectValue::Failed(error)) => Some(error.of_argument()),
            Some(ObjectValue::Inline(_) | ObjectValue::Stored(_)) => None,
            None => return,
        };
        match error {
            Some(error) => {
                for (call, callee) in self.dependents.failed(object) {
                    self.fail_dependent(call, callee, error.clone(), effects);
                }
            }
            None => {
                for (call, callee) in self.dependents.known(object) {
                    self.admit_dependent(call, callee, effects);
                }
            }
        }
    }

    fn cancel_callee(&mut self, call: CallNumber, callee: Callee, effects: &mut Vec<MemberEffect>) {
        match callee {
            Callee::Actor(actor) => self.cancel(actor, call, effects),
            Callee::Task => self.cancel_task(call, effects),
        }
    }
}

const fn to_directory(report: ToDirectory) -> MemberEffect {
    MemberEffect::ToCoordinator(ToCoordinator::Object(report))
}
