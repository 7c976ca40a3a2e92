//! Whose turn it is: the project that holds the smallest part of what it is entitled to, and in it the user.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::parties::{Division, FairShares, Party, Standing};

/// The turns of one plan.
#[derive(Debug, Clone)]
pub struct Turns {
    projects: Vec<Turn>,
    users: Vec<Turn>,
    /// The project of each user.
    project_of: Vec<usize>,
    /// Projects that have turns.
    next: BTreeSet<TurnKey>,
    /// For each project, its users that have turns.
    next_user: Vec<BTreeSet<TurnKey>>,
}

/// The smaller, the earlier. Where parts are equal, as those of all who hold nothing, the one goes first of
/// whose weight more counts.
type TurnKey = (u64, Reverse<u64>, usize);

#[derive(Debug, Default, Clone, Copy)]
struct Turn {
    standing: Standing,
    key: TurnKey,
}

impl Turn {
    fn new(standing: Standing, index: usize) -> Turn {
        let counts = standing.weight * standing.factor;
        Turn { standing, key: (part_held(standing), Reverse(counts), index) }
    }

    fn change(&mut self, held: impl Fn(u64) -> u64) {
        self.standing.held = held(self.standing.held);
        self.key.0 = part_held(self.standing);
    }
}

/// What a party holds of what it is entitled to, in millionths.
fn part_held(standing: Standing) -> u64 {
    let (held, entitled) = (u128::from(standing.held), u128::from(standing.entitled.max(1)));
    u64::try_from(held * 1_000_000 / entitled).unwrap_or(u64::MAX)
}

impl Turns {
    /// The turns of these users; all others have none.
    #[must_use]
    pub fn new(shares: &FairShares, division: &Division, waiting: impl Iterator<Item = Party>) -> Turns {
        let turns = |standings: &[Standing]| {
            standings.iter().enumerate().map(|(index, it)| Turn::new(*it, index)).collect::<Vec<_>>()
        };
        let (projects, users) = (turns(&division.projects), turns(&division.users));
        let project_of = (0..users.len()).map(|user| shares.project(Party(user as u32))).collect();
        let next_user = vec![BTreeSet::new(); projects.len()];
        let mut all = Turns { projects, users, project_of, next: BTreeSet::new(), next_user };
        for Party(user) in waiting {
            let user = user as usize;
            let project = all.project_of[user];
            all.next_user[project].insert(all.users[user].key);
            all.next.insert(all.projects[project].key);
        }
        all
    }

    /// The user whose turn it is, until something is said of them.
    #[must_use]
    pub fn next(&self) -> Option<Party> {
        let (.., project) = self.next.first()?;
        let (.., user) = self.next_user[*project].first()?;
        Some(Party(*user as u32))
    }

    /// A job of this user takes so much, in thousandths of a GPU.
    pub fn take(&mut self, party: Party, amount: u64) {
        self.change(party, |held| held + amount);
    }

    /// A job of this user that held so much is stopped.
    pub fn release(&mut self, party: Party, amount: u64) {
        self.change(party, |held| held.saturating_sub(amount));
    }

    fn change(&mut self, Party(user): Party, held: impl Fn(u64) -> u64) {
        let user = user as usize;
        let project = self.project_of[user];
        let waits = self.next_user[project].remove(&self.users[user].key);
        self.users[user].change(&held);
        if waits {
            self.next_user[project].insert(self.users[user].key);
        }
        let has_turns = self.next.remove(&self.projects[project].key);
        self.projects[project].change(&held);
        if has_turns {
            self.next.insert(self.projects[project].key);
        }
    }

    /// This user has no further turn.
    pub fn close(&mut self, Party(user): Party) {
        let user = user as usize;
        let project = self.project_of[user];
        self.next_user[project].remove(&self.users[user].key);
        if self.next_user[project].is_empty() {
            self.next.remove(&self.projects[project].key);
        }
    }

