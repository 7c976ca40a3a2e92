//! The references of one process, and what is known of each.
//!
//! How often a reference is held is for `local_holds`. One whose call has not ended stays here without being
//! held: it may be held again, or its call be detached.

use std::collections::BTreeMap;

use cohabit_types::RankId;

use crate::dependents::Callee;
use crate::held::HeldId;
use crate::ids::{CallNumber, ObjectId};
use crate::object_value::{ObjectValue, StoredObject};

/// The references of a process.
#[derive(Debug)]
pub(crate) struct References {
    own: RankId,
    /// How many names this process has made.
    named: u64,
    all: BTreeMap<ObjectId, Reference>,
    calls: BTreeMap<CallNumber, ObjectId>,
}

#[derive(Debug)]
struct Reference {
    state: ReferenceState,
    sharing: ReferenceScope,
}

#[derive(Debug)]
enum ReferenceState {
    /// Its call has not ended.
    Pending(PendingReference),
    /// The coordinator will say what it is.
    Foreign,
    Known(KnownValue),
}

/// A call with a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingReference {
    pub(crate) call: CallNumber,
    pub(crate) callee: Callee,
    at_drop: AtDrop,
}

/// What becomes of a call whose reference is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtDrop {
    Cancel,
    GoOn,
}

/// What a reference stands for.
#[derive(Debug)]
pub(crate) struct KnownValue {
    pub(crate) value: ObjectValue,
    /// What the reference holds: the handles in a small value, or the stored object that it names.
    pub(crate) inner: Vec<HeldId>,
}

/// Whether the coordinator knows a reference by its own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceScope {
    Private,
    Shared,
}

/// What follows from the drop of the last handle.
#[derive(Debug)]
pub(crate) enum Dropped {
    Nothing,
    /// Release what it held.
    Release(Vec<HeldId>),
    Cancel(PendingReference),
}

impl References {
    pub(crate) const fn new(own: RankId) -> References {
        References { own, named: 0, all: BTreeMap::new(), calls: BTreeMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A name that no object has.
    pub(crate) const fn name(&mut self) -> ObjectId {
        self.named += 1;
        ObjectId { maker: self.own, number: self.named }
    }

    /// A call that is being made gets a reference.
    pub(crate) fn add_call(&mut self, object: ObjectId, call: CallNumber, callee: Callee) {
        let pending = PendingReference { call, callee, at_drop: AtDrop::Cancel };
        self.calls.insert(call, object);
        self.insert(object, ReferenceState::Pending(pending), ReferenceScope::Private);
    }

    /// The coordinator will say what it is.
    pub(crate) fn add_foreign(&mut self, object: ObjectId) {
        self.insert(object, ReferenceState::Foreign, ReferenceScope::Shared);
    }

    pub(crate) fn add_known(&mut self, object: ObjectId, value: ObjectValue, inner: Vec<HeldId>) {
        self.insert(object, ReferenceState::Known(KnownValue { value, inner }), ReferenceScope::Private);
    }

    /// An object in the store, by its own name.
    pub(crate) fn add_stored(&mut self, stored: StoredObject) {
        if !self.contains(stored.object) {
            self.add_known(stored.object, ObjectValue::Stored(stored), Vec::new());
        }
    }

    fn insert(&mut self, object: ObjectId, state: ReferenceState, sharing: ReferenceScope) {
        self.all.insert(object, Reference { state, sharing });
    }

    pub(crate) fn contains(&self, object: ObjectId) -> bool {
        self.all.contains_key(&object)
    }

    /// Its value, as soon as it is known.
    pub(crate) fn value(&self, object: ObjectId) -> Option<&ObjectValue> {
        self.known(object).map(|known| &known.value)
    }

    pub(crate) fn known(&self, object: ObjectId) -> Option<&KnownValue> {
        match &self.all.get(&object)?.state {
            ReferenceState::Known(known) => Some(known),
            ReferenceState::Pending(_) | ReferenceState::Foreign => None,
        }
    }

    /// The call of a reference, until it has ended.
    pub(crate) fn pending(&self, object: ObjectId) -> Option<PendingReference> {
        match &self.all.get(&object)?.state {
            ReferenceState::Pending(pending) => Some(*pending),
            ReferenceState::Foreign | ReferenceState::Known(_) => None,
        }
    }

    /// The reference of a call that has ended, or that is a call without a reference from now on.
    pub(crate) fn take_call(&mut self, call: CallNumber) -> Option<ObjectId> {
        self.calls.remove(&call)
    }

    /// Its call goes on when the reference is dropped.
    pub(crate) fn detach(&mut self, object: ObjectId) {
        if let Some(Reference { state: ReferenceState::Pending(pending), .. }) = self.all.get_mut(&object) {
            pending.at_drop = AtDrop::GoOn;
        }
    }

    /// The value is known now. `inner` comes back if it was known before, or there is no such reference.
    pub(crate) fn resolve(
        &mut self,
        object: ObjectId,
        value: ObjectValue,
        inner: Vec<HeldId>,
    ) -> Result<(), Vec<HeldId>> {
        match self.all.get_mut(&object) {
            Some(reference) if !matches!(reference.state, ReferenceState::Known(_)) => {
                reference.state = ReferenceState::Known(KnownValue { value, inner });
                Ok(())
            }
            Some(_) | None => Err(inner),
        }
    }

    /// The coordinator is to know it: whether it did not.
    pub(crate) fn share(&mut self, object: ObjectId) -> bool {
        let private = self.all.get_mut(&object).filter(|it| it.sharing == ReferenceScope::Private);
        private.map(|reference| reference.sharing = ReferenceScope::Shared).is_some()
    }

    pub(crate) fn is_shared(&self, object: ObjectId) -> bool {
        self.all.get(&object).is_some_and(|it| it.sharing == ReferenceScope::Shared)
    }

    /// The last handle was dropped.
    pub(crate) fn let_go(&mut self, object: ObjectId) -> Dropped {
        let Some(Reference { state, sharing }) = self.all.get(&object) else { return Dropped::Nothing };
        match (state, sharing) {
            // Others may hold it; the coordinator says when nobody does.
            (ReferenceState::Pending(_), ReferenceScope::Shared) => Dropped::Nothing,
            (ReferenceState::Pending(pending), ReferenceScope::Private) => cancelled(*pending),
            (ReferenceState::Foreign | ReferenceState::Known(_), _) => Dropped::Release(self.remove(object)),
        }
    }

    /// Nobody holds it, here or elsewhere.
    pub(crate) fn unwanted(&self, object: ObjectId) -> Dropped {
        self.pending(object).map_or(Dropped::Nothing, cancelled)
    }

    /// Forgets a reference: what it held.
    pub(crate) fn remove(&mut self, object: ObjectId) -> Vec<HeldId> {
        match self.all.remove(&object).map(|it| it.state) {
            Some(ReferenceState::Known(known)) => known.inner,
            Some(ReferenceState::Pending(_) | ReferenceState::Foreign) | None => Vec::new(),
        }
    }
}

const fn cancelled(pending: PendingReference) -> Dropped {
    match pending.at_drop {
        AtDrop::Cancel => Dropped::Cancel(pending),
        AtDrop::GoOn => Dropped::Nothing,
    }
}
