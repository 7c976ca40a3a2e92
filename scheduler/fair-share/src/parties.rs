//! The projects and users of a cluster: what each holds, used, wants, and is entitled to.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{ShareTable, Time};

use crate::decay::Decay;
use crate::entitlement::{EntitlementClaim, entitlements, factor};
use crate::recent_use::RecentUse;

/// The weight of a user in their project, and of a project of one, in thousandths.
const USUAL_WEIGHT: u64 = 1_000;

/// A user, numbered in the order in which users appear.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Party(pub u32);

/// What the jobs of a user that wait would hold, in thousandths of a GPU.
pub type Want = u64;

/// Everybody, by the table.
#[derive(Debug, Clone, PartialEq)]
pub struct FairShares {
    table: Arc<ShareTable>,
    decay: Decay,
    projects: Vec<Project>,
    users: Vec<User>,
    by_name: BTreeMap<String, Party>,
    /// What there is to divide, in thousandths of a GPU, where somebody keeps it in step with the cluster.
    capacity: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Project {
    /// `None` for a project of one.
    name: Option<String>,
    weight: u64,
    guaranteed: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct User {
    name: String,
    project: usize,
    usage: RecentUse,
}

/// What a project or a user holds, and what it is entitled to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// In thousandths of a GPU.
    pub held: u64,
    /// In thousandths of a GPU.
    pub entitled: u64,
    /// What it holds and waits for, in thousandths of a GPU.
    pub wants: u64,
    /// What it is entitled to before others get anything, in thousandths of a GPU; zero for a user.
    pub guaranteed: u64,
    /// Its weight, in thousandths.
    pub weight: u64,
    /// What counts of its weight, in thousandths: see [`factor`].
    pub factor: u64,
    /// What of that jobs hold that cannot be given back in time for others, in thousandths of a GPU.
    pub fixed: u64,
    /// Whether jobs of high quality of service may still go before others; false for a project.
    pub may_use_high: bool,
    /// What it used, faded by its age, in thousandths of a GPU times microseconds.
    pub used: u128,
}

impl FairShares {
    /// A cluster with this table, of which nobody has used anything.
    #[must_use]
    pub fn new(table: Arc<ShareTable>) -> FairShares {
        let named = table.projects.iter().map(|(name, project)| Project {
            name: Some(name.clone()),
            weight: u64::from(project.weight.max(1)),
            guaranteed: project.guaranteed,
        });
        FairShares {
            decay: Decay::of(&table),
            projects: named.collect(),
            users: Vec::new(),
            by_name: BTreeMap::new(),
            capacity: None,
            table,
        }
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &Arc<ShareTable> {
        &self.table
    }

    /// How use fades.
    #[must_use]
    pub const fn decay(&self) -> &Decay {
        &self.decay
    }

    /// What there is to divide, in thousandths of a GPU; `None` unless it was set since the last table, by
    /// whose prices it counts.
    #[must_use]
    pub const fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    /// Sets what there is to divide.
    pub const fn set_capacity(&mut self, capacity: u64) {
        self.capacity = Some(capacity);
    }

    /// Applies another table; what was used stays.
    pub fn set_table(&mut self, table: Arc<ShareTable>) {
        let before = std::mem::replace(self, FairShares::new(table));
        for User { name, usage, .. } in before.users {
            let party = self.user(&name);
            self.users[party.0 as usize].usage = usage;
        }
    }

    /// The user of this name, who is known from now on.
    pub fn user(&mut self, name: &str) -> Party {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let party = Party(self.users.len() as u32);
        let named = self.table.project_of(name);
        let project = self.projects.iter().position(|it| named.is_some() && it.name.as_deref() == named);
        let project = project.unwrap_or_else(|| {
            self.projects.push(Project { name: None, weight: USUAL_WEIGHT, guaranteed: 0 });
            self.projects.len() - 1
        });
        self.users.push(User { name: name.to_owned(), project, usage: RecentUse::default() });
        self.by_name.insert(name.to_owned(), party);
        party
    }

    /// A user who is known.
    #[must_use]
    pub fn party(&self, name: &str) -> Option<Party> {
        self.by_name.get(name).copied()
    }

    /// All users with what they hold and used.
    pub fn users(&self) -> impl Iterator<Item = (&str, RecentUse)> {
        self.users.iter().map(|user| (user.name.as_str(), user.usage))
    }

    /// The numbers of all users.
    pub fn parties(&self) -> impl Iterator<Item = Party> + use<> {
        (0..self.users.len() as u32).map(Party)
    }

    /// Whether a project is one of the table, not that of a user who is in none.
    #[must_use]
    pub fn is_named(&self, project: usize) -> bool {
        self.projects[project].name.is_some()
    }

    /// The name of a user.
    #[must_use]
    pub fn name(&self, party: Party) -> &str {
        &self.users[party.0 as usize].name
    }

    /// What a user holds and used.
    #[must_use]
    pub fn usage(&self, party: Party) -> RecentUse {
        self.users[party.0 as usize].usage
    }

    /// Replaces what a user holds and used.
    pub fn set_usage(&mut self, name: &str, usage: RecentUse) {
        let party = self.user(name);
        self.users[party.0 as usize].usage = usage;
    }

    /// The number of a user's project.
    #[must_use]
    pub fn project(&self, party: Party) -> usize {
        self.users[party.0 as usize].project
    }

    /// The name of a project; a project of one has that of its user.
    #[must_use]
    pub fn project_name(&self, project: usize) -> &str {
        let named = self.projects[project].name.as_deref();
        let of_one = || self.users.iter().find(|user| user.project == project).map(|user| user.name.as_str());
        named.or_else(of_one).unwrap_or_default()
    }

    /// Divides `capacity`, in thousandths of a GPU, among those who hold or want something. `waiting` says
    /// what the jobs of a user that wait would hold.
    #[must_use]
    pub fn divide(&self, now: Time, capacity: u64, waiting: impl Fn(Party) -> Want) -> Division {
        let mut users: Vec<Standing> = Vec::with_capacity(self.users.len());
        let mut projects: Vec<Standing> = Vec::with_capacity(self.projects.len());
        projects.extend(self.projects.iter().map(|it| Standing {
            weight: it.weight,
            guaranteed: it.guaranteed,
            ..Standing::default()
        }));
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.projects.len()];
        for (index, user) in self.users.iter().enumerate() {
            let usage = user.usage.at(now, &self.decay);
            let wants = usage.held + waiting(Party(index as u32));
            let standing = Standing {
                held: usage.held,
                wants,
                used: usage.used,
                weight: USUAL_WEIGHT,
                may_use_high: usage.may_use_high(&self.decay),
                ..Standing::default()
            };
            let project = &mut projects[user.project];
            project.held += standing.held;
            project.fixed += usage.fixed;
            project.wants += standing.wants;
            project.used += standing.used;
            if wants > 0 {
                members[user.project].push(index);
            }
            users.push(standing);
        }
        let active: Vec<usize> = (0..projects.len()).filter(|index| projects[*index].wants > 0).collect();
        entitle(capacity, &mut projects, &active);
        for project in active {
            entitle(projects[project].entitled, &mut users, &members[project]);
        }
        let fixed_at_most = self.fixed_at_most(capacity);
        Division { projects, users, fixed_at_most }
    }

