//! What one process holds: it tells the coordinator only when it holds a thing no longer.

use std::collections::BTreeMap;

use cohabit_types::AttemptId;

use crate::ids::ActorId;

/// Local counts of handles, and the lends that have arrived and were not yet released.
#[derive(Debug)]
pub(crate) struct LocalHolds {
    actors: BTreeMap<ActorId, LocalHold>,
}

#[derive(Debug)]
struct LocalHold {
    count: u64,
    settled: Vec<(AttemptId, u64)>,
}

impl LocalHolds {
    pub(crate) const fn new() -> LocalHolds {
        LocalHolds { actors: BTreeMap::new() }
    }

    /// A lend has arrived: one more handle.
    pub(crate) fn settle(&mut self, actor: ActorId, lender: AttemptId) {
        let hold = self.actors.entry(actor).or_insert(LocalHold { count: 0, settled: Vec::new() });
        hold.count += 1;
        add(&mut hold.settled, lender, 1);
    }

    /// One more handle of an actor that is held. `false` if it is not held.
    pub(crate) fn add(&mut self, actor: ActorId) -> bool {
        let hold = self.actors.get_mut(&actor);
        hold.map(|hold| hold.count += 1).is_some()
    }

    /// One handle less. After the last one, the lends to release.
    pub(crate) fn remove(&mut self, actor: ActorId) -> Option<Vec<(AttemptId, u64)>> {
        let hold = self.actors.get_mut(&actor)?;
        hold.count -= 1;
        if hold.count > 0 {
            return None;
        }
        self.actors.remove(&actor).map(|hold| hold.settled)
    }

    pub(crate) fn is_held(&self, actor: ActorId) -> bool {
        self.actors.contains_key(&actor)
    }

    /// Number of actors that are held.
    pub(crate) fn len(&self) -> usize {
        self.actors.len()
    }

    /// The lends of a lender that has ended count as those of another: which.
    pub(crate) fn transfer(&mut self, from: AttemptId, to: AttemptId) -> Vec<(ActorId, u64)> {
        let mut moved = Vec::new();
        for (actor, hold) in &mut self.actors {
            if let Some(at) = hold.settled.iter().position(|(lender, _)| *lender == from) {
                let (_, count) = hold.settled.remove(at);
                add(&mut hold.settled, to, count);
                moved.push((*actor, count));
            }
        }
        moved
    }
}

fn add(settled: &mut Vec<(AttemptId, u64)>, lender: AttemptId, count: u64) {
    match settled.iter_mut().find(|(it, _)| *it == lender) {
        Some((_, settled)) => *settled += count,
        None => settled.push((lender, count)),
    }
}
