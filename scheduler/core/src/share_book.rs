//! Who holds how much of the cluster and used how much lately: advanced with each start and each end, never
//! sampled.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_fair_share::{Decay, RecentUse, UseTerms};
use cohabit_types::{ShareProject, ShareTable, Time};

/// The table of fair share, and what each user holds and used.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareBook {
    table: Arc<ShareTable>,
    decay: Decay,
    used: BTreeMap<String, RecentUse>,
    /// The project of each user who is in one: follows from the table.
    project_of: BTreeMap<String, String>,
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
        let of_project = |(name, project): (&String, &ShareProject)| {
            let users: Vec<String> = project.users.iter().cloned().collect();
            let name = name.clone();
            users.into_iter().map(move |user| (user, name.clone()))
        };
        let project_of = table.projects.iter().flat_map(of_project).collect();
        ShareBook { decay: Decay::of(&table), table, used, project_of }
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &Arc<ShareTable> {
        &self.table
    }

    /// The project of a user who is in one, with its name.
    pub(crate) fn project_of(&self, user: &str) -> Option<(&str, &ShareProject)> {
        let (name, project) = self.table.projects.get_key_value(self.project_of.get(user)?)?;
        Some((name, project))
    }

    /// Whether the table limits what anybody runs at once.
    pub(crate) fn limits_somebody(&self) -> bool {
        let mut projects = self.table.projects.values();
        !self.table.user.running.is_unlimited() || projects.any(|it| !it.running.is_unlimited())
    }

    /// What each user holds and used.
    #[must_use]
    pub const fn used(&self) -> &BTreeMap<String, RecentUse> {
        &self.used
    }

    /// A job of this user takes so much, in thousandths of a GPU.
    pub(crate) fn take(&mut self, user: &str, amount: u64, terms: UseTerms, now: Time) {
        self.until(user, now).take(amount, terms);
    }

    /// A job of this user releases so much.
    pub(crate) fn release(&mut self, user: &str, amount: u64, terms: UseTerms, now: Time) {
        self.until(user, now).release(amount, terms);
    }

    /// Users hold what they hold on these terms.
    pub(crate) fn set_terms(&mut self, held: &BTreeMap<&str, RecentUse>) {
        for (user, used) in &mut self.used {
            let RecentUse { low, high, fixed, .. } = held.get(user.as_str()).copied().unwrap_or_default();
            *used = RecentUse { low, high, fixed, ..*used };
        }
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