    /// What jobs that cannot be given back may hold of `capacity` beyond what is guaranteed to their
    /// projects; `None` without a bound.
    fn fixed_at_most(&self, capacity: u64) -> Option<u64> {
        let guaranteed = self.projects.iter().map(|it| it.guaranteed).fold(0, u64::saturating_add);
        let open = u128::from(capacity) * u128::from(self.table.open_part) / 1_000;
        self.table
            .asks_what_is_given_back()
            .then(|| capacity.saturating_sub(guaranteed).saturating_sub(open as u64))
    }
}

/// Divides `capacity` among these of the standings.
fn entitle(capacity: u64, standings: &mut [Standing], active: &[usize]) {
    let all_used = active.iter().map(|index| standings[*index].used).sum();
    let all_weights = active.iter().map(|index| standings[*index].weight).sum();
    let claim = |index: &usize| {
        let Standing { used, weight, wants, guaranteed, .. } = standings[*index];
        let factor = factor(used, all_used, weight, all_weights);
        EntitlementClaim { weight, factor, wants, guaranteed, limit: u64::MAX }
    };
    let claims: Vec<EntitlementClaim> = active.iter().map(claim).collect();
    for ((index, claim), entitled) in active.iter().zip(&claims).zip(entitlements(capacity, &claims)) {
        standings[*index].factor = claim.factor;
        standings[*index].entitled = entitled;
    }
}

/// What everybody is entitled to at one moment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Division {
    /// By the numbers of projects.
    pub projects: Vec<Standing>,
    /// By the numbers of users.
    pub users: Vec<Standing>,
    /// What jobs that cannot be given back in time for others may hold together beyond what is guaranteed to
    /// their projects, in thousandths of a GPU; `None` without a bound.
    pub fixed_at_most: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cohabit_types::{ShareProject, Span};

