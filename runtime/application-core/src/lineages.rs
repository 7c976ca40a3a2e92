//! How lost objects can be made again, as the coordinator remembers it, and which are being made again.
//!
//! Lineages hold what is in their arguments. They are forgotten with their objects, and the oldest ones when
//! all of them have too many bytes.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::RankId;

use crate::held::HeldId;
use crate::ids::ObjectId;
use crate::limits::MAX_LINEAGE_BYTES;
use crate::lineage::Lineage;
use crate::object_value::{Carried, CarriedValue};

/// What one lineage takes besides its bytes.
const LINEAGE_OVERHEAD: usize = 256;

/// All lineages.
#[derive(Debug, Default)]
pub(crate) struct Lineages {
    all: BTreeMap<ObjectId, KeptLineage>,
    /// By age.
    order: BTreeMap<u64, ObjectId>,
    bytes: usize,
    last: u64,
    /// Objects that are being made again, or were to be when the process that did so has ended.
    remakes: BTreeMap<ObjectId, RemakeState>,
}

#[derive(Debug)]
struct KeptLineage {
    lineage: Lineage,
    order: u64,
    bytes: usize,
    /// How often the object was made again.
    remakes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemakeState {
    /// This process calls the task.
    Called { by: RankId, remake: u32 },
    /// This process has run the task, and will say that the object is stored.
    Promised { by: RankId },
    /// The process that called the task has ended: another one calls it.
    Orphaned,
}

/// Whether an object that no node has is made again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Remaking {
    /// It is.
    Running,
    /// Its task may be called by a process.
    Possible,
    /// Its task has run as often as it may.
    Exhausted,
    /// It is not known how.
    NoLineage,
}

impl Lineages {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// It is known how an object can be made again: what its lineage holds, and what older ones held that are
    /// forgotten now. Nothing, if it was known before.
    pub(crate) fn add(&mut self, object: ObjectId, lineage: Lineage) -> (Vec<HeldId>, Vec<HeldId>) {
        if self.all.contains_key(&object) {
            return (Vec::new(), Vec::new());
        }
        self.last += 1;
        let (order, bytes) = (self.last, size(&lineage));
        let taken = held(&lineage).collect();
        self.bytes += bytes;
        self.order.insert(order, object);
        self.all.insert(object, KeptLineage { lineage, order, bytes, remakes: 0 });
        let mut released = Vec::new();
        while self.bytes > MAX_LINEAGE_BYTES
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            released.extend(self.forget(*oldest));
        }
        (taken, released)
    }

    /// An object is not to be made again any more: what its lineage held.
    pub(crate) fn forget(&mut self, object: ObjectId) -> Vec<HeldId> {
        self.remakes.remove(&object);
        let Some(KeptLineage { lineage, order, bytes, .. }) = self.all.remove(&object) else {
            return Vec::new();
        };
        self.order.remove(&order);
        self.bytes -= bytes;
        held(&lineage).collect()
    }

    /// Whether somebody was asked to make an object again.
    pub(crate) fn was_remade(&self, object: ObjectId) -> bool {
        self.all.get(&object).is_some_and(|it| it.remakes > 0)
    }

    /// Whether an object that no node has is made again.
    pub(crate) fn remaking(&self, object: ObjectId) -> Remaking {
        match (self.remakes.get(&object), self.all.get(&object)) {
            (Some(RemakeState::Called { .. } | RemakeState::Promised { .. }), _) => Remaking::Running,
            (_, None) => Remaking::NoLineage,
            (Some(RemakeState::Orphaned), Some(_)) => Remaking::Possible,
            (None, Some(it)) if it.lineage.retries > 0 => Remaking::Possible,
            (None, Some(_)) => Remaking::Exhausted,
        }
    }

    /// A process makes an object again: the number of the remake, and the task.
    pub(crate) fn remake(&mut self, object: ObjectId, by: RankId) -> Option<(u32, Lineage)> {
        let it = self.all.get_mut(&object)?;
        if self.remakes.get(&object) != Some(&RemakeState::Orphaned) {
            it.lineage.retries = it.lineage.retries.checked_sub(1)?;
        }
        it.remakes += 1;
        let remake = it.remakes;
        self.remakes.insert(object, RemakeState::Called { by, remake });
        Some((remake, it.lineage.clone()))
    }

    /// An object was stored again.
    pub(crate) fn stored(&mut self, object: ObjectId) {
        self.remakes.remove(&object);
    }

    /// The process that called the task says that a runner has ended it: whether that is news. `runner` is
    /// there if it lives and will say that the object is stored.
    pub(crate) fn remade(
        &mut self,
        object: ObjectId,
        (from, remake): (RankId, u32),
        runner: Option<RankId>,
    ) -> bool {
        if self.remakes.get(&object) != Some(&RemakeState::Called { by: from, remake }) {
            return false;
        }
        match runner {
            Some(by) => _ = self.remakes.insert(object, RemakeState::Promised { by }),
            None => _ = self.remakes.remove(&object),
        }
        true
    }

    /// A process has ended, or is not heard any more: others do what it did. The runner of a task that has
    /// ended costs another retry.
    pub(crate) fn member_gone(&mut self, member: RankId) {
        self.remakes.retain(|_, state| match *state {
            RemakeState::Called { by, .. } if by == member => {
                *state = RemakeState::Orphaned;
                true
            }
            RemakeState::Promised { by } => by != member,
            RemakeState::Called { .. } | RemakeState::Orphaned => true,
        });
    }

    /// The objects of processes that have ended, which may have been forgotten before they were known.
    pub(crate) fn of_ended(&self, members: &BTreeSet<RankId>) -> impl Iterator<Item = ObjectId> {
        self.all.keys().copied().filter(|object| !members.contains(&object.maker))
    }
}

/// What the coordinator holds for a lineage.
pub(crate) fn held(lineage: &Lineage) -> impl Iterator<Item = HeldId> {
    lineage.carries.iter().filter_map(Carried::lent)
}

fn size(lineage: &Lineage) -> usize {
    let attached = |carried: &Carried| match carried {
        Carried::Object { value: CarriedValue::Inline(value), .. } => value.len(),
        Carried::Object { value: CarriedValue::Failed(error), .. } => error.to_string().len(),
        Carried::Object { value: CarriedValue::Shared | CarriedValue::Stored(_), .. } | Carried::Actor(_) => {
            0
        }
    };
    let carried: usize = lineage.carries.iter().map(|it| LINEAGE_OVERHEAD / 4 + attached(it)).sum();
    let class = lineage.class.claims.len();
    LINEAGE_OVERHEAD + lineage.arguments.len() + lineage.needs.len() * size_of::<ObjectId>() + class + carried
}
