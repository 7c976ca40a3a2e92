//! What the jobs of each user that wait would hold.

use std::collections::BTreeMap;

use cohabit_fair_share::{Party, wanted};
use cohabit_types::Demand;

/// In thousandths of a GPU.
#[derive(Debug, Default, Clone)]
pub(crate) struct WaitingDemand(BTreeMap<Party, u64>);

impl WaitingDemand {
    /// A job of this user waits.
    pub(crate) fn add(&mut self, party: Party, demand: &Demand) {
        *self.0.entry(party).or_default() += wanted(demand);
    }

    /// Such a job waits no more.
    pub(crate) fn remove(&mut self, party: Party, demand: &Demand) {
        if let Some(of_party) = self.0.get_mut(&party) {
            *of_party = of_party.saturating_sub(wanted(demand));
        }
    }

    /// What the jobs of this user would hold.
    pub(crate) fn of(&self, party: Party) -> u64 {
        self.0.get(&party).copied().unwrap_or_default()
    }
}
