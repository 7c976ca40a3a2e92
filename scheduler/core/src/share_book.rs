//! Who holds how much of the cluster and used how much lately: advanced with each start and each end, never
//! sampled.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_fair_share::{Decay, RecentUse};
use cohabit_types::{ShareTable, Time};

/// The table of fair share, and what each user holds and used.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareBook {
    table: Arc<ShareTable>,
    decay: Decay,
    used: BTreeMap<String, RecentUse>,
}

impl Default for ShareBook {
    fn default() -> ShareBook {
        ShareBook::new(Arc::new(ShareTable::default()), BTreeMap::new())
    }
}

impl ShareBook {
    /// By this table, with what users hold and used.
    #[must_use]
    pub fn new(table: Arc<ShareTable>, used: BTreeMap<String, RecentUse>) -> ShareBook {
        ShareBook { decay: Decay::new(table.half_life), table, used }
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &Arc<ShareTable> {
        &self.table
    }

    /// What each user holds and used.
    #[must_use]
    pub const fn used(&self) -> &BTreeMap<String, RecentUse> {
        &self.used
    }

    /// A job of this user takes so much, in thousandths of a GPU.
    pub(crate) fn take(&mut self, user: &str, amount: u64, now: Time) {
        self.until(user, now).take(amount);
    }

    /// A job of this user releases so much.
    pub(crate) fn release(&mut self, user: &str, amount: u64, now: Time) {
        self.until(user, now).release(amount);
    }

    /// Divides the cluster by this table from now on; what was used until now fades as before.
    pub(crate) fn set_table(&mut self, table: ShareTable, now: Time) {
        for used in self.used.values_mut() {
            *used = used.at(now, &self.decay);
        }
        let used = std::mem::take(&mut self.used);
        *self = ShareBook::new(Arc::new(table), used);
    }

    fn until(&mut self, user: &str, now: Time) -> &mut RecentUse {
        if !self.used.contains_key(user) {
            self.used.insert(user.to_owned(), RecentUse { at: now, ..RecentUse::default() });
        }
        let used = self.used.get_mut(user).expect("it was just inserted");
        *used = used.at(now, &self.decay);
        used
    }
}