    use super::*;

    fn table(projects: &[(&str, u32, u64, &[&str])]) -> Arc<ShareTable> {
        let project = |weight, guaranteed, users: &[&str]| ShareProject {
            weight,
            guaranteed,
            users: users.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>(),
            ..ShareProject::default()
        };
        let projects = projects
            .iter()
            .map(|(name, weight, first, users)| ((*name).to_owned(), project(*weight, *first, users)));
        Arc::new(ShareTable { projects: projects.collect(), ..ShareTable::default() })
    }

    fn entitled(shares: &FairShares, capacity: u64, waiting: &[(&str, u64)]) -> Vec<u64> {
        let waits = |party: Party| {
            waiting.iter().find(|(name, _)| shares.party(name) == Some(party)).map_or(0, |it| it.1)
        };
        let division = shares.divide(Time::EPOCH, capacity, waits);
        waiting
            .iter()
            .map(|(name, _)| division.users[shares.party(name).unwrap().0 as usize].entitled)
            .collect()
    }

    #[test]
    fn users_without_a_project_are_projects_of_one() {
        let mut shares = FairShares::new(table(&[("vision", 2_000, 0, &["ada", "ben"])]));
        for name in ["ada", "ben", "cyd"] {
            shares.user(name);
        }
        // Vision has two of three parts, and its users half of them each.
        let all = [("ada", 90_000), ("ben", 90_000), ("cyd", 90_000)];
        assert_eq!(entitled(&shares, 12_000, &all), [4_000, 4_000, 4_000]);
        let without_ben = [("ada", 90_000), ("cyd", 90_000)];
        assert_eq!(entitled(&shares, 12_000, &without_ben), [8_000, 4_000]);
    }

    #[test]
    fn who_used_more_is_entitled_to_less_within_a_project_and_among_projects() {
        let mut shares = FairShares::new(table(&[("vision", 1_000, 0, &["ada", "ben"])]));
        let used = |used| RecentUse { held: 0, used, at: Time::EPOCH, ..RecentUse::default() };
        shares.set_usage("ada", used(3 << 40));
        shares.set_usage("ben", used(1 << 40));
        shares.set_usage("cyd", used(0));
        // Vision used all, so half of its weight counts: 1 of 5 parts; cyd's counts twice.
        let wanting = [("ada", 90_000), ("ben", 90_000), ("cyd", 90_000)];
        let [ada, ben, cyd] = entitled(&shares, 10_000, &wanting).try_into().unwrap();
        assert_eq!((ada + ben, cyd), (2_000, 8_000));
        // Within vision ada used 1.5 of her part, ben half of his: ½ to 1½.
        assert_eq!((ada, ben), (500, 1_500));
    }

    #[test]
    fn a_new_table_keeps_what_was_used() {
        let mut shares = FairShares::new(table(&[]));
        let usage =
            RecentUse { held: 2_000, used: 77, at: Time::EPOCH + Span::from_secs(5), ..RecentUse::default() };
        shares.set_usage("ada", usage);
        shares.set_table(table(&[("vision", 1_000, 0, &["ada"])]));
        let ada = shares.party("ada").unwrap();
        assert_eq!((shares.usage(ada), shares.project_name(shares.project(ada))), (usage, "vision"));
    }
}
