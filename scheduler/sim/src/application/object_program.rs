//! What users' code does with objects: it makes and reads them, and waits for those that its arguments name.

use bytes::Bytes;
use cohabit_application_core::{
    CallError, CallNumber, CallValue, HeldId, MemberEffect, ObjectId, ObjectValue, RequestNumber,
    StoreRefusal, StoredObject,
};
use cohabit_types::{RankId, Span};

use super::event::ApplicationEvent;
use super::object_process::{FailedNeed, HandleOwner, MakingKind, OpenedObject, StorePurpose, Storing};
use super::payload::{Tag, encode};
use super::simulated_store::{StoreAnswer, StoreCall};
use super::world::{ApplicationWorld, ProgramPhase};

/// How long a process fills memory, or keeps it mapped.
const USE: (Span, Span) = (Span::from_micros(1), Span::from_millis(200));

impl ApplicationWorld {
    /// A main or actor makes an object.
    pub(super) fn put_object(&mut self, member: RankId) {
        let carries = self.some_handles(member);
        let carries = self.known_among(member, carries);
        self.last_tag += 1;
        let payload = encode(Tag(self.last_tag), &carries);
        self.counters.puts += 1;
        if self.random.chance(0.5) {
            return self.begin_store(member, payload, carries, StorePurpose::Put);
        }
        let mut effects = Vec::new();
        let process = self.process(member);
        let object = process.core.keep_inline(payload.clone(), carries, &mut effects);
        process.handles.push(HeldId::Object(object));
        _ = self.objects.made(object, payload, 0);
        self.drive(member, |_, all| all.append(&mut effects));
    }

    /// A process puts a value into the store.
    pub(super) fn begin_store(
        &mut self,
        member: RankId,
        payload: Bytes,
        carries: Vec<HeldId>,
        purpose: StorePurpose,
    ) {
        let bytes = self.random.between(1, self.store_budget / 2);
        let process = self.process(member);
        let lost =
            if let StorePurpose::Task(ticket) = purpose { process.core.store_as(ticket) } else { None };
        let object = lost.unwrap_or_else(|| process.core.new_object());
        let bytes = lost.and_then(|object| self.objects.bytes(object)).unwrap_or(bytes);
        let process = self.process(member);
        let carries: Vec<HeldId> = carries.into_iter().filter(|held| process.core.hold(*held)).collect();
        let kind = if lost.is_some() { MakingKind::Again } else { MakingKind::New };
        let storing = Storing { bytes, payload: payload.clone(), kind, carries, purpose };
        let request = StoreCall::making(object, &storing);
        process.storing.insert(object, storing);
        if let Some(violation) = self.objects.made(object, payload, bytes) {
            self.ledger.violated(format!("{member}: {violation}"));
        }
        self.ask_store(member, request);
    }

    /// The store has said something to a process.
    pub(super) fn store_reply_arrives(&mut self, member: RankId, store: RankId, reply: StoreAnswer) {
        if !self.processes.contains_key(&member) || self.store_of(member) != Some(store) {
            return;
        }
        match reply {
            StoreAnswer::Allocated(object) => {
                self.after(USE, ApplicationEvent::Filled { member, store, object });
            }
            StoreAnswer::Stored(object) => self.is_stored(member, store, object),
            StoreAnswer::HandOver(object) => {
                self.counters.reads += 1;
                self.after(USE, ApplicationEvent::Unmap { member, store, object });
                self.end_read_of(member, object);
            }
            StoreAnswer::Fetching(_) => {}
            StoreAnswer::Refused(object, reason) => self.store_refuses(member, object, reason),
            StoreAnswer::Lost(object, error) => {
                self.counters.lost_objects += 1;
                if !matches!(error, CallError::ObjectLost(_)) {
                    self.ledger.violated(format!("{member} cannot read object {object}: {error:?}"));
                }
                self.end_read_of(member, object);
            }
        }
    }

    /// A process has filled the memory of an object.
    pub(super) fn fill(&mut self, member: RankId, store: RankId, object: ObjectId) {
        let Some(storing) = self.processes.get(&member).and_then(|it| it.storing.get(&object)) else {
            return;
        };
        if let Some(simulated) = self.stores.get_mut(&store) {
            simulated.fill(object, storing.payload.clone());
            self.ask_store(member, StoreCall::Filled(object));
        }
    }

