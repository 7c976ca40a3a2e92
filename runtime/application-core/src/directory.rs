//! What the coordinator knows of objects: values that it passes on, and which objects the stores have.
//!
//! Who holds them is for `holders`; the coordinator itself holds what is in them.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::RankId;

use crate::coordinator_effect::CoordinatorEffect;
use crate::errors::CallError;
use crate::frames::FromCoordinator;
use crate::held::HeldId;
use crate::ids::{ObjectId, RequestNumber};
use crate::limits::{MAX_SHARED, MAX_SHARED_BYTES};
use crate::object_frames::FromDirectory;
use crate::object_value::{Carried, SharedValue, StoredObject};

/// The objects that somebody holds, except those that only one process knows.
#[derive(Debug)]
pub(crate) struct Directory {
    entries: BTreeMap<ObjectId, DirectoryEntry>,
    /// Questions for the handles in objects whose makers have not said yet that they are stored: a question
    /// may overtake that.
    opens: BTreeMap<ObjectId, Vec<(RankId, RequestNumber)>>,
    /// Bytes of all values that are passed on.
    bytes: usize,
}

#[derive(Debug)]
enum DirectoryEntry {
    /// Its value is not known. `from` will say it, after it has shared it.
    Promised {
        from: RankId,
        promise: Promise,
        watchers: BTreeSet<RankId>,
    },
    Known(SharedValue),
    Stored {
        stored: StoredObject,
        carries: Vec<Carried>,
    },
}

/// Whether a reference was shared. As long as it was not, those who lent it may not have been heard, and
/// counters say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    Expected,
    Shared,
}

/// What a change of the directory does to the counters of holders.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    /// The coordinator holds these from now on, once more for each.
    pub(crate) taken: Vec<HeldId>,
    /// It lends these.
    pub(crate) lent: Vec<(RankId, HeldId)>,
    /// It holds these no longer, once less for each.
    pub(crate) released: Vec<HeldId>,
}

/// What becomes of an object that nobody holds.
#[derive(Debug, Default)]
pub(crate) struct UnheldObject {
    /// What the coordinator need not hold any more for it.
    pub(crate) unneeded: Vec<HeldId>,
    /// Whether stores have it, or may have it.
    pub(crate) is_stored: bool,
}

