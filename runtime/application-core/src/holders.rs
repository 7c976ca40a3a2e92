//! Who holds what, as the coordinator knows it: a signed counter for each member, lender and actor.
//!
//! A lend makes a counter larger and a release smaller by what the member has received. The two travel on
//! different sessions, so a release may overtake its lend and the counter may be negative for a while. An
//! actor is held while one of its counters is not zero.
//!
//! A member that has ended may have lent what the coordinator never heard of, or what never arrived. So its
//! counters stay until each other member has said what it got from it (`close`), and only then go.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::AttemptId;

use crate::ids::ActorId;

/// The counters of all members.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    /// By holder, then by lender and actor. No counter is zero.
    counters: BTreeMap<AttemptId, BTreeMap<(AttemptId, ActorId), i64>>,
    /// Number of counters that are not zero.
    held: BTreeMap<ActorId, usize>,
    /// Members that have ended, with those that have not said what they got from them.
    ended: BTreeMap<AttemptId, BTreeSet<AttemptId>>,
}

impl Holders {
    pub(crate) fn lend(&mut self, actor: ActorId, by: AttemptId, to: AttemptId) -> Unheld {
        self.change(to, by, actor, 1)
    }

    pub(crate) fn release(&mut self, actor: ActorId, by: AttemptId, settled: &[(AttemptId, u64)]) -> Unheld {
        settled.iter().for_each(|(lender, count)| {
            self.change(by, *lender, actor, -signed(*count));
        });
        self.unheld([actor])
    }

    /// A member has ended; `others` have to say what they got from it.
    pub(crate) fn member_ended(&mut self, member: AttemptId, others: &BTreeSet<AttemptId>) -> Unheld {
        self.ended.insert(member, others.clone());
        for waiting in self.ended.values_mut() {
            waiting.remove(&member);
        }
        self.forget_closed()
    }

    /// A member has said what it got and holds from one that has ended: these lends are now `owner`'s.
    pub(crate) fn close(
        &mut self,
        ended: AttemptId,
        by: AttemptId,
        settled: &[(ActorId, u64)],
        owner: AttemptId,
    ) -> Unheld {
        let Some(waiting) = self.ended.get_mut(&ended).filter(|waiting| waiting.contains(&by)) else {
            return Unheld::default();
        };
        waiting.remove(&by);
        let mut touched = self.remove(by, |lender| lender == ended);
        for (actor, count) in settled {
            self.change(by, owner, *actor, signed(*count));
        }
        touched.extend(settled.iter().map(|(actor, _)| *actor));
        let Unheld(mut unheld) = self.unheld(touched);
        unheld.extend(self.forget_closed().0);
        Unheld(unheld)
    }

    pub(crate) fn is_held(&self, actor: ActorId) -> bool {
        self.held.contains_key(&actor)
    }

    /// Whether a member that has ended is waited for: a lend to it may still explain a release.
    pub(crate) fn awaits(&self, ended: AttemptId) -> bool {
        self.ended.contains_key(&ended)
    }

    /// Who holds which actors, once for each lender.
    pub(crate) fn all(&self) -> impl Iterator<Item = (AttemptId, ActorId)> {
        let held = |(holder, counters): (&AttemptId, &BTreeMap<_, _>)| {
            let holder = *holder;
            counters.keys().map(move |(_, actor): &(AttemptId, ActorId)| (holder, *actor)).collect::<Vec<_>>()
        };
        self.counters.iter().flat_map(held)
    }

    /// Number of counters that are not zero.
    pub(crate) fn len(&self) -> usize {
        self.held.values().sum()
    }

    /// Removes the counters of ended members for which nobody is waited any more.
    fn forget_closed(&mut self) -> Unheld {
        let closed: Vec<AttemptId> =
            self.ended.extract_if(.., |_, waiting| waiting.is_empty()).map(|(member, _)| member).collect();
        let mut touched = Vec::new();
        for member in closed {
            touched.extend(self.remove(member, |_| true));
        }
        self.unheld(touched)
    }

    /// Removes counters of a holder and says of which actors.
    fn remove(&mut self, holder: AttemptId, of: impl Fn(AttemptId) -> bool) -> Vec<ActorId> {
        let Some(counters) = self.counters.get_mut(&holder) else { return Vec::new() };
        let removed: Vec<ActorId> =
            counters.extract_if(.., |(lender, _), _| of(*lender)).map(|((_, actor), _)| actor).collect();
        if counters.is_empty() {
            self.counters.remove(&holder);
        }
        for actor in &removed {
            self.uncount(*actor);
        }
        removed
    }

    fn change(&mut self, holder: AttemptId, lender: AttemptId, actor: ActorId, by: i64) -> Unheld {
        if by == 0 {
            return Unheld::default();
        }
        let counters = self.counters.entry(holder).or_default();
        let counter = counters.entry((lender, actor)).or_insert(0);
        let was_zero = *counter == 0;
        *counter = counter.saturating_add(by);
        let is_zero = *counter == 0;
        if is_zero {
            counters.remove(&(lender, actor));
            if counters.is_empty() {
                self.counters.remove(&holder);
            }
        }
        match (was_zero, is_zero) {
            (true, false) => *self.held.entry(actor).or_insert(0) += 1,
            (false, true) => self.uncount(actor),
            (true, true) | (false, false) => {}
        }
        self.unheld([actor])
    }

    fn uncount(&mut self, actor: ActorId) {
        if let Some(count) = self.held.get_mut(&actor) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&actor);
            }
        }
    }

    fn unheld(&self, touched: impl IntoIterator<Item = ActorId>) -> Unheld {
        Unheld(touched.into_iter().filter(|actor| !self.held.contains_key(actor)).collect())
    }
}

/// Actors that a change left without a holder; one may be named twice.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Unheld(pub(crate) Vec<ActorId>);

/// No process receives 2^63 lends.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
