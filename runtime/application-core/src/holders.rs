//! Who holds what, as the coordinator knows it: a signed counter for each member, lender and thing.
//!
//! A lend makes a counter larger and a release smaller by what the member has received. The two travel on
//! different sessions, so a release may overtake its lend and the counter may be negative for a while. A
//! thing (an actor, an object) is held while one of its counters is not zero.
//!
//! A member that has ended may have lent what the coordinator never heard of, or what never arrived. So its
//! counters stay until each other member has said what it got from it (`close`), and only then go.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use cohabit_types::{JobId, RankId};

use crate::held::HeldId;
use crate::ids::ObjectId;

/// The last of all things.
const LAST: HeldId = HeldId::Object(ObjectId {
    maker: JobId { number: u64::MAX, index: Some(u32::MAX) }.attempt(u32::MAX).rank(u32::MAX),
    number: u64::MAX,
});

/// The counters of all members.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    /// By holder, then by lender and thing. No counter is zero.
    counters: BTreeMap<RankId, BTreeMap<(RankId, HeldId), i64>>,
    /// Number of counters that are not zero.
    held: BTreeMap<HeldId, usize>,
    /// Members that have ended, with those that have not said what they got from them.
    ended: BTreeMap<RankId, BTreeSet<RankId>>,
    /// Members that have ended and of which nothing more will be heard, until they are taken.
    closed: Vec<RankId>,
}

impl Holders {
    pub(crate) fn lend(&mut self, id: HeldId, by: RankId, to: RankId) -> Unheld {
        self.change(to, by, id, 1)
    }

    pub(crate) fn release(&mut self, id: HeldId, by: RankId, settled: &[(RankId, u64)]) -> Unheld {
        settled.iter().for_each(|(lender, count)| {
            self.change(by, *lender, id, -signed(*count));
        });
        self.unheld([id])
    }

    /// A member has ended; `others` have to say what they got from it.
    pub(crate) fn member_ended(&mut self, member: RankId, others: &BTreeSet<RankId>) -> Unheld {
        self.ended.insert(member, others.clone());
        for waiting in self.ended.values_mut() {
            waiting.remove(&member);
        }
        self.forget_closed()
    }

    /// A member has said what it got and holds from one that has ended: these lends are now `owner`'s.
    pub(crate) fn close(
        &mut self,
        ended: RankId,
        by: RankId,
        settled: &[(HeldId, u64)],
        owner: RankId,
    ) -> Unheld {
        let Some(waiting) = self.ended.get_mut(&ended).filter(|waiting| waiting.contains(&by)) else {
            return Unheld::default();
        };
        waiting.remove(&by);
        let mut touched = self.remove(by, |lender| lender == ended);
        for (id, count) in settled {
            self.change(by, owner, *id, signed(*count));
        }
        touched.extend(settled.iter().map(|(id, _)| *id));
        let Unheld(mut unheld) = self.unheld(touched);
        unheld.extend(self.forget_closed().0);
        Unheld(unheld)
    }

    /// Members that have ended, and of which everything is known now that anybody got from them.
    pub(crate) fn take_closed(&mut self) -> Vec<RankId> {
        std::mem::take(&mut self.closed)
    }

    /// The objects that a process has named and that somebody holds.
    pub(crate) fn objects_of(&self, maker: RankId) -> Vec<ObjectId> {
        let named = |number| HeldId::Object(ObjectId { maker, number });
        let held = self.held.range(named(0)..=named(u64::MAX)).map(|(id, _)| *id);
        held.filter_map(HeldId::object).collect()
    }

    /// Who holds a thing, lowest first.
    pub(crate) fn holders_of(&self, id: HeldId) -> impl Iterator<Item = RankId> {
        let holds = move |counters: &BTreeMap<(RankId, HeldId), i64>| {
            let mut next = counters.first_key_value();
            while let Some(((lender, _), _)) = next {
                if counters.contains_key(&(*lender, id)) {
                    return true;
                }
                next = counters.range((Bound::Excluded((*lender, LAST)), Bound::Unbounded)).next();
            }
            false
        };
        self.counters.iter().filter(move |(_, counters)| holds(counters)).map(|(holder, _)| *holder)
    }

    pub(crate) fn is_held(&self, id: HeldId) -> bool {
        self.held.contains_key(&id)
    }

    /// Whether a member that has ended is waited for: a lend to it may still explain a release.
    pub(crate) fn awaits(&self, ended: RankId) -> bool {
        self.ended.contains_key(&ended)
    }

    /// Those that have to say what they got from members that have ended; some more than once.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = RankId> {
        self.ended.values().flatten().copied()
    }

    /// Whether any member that has ended is waited for: if not, whatever a member holds has a counter.
    pub(crate) fn awaits_any(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Who holds what, once for each lender.
    pub(crate) fn all(&self) -> impl Iterator<Item = (RankId, HeldId)> {
        let held = |(holder, counters): (&RankId, &BTreeMap<_, _>)| {
            let holder = *holder;
            counters.keys().map(move |(_, id): &(RankId, HeldId)| (holder, *id)).collect::<Vec<_>>()
        };
        self.counters.iter().flat_map(held)
    }

    /// Number of counters that are not zero.
    pub(crate) fn len(&self) -> usize {
        self.held.values().sum()
    }

    /// Removes the counters of ended members for which nobody is waited any more.
    fn forget_closed(&mut self) -> Unheld {
        let closed: Vec<RankId> =
            self.ended.extract_if(.., |_, waiting| waiting.is_empty()).map(|(member, _)| member).collect();
        let mut touched = Vec::new();
        for member in closed {
            touched.extend(self.remove(member, |_| true));
            self.closed.push(member);
        }
        self.unheld(touched)
    }

    /// Removes counters of a holder and says of what.
    fn remove(&mut self, holder: RankId, of: impl Fn(RankId) -> bool) -> Vec<HeldId> {
        let Some(counters) = self.counters.get_mut(&holder) else { return Vec::new() };
        let removed: Vec<HeldId> =
            counters.extract_if(.., |(lender, _), _| of(*lender)).map(|((_, id), _)| id).collect();
        if counters.is_empty() {
            self.counters.remove(&holder);
        }
        for id in &removed {
            self.uncount(*id);
        }
        removed
    }

    fn change(&mut self, holder: RankId, lender: RankId, id: HeldId, by: i64) -> Unheld {
        if by == 0 {
            return Unheld::default();
        }
        let counters = self.counters.entry(holder).or_default();
        let counter = counters.entry((lender, id)).or_insert(0);
        let was_zero = *counter == 0;
        *counter = counter.saturating_add(by);
        let is_zero = *counter == 0;
        if is_zero {
            counters.remove(&(lender, id));
            if counters.is_empty() {
                self.counters.remove(&holder);
            }
        }
        match (was_zero, is_zero) {
            (true, false) => *self.held.entry(id).or_insert(0) += 1,
            (false, true) => self.uncount(id),
            (true, true) | (false, false) => {}
        }
        self.unheld([id])
    }

    fn uncount(&mut self, id: HeldId) {
        if let Some(count) = self.held.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&id);
            }
        }
    }

    fn unheld(&self, touched: impl IntoIterator<Item = HeldId>) -> Unheld {
        Unheld(touched.into_iter().filter(|id| !self.held.contains_key(id)).collect())
    }
}

/// What a change left without a holder; one may be named twice.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Unheld(pub(crate) Vec<HeldId>);

/// No process receives 2^63 lends.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