    /// Whether a job of `newcomer` may take the place of one of `victim`, which is so large, in thousandths
    /// of a GPU: afterwards, the part that the victim's side holds is still the larger one, so nobody can
    /// take it back.
    #[must_use]
    pub fn may_displace(&self, newcomer: Party, victim: Party, amount: u64) -> bool {
        let (newcomer, victim) = (newcomer.0 as usize, victim.0 as usize);
        let (to, from) = match self.project_of[newcomer] == self.project_of[victim] {
            _ if newcomer == victim => return true,
            true => (self.users[newcomer].standing, self.users[victim].standing),
            false => {
                let project = |user: usize| self.projects[self.project_of[user]].standing;
                (project(newcomer), project(victim))
            }
        };
        let part = |held: u64, of: Standing| u128::from(held) * u128::from(of.entitled.max(1));
        part(from.held.saturating_sub(amount), to) >= part(to.held + amount, from)
    }

    /// Whether this user holds at least what they are entitled to, or their project does.
    #[must_use]
    pub fn holds_its_part(&self, Party(user): Party) -> bool {
        let is_full = |turn: &Turn| turn.standing.held >= turn.standing.entitled;
        is_full(&self.users[user as usize]) || is_full(&self.projects[self.project_of[user as usize]])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohabit_types::{ShareTable, Time};

    use super::*;
    use crate::RecentUse;

    fn turns(users: &[(&str, u64)]) -> (FairShares, Turns) {
        let mut shares = FairShares::new(Arc::new(ShareTable::default()));
        for (name, held) in users {
            shares.set_usage(name, RecentUse { held: *held, used: 0, at: Time::EPOCH });
        }
        let division = shares.divide(Time::EPOCH, 16_000, |_| 100_000);
        let turns = Turns::new(&shares, &division, (0..users.len() as u32).map(Party));
        (shares, turns)
    }

    fn order(shares: &FairShares, turns: &mut Turns, count: usize) -> Vec<String> {
        let turn = |_| {
            let party = turns.next().unwrap();
            turns.take(party, 1_000);
            shares.name(party).to_owned()
        };
        (0..count).map(turn).collect()
    }

    #[test]
    fn the_one_who_holds_least_goes_first() {
        let (shares, mut turns) = turns(&[("ada", 3_000), ("ben", 1_000), ("cyd", 0)]);
        assert_eq!(order(&shares, &mut turns, 6), ["cyd", "ben", "cyd", "ben", "cyd", "ada"]);
    }

    #[test]
    fn who_used_less_goes_first_where_nobody_holds_anything() {
        let mut shares = FairShares::new(Arc::new(ShareTable::default()));
        for (name, used) in [("ada", 5_u128 << 40), ("ben", 1 << 40), ("cyd", 2 << 40)] {
            shares.set_usage(name, RecentUse { held: 0, used, at: Time::EPOCH });
        }
        let division = shares.divide(Time::EPOCH, 1_000, |_| 1_000);
        let turns = Turns::new(&shares, &division, (0..3).map(Party));
        assert_eq!(turns.next().map(|party| shares.name(party).to_owned()).as_deref(), Some("ben"));
    }

    #[test]
    fn a_job_is_displaced_only_for_somebody_who_has_less_even_afterwards() {
        // Each is entitled to 8 of 16.
        let (_, turns) = turns(&[("ada", 9_000), ("ben", 7_000)]);
        let (ada, ben) = (Party(0), Party(1));
        assert!(turns.may_displace(ben, ada, 1_000) && !turns.may_displace(ben, ada, 2_000));
        assert!(!turns.may_displace(ada, ben, 1_000) && turns.may_displace(ada, ada, 1_000));
    }

    #[test]
    fn a_user_that_is_closed_has_no_turn() {
        let (shares, mut turns) = turns(&[("ada", 0), ("ben", 0)]);
        turns.close(Party(0));
        assert_eq!(order(&shares, &mut turns, 2), ["ben", "ben"]);
        turns.close(Party(1));
        assert_eq!(turns.next(), None);
    }
}