impl Directory {
    pub(crate) const fn new() -> Directory {
        Directory { entries: BTreeMap::new(), opens: BTreeMap::new(), bytes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.opens.is_empty()
    }

    /// A member shares a reference.
    pub(crate) fn share(
        &mut self,
        object: ObjectId,
        from: RankId,
        value: Option<SharedValue>,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Holding {
        let is_full = self.entries.len() >= MAX_SHARED;
        let entry = self.entries.entry(object);
        let entry = entry.or_insert_with(|| {
            let (promise, watchers) = (Promise::Shared, BTreeSet::new());
            DirectoryEntry::Promised { from, promise, watchers }
        });
        if let DirectoryEntry::Promised { from: expected, promise, .. } = entry {
            (*expected, *promise) = (from, Promise::Shared);
        }
        let refused = || {
            let text = format!(
                "processes of the application share more than {MAX_SHARED} references: drop some, or put many \
                 values into one object"
            );
            SharedValue::Failed(CallError::Refused(text))
        };
        match value {
            _ if is_full => self.resolve(object, refused(), effects),
            Some(value) => self.resolve(object, value, effects),
            None => Holding::default(),
        }
    }

    /// The value of a reference is known.
    pub(crate) fn resolve(
        &mut self,
        object: ObjectId,
        value: SharedValue,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Holding {
        let Some(entry) = self.entries.get_mut(&object) else { return Holding::default() };
        let DirectoryEntry::Promised { watchers, .. } = entry else { return Holding::default() };
        let (value, bytes) = match value.inline_bytes() {
            bytes if self.bytes.saturating_add(bytes) <= MAX_SHARED_BYTES => (value, bytes),
            _ => (too_many_bytes(), 0),
        };
        let watchers = std::mem::take(watchers);
        let mut holding = Holding { taken: value.lent(), ..Holding::default() };
        for to in watchers {
            holding.lent.extend(value.lent().into_iter().map(|held| (to, held)));
            effects.push(known(to, object, value.clone()));
        }
        *entry = DirectoryEntry::Known(value);
        self.bytes += bytes;
        holding
    }

    /// A member wants the value of a reference that it got from `lender`, which is in `members` if it lives.
    pub(crate) fn watch(
        &mut self,
        object: ObjectId,
        by: RankId,
        lender: RankId,
        members: &BTreeSet<RankId>,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Holding {
        let value = match self.entries.get_mut(&object) {
            Some(DirectoryEntry::Promised { from, watchers, promise: _ }) => {
                watchers.insert(by);
                if *from != by {
                    return Holding::default();
                }
                // Who was expected to share it has it from another one.
                *from = lender;
                let is_lost = !members.contains(&lender);
                return if is_lost {
                    self.resolve(object, lost(lender), effects)
                } else {
                    Holding::default()
                };
            }
            Some(DirectoryEntry::Known(value)) => value.clone(),
            Some(DirectoryEntry::Stored { stored, .. }) => SharedValue::Stored(*stored),
            None if members.contains(&lender) => {
                // What the lender said of it is still on its way.
                let (from, promise, watchers) = (lender, Promise::Expected, BTreeSet::from([by]));
                self.entries.insert(object, DirectoryEntry::Promised { from, promise, watchers });
                return Holding::default();
            }
            None => {
                // Those to whom it was passed on will ask, too.
                self.entries.insert(object, DirectoryEntry::Known(lost(lender)));
                lost(lender)
            }
        };
        let lent = value.lent().into_iter().map(|held| (by, held)).collect();
        effects.push(known(by, object, value));
        Holding { lent, ..Holding::default() }
    }

    /// The store of a node has an object. None if its name is that of something else.
    pub(crate) fn stored(
        &mut self,
        stored: StoredObject,
        carries: Vec<Carried>,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Option<Holding> {
        let mut released = Vec::new();
        match self.entries.get(&stored.object) {
            None => {}
            // It was made again, perhaps with other handles in it.
            Some(DirectoryEntry::Stored { carries, .. }) => {
                released.extend(carries.iter().filter_map(Carried::lent));
            }
            Some(DirectoryEntry::Promised { .. } | DirectoryEntry::Known(_)) => return None,
        }
        let handles: Vec<HeldId> = carries.iter().filter_map(Carried::lent).collect();
        let mut lent = Vec::new();
        for (by, request) in self.opens.remove(&stored.object).unwrap_or_default() {
            lent.extend(handles.iter().map(|held| (by, *held)));
            effects.push(opened(by, request, carries.clone()));
        }
        self.entries.insert(stored.object, DirectoryEntry::Stored { stored, carries });
        Some(Holding { taken: handles, lent, released })
    }

    /// A member asks for the handles in a stored object, which are lent to it. `members` live.
    pub(crate) fn open(
        &mut self,
        object: ObjectId,
        (by, request): (RankId, RequestNumber),
        members: &BTreeSet<RankId>,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Holding {
        let carries = match self.entries.get(&object) {
            Some(DirectoryEntry::Stored { carries, .. }) => carries.clone(),
            None if members.contains(&object.maker) => {
                self.opens.entry(object).or_default().push((by, request));
                return Holding::default();
            }
            Some(DirectoryEntry::Promised { .. } | DirectoryEntry::Known(_)) | None => Vec::new(),
        };
        let lent = carries.iter().filter_map(Carried::lent).map(|held| (by, held)).collect();
        effects.push(opened(by, request, carries));
        Holding { lent, ..Holding::default() }
    }

    /// A member has ended: what it has not said of references, nobody says any more.
    pub(crate) fn member_ended(&mut self, member: RankId, effects: &mut Vec<CoordinatorEffect>) {
        let mut unresolved = Vec::new();
        for (object, entry) in &mut self.entries {
            if let DirectoryEntry::Promised { from, watchers, promise: _ } = entry {
                watchers.remove(&member);
                if *from == member {
                    unresolved.push(*object);
                }
            }
        }
        for object in unresolved {
            self.resolve(object, lost(member), effects);
        }
        self.opens.retain(|object, opens| {
            opens.retain(|(by, _)| *by != member);
            if object.maker == member {
                effects.extend(opens.drain(..).map(|(by, request)| opened(by, request, Vec::new())));
            }
            !opens.is_empty()
        });
    }

    /// Those that have no value. Some may be known though nobody holds them: who asked for one that was lost
    /// has ended as well.
    pub(crate) fn failed(&self) -> impl Iterator<Item = ObjectId> {
        let failed = |entry: &DirectoryEntry| matches!(entry, DirectoryEntry::Known(SharedValue::Failed(_)));
        self.entries.iter().filter(move |(_, entry)| failed(entry)).map(|(object, _)| *object)
    }

    /// Whether a store has told that it has an object.
    pub(crate) fn is_stored(&self, object: ObjectId) -> bool {
        matches!(self.entries.get(&object), Some(DirectoryEntry::Stored { .. }))
    }

    /// The objects that this process named and that stores have.
    pub(crate) fn stored_of(&self, maker: RankId) -> impl Iterator<Item = ObjectId> {
        let named = |number| ObjectId { maker, number };
        let all = self.entries.range(named(0)..=named(u64::MAX));
        all.filter(|(_, entry)| matches!(entry, DirectoryEntry::Stored { .. })).map(|(object, _)| *object)
    }

    /// All counters of an object are zero. `has_ended` says whether its maker has ended, and everything is
    /// known that anybody got from it.
    pub(crate) fn unheld(
        &mut self,
        object: ObjectId,
        has_ended: bool,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> UnheldObject {
        if matches!(
            self.entries.get(&object),
            Some(DirectoryEntry::Promised { promise: Promise::Expected, .. })
        ) {
            return UnheldObject::default();
        }
        let (unneeded, is_stored) = match self.entries.remove(&object) {
            Some(DirectoryEntry::Promised { from: to, .. }) => {
                let frame = FromCoordinator::Object(FromDirectory::Unwanted { object });
                effects.push(CoordinatorEffect::Send { to, frame });
                (Vec::new(), false)
            }
            Some(DirectoryEntry::Known(value)) => {
                self.bytes -= value.inline_bytes();
                (value.lent(), false)
            }
            Some(DirectoryEntry::Stored { carries, .. }) => {
                (carries.iter().filter_map(Carried::lent).collect(), true)
            }
            // Its maker has ended before it told of it, but not before it was lent.
            None if has_ended => (Vec::new(), true),
            // Its maker will tell of it.
            None => (Vec::new(), false),
        };
        UnheldObject { unneeded, is_stored }
    }
}

fn known(to: RankId, object: ObjectId, value: SharedValue) -> CoordinatorEffect {
    let frame = FromCoordinator::Object(FromDirectory::Known { object, value });
    CoordinatorEffect::Send { to, frame }
}

fn opened(to: RankId, request: RequestNumber, carries: Vec<Carried>) -> CoordinatorEffect {
    let frame = FromCoordinator::Object(FromDirectory::Opened { request, carries });
    CoordinatorEffect::Send { to, frame }
}

fn lost(process: RankId) -> SharedValue {
    let text = format!("process {process}, which waited for its value, has ended: make it again");
    SharedValue::Failed(CallError::ObjectLost(text))
}

fn too_many_bytes() -> SharedValue {
    let text = format!(
        "the values that processes of the application share have more than {} MiB: drop some references, or put \
         many values into one object",
        MAX_SHARED_BYTES >> 20
    );
    SharedValue::Failed(CallError::Refused(text))
}