    /// A process has used an object.
    pub(super) fn unmap(&mut self, member: RankId, store: RankId, object: ObjectId) {
        if self.processes.contains_key(&member) && self.store_of(member) == Some(store) {
            self.ask_store(member, StoreCall::Unmapped(object));
        }
    }

    fn is_stored(&mut self, member: RankId, store: RankId, object: ObjectId) {
        self.places.put(object, store);
        let process = self.process(member);
        let Some(Storing { bytes, carries, purpose, .. }) = process.storing.remove(&object) else { return };
        let mut effects = Vec::new();
        let stored = process.core.stored(object, bytes, &carries, &mut effects);
        carries.into_iter().for_each(|held| process.core.release(held, &mut effects));
        let value = Ok(CallValue::Stored(stored));
        match purpose {
            StorePurpose::Put => process.handles.push(HeldId::Object(object)),
            StorePurpose::Task(ticket) => {
                self.end_task(member, ticket, value, vec![HeldId::Object(object)], &mut effects);
                self.process(member).core.release(HeldId::Object(object), &mut effects);
            }
            StorePurpose::Method(ticket) => {
                self.method_returns(member, ticket, value, vec![HeldId::Object(object)], &mut effects);
                self.process(member).core.release(HeldId::Object(object), &mut effects);
            }
        }
        self.drive(member, |_, all| all.append(&mut effects));
        if self.phase == ProgramPhase::WindDown {
            self.drop_all_handles(member);
        }
    }

    fn store_refuses(&mut self, member: RankId, object: ObjectId, reason: StoreRefusal) {
        let process = self.process(member);
        let Some(Storing { kind, carries, purpose, .. }) = process.storing.remove(&object) else {
            if reason != StoreRefusal::Full {
                self.ledger.violated(format!("{member} holds object {object} and cannot read it: {reason}"));
            }
            return self.end_read_of(member, object);
        };
        self.counters.full_stores += 1;
        // Two may make it again, and one is enough.
        let is_surplus =
            kind == MakingKind::Again && matches!(reason, StoreRefusal::Exists | StoreRefusal::Freed);
        if reason != StoreRefusal::Full && !is_surplus {
            self.ledger.violated(format!("{member} may not store object {object}: {reason}"));
        }
        let mut effects = Vec::new();
        let process = self.process(member);
        carries.into_iter().for_each(|held| process.core.release(held, &mut effects));
        let full = Err(CallError::StoreFull("the store is full".to_owned()));
        match purpose {
            StorePurpose::Put => {}
            StorePurpose::Task(ticket) => self.end_task(member, ticket, full, Vec::new(), &mut effects),
            StorePurpose::Method(ticket) => {
                self.method_returns(member, ticket, full, Vec::new(), &mut effects);
            }
        }
        self.drive(member, |_, all| all.append(&mut effects));
    }

    /// The encoded value of a call, wherever it lies.
    pub(super) fn payload_of(&self, result: &Result<CallValue, CallError>) -> Result<Bytes, CallError> {
        match result {
            Ok(CallValue::Inline(payload)) => Ok(payload.clone()),
            Ok(CallValue::Stored(stored)) => Ok(self.objects.payload(stored.object).unwrap_or_default()),
            Err(error) => Err(error.clone()),
        }
    }

    /// What a process knows of a reference.
    fn known_value(&self, member: RankId, object: ObjectId) -> Option<Result<Bytes, CallError>> {
        match self.processes.get(&member)?.core.object_value(object)? {
            ObjectValue::Inline(payload) => Some(Ok(payload)),
            ObjectValue::Stored(stored) => Some(Ok(self.objects.payload(stored.object).unwrap_or_default())),
            ObjectValue::Failed(error) => Some(Err(error)),
        }
    }

