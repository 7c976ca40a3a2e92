//! Which values objects have, written down outside of the cores: every process has to see the same ones.

use std::collections::BTreeMap;

use bytes::Bytes;
use cohabit_application_core::{CallError, ObjectId};

use super::payload::{Tag, decode};
use super::task_ledger::FoundViolation;

/// The records of the objects of a run.
#[derive(Debug, Default)]
pub(super) struct ObjectLedger {
    objects: BTreeMap<ObjectId, ObjectRecord>,
}

#[derive(Debug, Default)]
struct ObjectRecord {
    /// Its encoded value, as soon as some process has seen it.
    payload: Option<Bytes>,
    /// Why it has none, as soon as some process has seen that.
    error: Option<CallError>,
    /// The task whose value it is.
    task: Option<Tag>,
    /// Its size in a store.
    bytes: u64,
}

impl ObjectLedger {
    /// A process makes an object of this value, for the first time or again.
    pub(super) fn made(&mut self, object: ObjectId, payload: Bytes, bytes: u64) -> FoundViolation {
        let record = ObjectRecord { payload: Some(payload.clone()), bytes, ..ObjectRecord::default() };
        let record = self.objects.entry(object).or_insert(record);
        let was = record.payload.get_or_insert_with(|| payload.clone());
        let text = || format!("object {object} is made again as {:?}, and was {was:?}", decode(&payload));
        (*was != payload).then(text)
    }

    /// The size of an object that was stored.
    pub(super) fn bytes(&self, object: ObjectId) -> Option<u64> {
        self.objects.get(&object).map(|it| it.bytes)
    }

    /// A process makes a call whose value is an object.
    pub(super) fn called(&mut self, object: ObjectId, task: Option<Tag>) {
        self.objects.insert(object, ObjectRecord { task, ..ObjectRecord::default() });
    }

    pub(super) fn task(&self, object: ObjectId) -> Option<Tag> {
        self.objects.get(&object)?.task
    }

    /// The encoded value of an object that was stored.
    pub(super) fn payload(&self, object: ObjectId) -> Option<Bytes> {
        self.objects.get(&object)?.payload.clone()
    }

    /// Whether one of these has no value that some process has seen.
    pub(super) fn any_unseen(&self, objects: &[ObjectId]) -> bool {
        objects.iter().any(|object| self.objects.get(object).is_some_and(|it| it.payload.is_none()))
    }

    /// A process sees what an object is. `expected` is the number in it, if that is known beforehand;
    /// `maker_died` says whether the process that named it has ended.
    pub(super) fn seen(
        &mut self,
        object: ObjectId,
        value: &Result<Bytes, CallError>,
        expected: Option<u64>,
        maker_died: bool,
    ) -> FoundViolation {
        let Some(record) = self.objects.get_mut(&object) else {
            return Some(format!("object {object} was never made"));
        };
        match value {
            Err(CallError::ObjectLost(_)) if maker_died => None,
            Err(error) => {
                let known = record.error.get_or_insert_with(|| error.clone());
                let is_same = known == error && record.payload.is_none();
                (!is_same).then(|| format!("object {object} is {error:?}, and was {record:?} before"))
            }
            Ok(payload) => {
                let known = record.payload.get_or_insert_with(|| payload.clone());
                let is_same = known == payload && record.error.is_none();
                let is_right = expected.is_none_or(|it| decode(payload).0 == Tag(it));
                (!is_same || !is_right).then(|| {
                    let got = decode(payload).0.0;
                    format!(
                        "object {object} has the value {got}, not {expected:?}, and was {record:?} before"
                    )
                })
            }
        }
    }
}
