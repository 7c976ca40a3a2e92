//! Calls that wait until the values of references are known that their arguments name.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ActorId, CallNumber, ObjectId};

/// All such calls of a process.
#[derive(Debug)]
pub(crate) struct Dependents {
    calls: BTreeMap<CallNumber, Dependent>,
    by_object: BTreeMap<ObjectId, BTreeSet<CallNumber>>,
}

#[derive(Debug)]
struct Dependent {
    callee: Callee,
    missing: BTreeSet<ObjectId>,
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee {
    Actor(ActorId),
    Task,
}

impl Dependents {
    pub(crate) const fn new() -> Dependents {
        Dependents { calls: BTreeMap::new(), by_object: BTreeMap::new() }
    }

    /// A call waits for these references, of which there is at least one.
    pub(crate) fn add(&mut self, call: CallNumber, callee: Callee, missing: BTreeSet<ObjectId>) {
        for object in &missing {
            self.by_object.entry(*object).or_default().insert(call);
        }
        self.calls.insert(call, Dependent { callee, missing });
    }

    /// A value is known: the calls that wait for nothing more, in order.
    pub(crate) fn known(&mut self, object: ObjectId) -> Vec<(CallNumber, Callee)> {
        let mut complete = Vec::new();
        for call in self.by_object.remove(&object).unwrap_or_default() {
            let Some(dependent) = self.calls.get_mut(&call) else { continue };
            dependent.missing.remove(&object);
            if dependent.missing.is_empty() {
                complete.push((call, dependent.callee));
                self.calls.remove(&call);
            }
        }
        complete
    }

    /// There will be no value: the calls that waited for it, in order, which wait for nothing more.
    pub(crate) fn failed(&mut self, object: ObjectId) -> Vec<(CallNumber, Callee)> {
        let calls = self.by_object.remove(&object).unwrap_or_default();
        calls.into_iter().filter_map(|call| Some((call, self.forget(call)?))).collect()
    }

    /// The references for which a call waits.
    pub(crate) fn missing(&self, call: CallNumber) -> impl Iterator<Item = ObjectId> {
        self.calls.get(&call).into_iter().flat_map(|dependent| dependent.missing.iter().copied())
    }

    /// A call has ended.
    pub(crate) fn forget(&mut self, call: CallNumber) -> Option<Callee> {
        let dependent = self.calls.remove(&call)?;
        for object in &dependent.missing {
            if let Some(waiting) = self.by_object.get_mut(object) {
                waiting.remove(&call);
                if waiting.is_empty() {
                    self.by_object.remove(object);
                }
            }
        }
        Some(dependent.callee)
    }
}