    /// A process looks at what a reference is.
    fn see(&mut self, member: RankId, object: ObjectId) -> Option<Result<Bytes, CallError>> {
        let value = self.known_value(member, object)?;
        let task = self.objects.task(object);
        let expected = task.and_then(|tag| self.task_ledger.plan(tag)).map(|plan| plan.value());
        let maker_died = !self.lives(object.maker);
        if let Some(violation) = self.objects.seen(object, &value, expected, maker_died) {
            self.ledger.violated(format!("{member}: {violation}"));
        }
        Some(value)
    }

    /// A main or actor reads one of the objects that it holds, if its value is known.
    pub(super) fn read_some_object(&mut self, member: RankId) {
        let objects: Vec<ObjectId> =
            self.process(member).handles.iter().filter_map(|held| held.object()).collect();
        if !objects.is_empty() {
            let object = *self.random.pick(&objects);
            let mut effects = Vec::new();
            self.read_object(member, object, HandleOwner::Process, &mut effects);
            self.drive(member, |_, all| all.append(&mut effects));
        }
    }

    /// A main or actor reads all the objects that it holds and whose values are known.
    pub(super) fn read_all_objects(&mut self, member: RankId) {
        if self.phase == ProgramPhase::WindDown || !self.runs_code(member) {
            return;
        }
        let objects: Vec<ObjectId> =
            self.process(member).handles.iter().filter_map(|held| held.object()).collect();
        let mut effects = Vec::new();
        for object in objects {
            self.read_object(member, object, HandleOwner::Process, &mut effects);
        }
        self.drive(member, |_, all| all.append(&mut effects));
    }

    /// A process reads an object that it holds.
    pub(super) fn read_object(
        &mut self,
        member: RankId,
        object: ObjectId,
        owner: HandleOwner,
        more: &mut Vec<MemberEffect>,
    ) {
        let Some(value) = self.see(member, object) else { return };
        let stored = match self.process(member).core.object_value(object) {
            Some(ObjectValue::Stored(stored)) => stored,
            Some(ObjectValue::Inline(_) | ObjectValue::Failed(_)) | None => {
                return self.take_handles(member, value.as_deref().unwrap_or_default(), owner, more);
            }
        };
        self.read_stored(member, (object, stored), value.unwrap_or_default(), owner, more);
    }

    /// A process reads a stored object, which it holds by this reference.
    pub(super) fn read_stored(
        &mut self,
        member: RankId,
        (reference, stored): (ObjectId, StoredObject),
        payload: Bytes,
        owner: HandleOwner,
        more: &mut Vec<MemberEffect>,
    ) {
        let process = self.process(member);
        if process.core.hold(HeldId::Object(reference)) {
            process.reading.push((reference, stored.object));
            self.ask_store(member, StoreCall::Want(stored.object));
        }
        let process = self.process(member);
        if stored.has_handles && process.core.hold(HeldId::Object(reference)) {
            let request = process.core.open_object(stored.object, more);
            process.opening.insert(request, OpenedObject { reference, payload, owner });
        }
    }

    fn end_read_of(&mut self, member: RankId, stored: ObjectId) {
        let process = self.process(member);
        let Some(at) = process.reading.iter().position(|(_, it)| *it == stored) else { return };
        let (reference, _) = process.reading.swap_remove(at);
        self.drive(member, |it, effects| it.core.release(HeldId::Object(reference), effects));
    }

    /// The handles in a stored object have come.
    pub(super) fn opened(
        &mut self,
        member: RankId,
        request: RequestNumber,
        carries: Vec<HeldId>,
        more: &mut Vec<MemberEffect>,
    ) {
        if let Some(opened) = self.process(member).opening.remove(&request) {
            // Its maker may have ended before it told which ones there are. Nobody reads it then.
            if !carries.is_empty() {
                self.take_handles(member, &opened.payload, opened.owner, more);
            }
            self.process(member).core.release(HeldId::Object(opened.reference), more);
        }
        self.give_back(member, carries, more);
    }

    /// Code begins that needs the values of these: it reads them as soon as it can.
    pub(super) fn read_needs(
        &mut self,
        member: RankId,
        needs: Vec<ObjectId>,
        failed: FailedNeed,
        more: &mut Vec<MemberEffect>,
    ) {
        for object in needs {
            let process = self.process(member);
            if !process.core.hold(HeldId::Object(object)) {
                self.ledger.violated(format!("{member} needs object {object}, which it does not hold"));
                continue;
            }
            process.unread_needs.push((object, failed));
            self.counters.needs += 1;
        }
        self.read_known_needs(member, more);
    }

