//! What one process holds: it tells the coordinator only when it holds a thing no longer.

use std::collections::BTreeMap;

use cohabit_types::RankId;

use crate::held::HeldId;

/// Local counts of handles, and the lends that have arrived and were not yet released.
#[derive(Debug)]
pub(crate) struct LocalHolds {
    things: BTreeMap<HeldId, LocalHold>,
}

#[derive(Debug)]
struct LocalHold {
    count: u64,
    settled: Vec<(RankId, u64)>,
}

impl LocalHolds {
    pub(crate) const fn new() -> LocalHolds {
        LocalHolds { things: BTreeMap::new() }
    }

    /// A value has arrived with a thing that was not lent: one more handle.
    pub(crate) fn gain(&mut self, id: HeldId) {
        self.things.entry(id).or_insert(LocalHold { count: 0, settled: Vec::new() }).count += 1;
    }

    /// The coordinator counts a thing that is held as lent by itself from now on.
    pub(crate) fn note_lend(&mut self, id: HeldId, lender: RankId) {
        if let Some(hold) = self.things.get_mut(&id) {
            add(&mut hold.settled, lender, 1);
        }
    }

    /// A lend has arrived: one more handle.
    pub(crate) fn settle(&mut self, id: HeldId, lender: RankId) {
        let hold = self.things.entry(id).or_insert(LocalHold { count: 0, settled: Vec::new() });
        hold.count += 1;
        add(&mut hold.settled, lender, 1);
    }

    /// One more handle of a thing that is held. `false` if it is not held.
    pub(crate) fn add(&mut self, id: HeldId) -> bool {
        let hold = self.things.get_mut(&id);
        hold.map(|hold| hold.count += 1).is_some()
    }

    /// One handle less. After the last one, the lends to release.
    pub(crate) fn remove(&mut self, id: HeldId) -> Option<Vec<(RankId, u64)>> {
        let hold = self.things.get_mut(&id)?;
        hold.count -= 1;
        if hold.count > 0 {
            return None;
        }
        self.things.remove(&id).map(|hold| hold.settled)
    }

    pub(crate) fn is_held(&self, id: HeldId) -> bool {
        self.things.contains_key(&id)
    }

    /// Number of things that are held.
    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    /// The lends of a lender that has ended count as those of another: which.
    pub(crate) fn transfer(&mut self, from: RankId, to: RankId) -> Vec<(HeldId, u64)> {
        let mut moved = Vec::new();
        for (id, hold) in &mut self.things {
            if let Some(at) = hold.settled.iter().position(|(lender, _)| *lender == from) {
                let (_, count) = hold.settled.remove(at);
                add(&mut hold.settled, to, count);
                moved.push((*id, count));
            }
        }
        moved
    }
}

fn add(settled: &mut Vec<(RankId, u64)>, lender: RankId, count: u64) {
    match settled.iter_mut().find(|(it, _)| *it == lender) {
        Some((_, settled)) => *settled += count,
        None => settled.push((lender, count)),
    }
}