    fn read_known_needs(&mut self, member: RankId, more: &mut Vec<MemberEffect>) {
        for (object, failed) in std::mem::take(&mut self.process(member).unread_needs) {
            if self.process(member).core.object_value(object).is_none() {
                self.process(member).unread_needs.push((object, failed));
                continue;
            }
            self.read_object(member, object, HandleOwner::Nobody, more);
            let value = self.known_value(member, object);
            let is_lost = matches!(value, Some(Err(CallError::ObjectLost(_))));
            if matches!(value, Some(Err(_))) && !is_lost && failed == FailedNeed::Forbidden {
                self.ledger.violated(format!("{member} runs code that needs object {object}, which failed"));
            }
            self.process(member).core.release(HeldId::Object(object), more);
        }
    }

    /// The value of a reference is known, or its call has ended.
    pub(super) fn object_ready(
        &mut self,
        member: RankId,
        object: ObjectId,
        call: Option<CallNumber>,
        more: &mut Vec<MemberEffect>,
    ) {
        let is_held = self.process(member).core.object_value(object).is_some();
        let value = self.see(member, object).filter(|_| is_held);
        self.read_known_needs(member, more);
        let Some(call) = call else { return };
        self.counters.references += 1;
        self.process(member).references.remove(&call);
        self.call_ended(member, call);
        if let Some(open) = self.process(member).task_calls.remove(&call) {
            self.counters.tasks_ended += 1;
            let violation = match value {
                Some(value) => {
                    self.counters.task_values += u64::from(value.is_ok());
                    let failed = self.may_have_failed(&open.needs);
                    self.task_ledger.finished(open.tag, &value, failed)
                }
                None => self.task_ledger.dropped(open.tag),
            };
            violation.into_iter().for_each(|text| self.ledger.violated(text));
            if let Some((ticket, _)) = open.caller {
                self.wake_task(member, ticket, call, more);
            }
        } else if let Some((actor, tag)) = self.process(member).calls.remove(&call) {
            self.counters.finished += 1;
            let history = self.history(actor);
            match value {
                Some(value) => {
                    let failed = self.may_have_failed(self.ledger.needs(tag));
                    self.ledger.finished(tag, &value, history, failed);
                }
                None => self.ledger.dropped(tag),
            }
        }
    }

    /// Whether a call that needs these may have failed because one of them has no value.
    pub(super) fn may_have_failed(&self, needs: &[ObjectId]) -> bool {
        let is_dead = |object: &ObjectId| !self.lives(object.maker);
        self.objects.any_unseen(needs) || needs.iter().any(is_dead)
    }

    /// Those among handles that may be in a value: one that is not known yet may hold this value, and values
    /// that hold each other are kept for ever.
    pub(super) fn known_among(&self, member: RankId, handles: Vec<HeldId>) -> Vec<HeldId> {
        let Some(process) = self.processes.get(&member) else { return Vec::new() };
        let is_known = |object| process.core.object_value(object).is_some();
        handles.into_iter().filter(|held| held.object().is_none_or(is_known)).collect()
    }

    /// The time of a reference is over.
    pub(super) fn fail_some_reference(&mut self, member: RankId) {
        let references: Vec<_> =
            self.process(member).references.iter().map(|(call, object)| (*call, *object)).collect();
        if references.is_empty() {
            return;
        }
        let (call, object) = *self.random.pick(&references);
        self.process(member).references.remove(&call);
        let process = self.process(member);
        let task = process.task_calls.get(&call).map(|open| open.tag);
        let method = process.calls.get(&call).map(|(_, tag)| *tag);
        task.into_iter().for_each(|tag| self.task_ledger.cancelled(tag));
        method.into_iter().for_each(|tag| self.ledger.cancelled(tag));
        let error = CallError::TimedOut(Span::from_secs(1));
        self.drive(member, |it, effects| it.core.fail_reference(object, error, effects));
    }
}
