//! Whose turn it is: the project that holds the smallest part of what it is entitled to, and in it the user.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cohabit_types::{Demand, HeldFor, Qos};

use crate::amounts::wanted;
use crate::line::Line;
use crate::parties::{Division, FairShares, Party, Standing};

/// The turns of one plan.
#[derive(Debug, Default, Clone)]
pub struct Turns {
    projects: Vec<PartyTurn>,
    users: Vec<PartyTurn>,
    /// The project of each user.
    project_of: Vec<usize>,
    /// The lines that have turns, in order.
    next: BTreeSet<LineKey>,
    /// The same, for each project.
    lines_of: Vec<BTreeSet<Line>>,
    /// See [`Division::fixed_at_most`].
    fixed_at_most: Option<u64>,
}

/// The smaller, the earlier: lines that take what nobody else wants last, then by the part of the project, of
/// the user in it, and the more urgent of a user first.
type LineKey = (bool, PartyTurnKey, PartyTurnKey, Reverse<Qos>, Line);

/// The smaller, the earlier. Where parts are equal, as those of all who hold nothing, the one goes first who
/// used less for their weight, and then the one with the larger weight.
pub(crate) type PartyTurnKey = (u64, u128, Reverse<u64>, usize);

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PartyTurn {
    pub(crate) standing: Standing,
    pub(crate) key: PartyTurnKey,
}

impl PartyTurn {
    fn new(standing: Standing, index: usize) -> PartyTurn {
        let used = standing.used.saturating_mul(1_000) / u128::from(standing.weight.max(1));
        PartyTurn { standing, key: (part_held(standing), used, Reverse(standing.weight), index) }
    }

    pub(crate) fn change(&mut self, held: impl Fn(u64) -> u64) {
        self.standing.held = held(self.standing.held);
        self.key.0 = part_held(self.standing);
    }

    /// Its key if it held half as much.
    pub(crate) const fn halved(&self) -> PartyTurnKey {
        (self.key.0 / 2, self.key.1, self.key.2, self.key.3)
    }
}

/// What a party holds of what it is entitled to, in millionths.
fn part_held(standing: Standing) -> u64 {
    let (held, entitled) = (u128::from(standing.held), u128::from(standing.entitled.max(1)));
    u64::try_from(held * 1_000_000 / entitled).unwrap_or(u64::MAX)
}

impl Turns {
    /// The turns of these lines; all others have none.
    #[must_use]
    pub fn new(shares: &FairShares, division: &Division, waiting: impl Iterator<Item = Line>) -> Turns {
        let turns = |standings: &[Standing]| {
            standings.iter().enumerate().map(|(index, it)| PartyTurn::new(*it, index)).collect::<Vec<_>>()
        };
        let (projects, users) = (turns(&division.projects), turns(&division.users));
        let project_of = (0..users.len()).map(|user| shares.project(Party(user as u32))).collect();
        let lines_of = vec![BTreeSet::new(); projects.len()];
        let fixed_at_most = division.fixed_at_most;
        let mut all = Turns { projects, users, project_of, next: BTreeSet::new(), lines_of, fixed_at_most };
        for line in waiting {
            all.next.insert(all.key(line));
            all.lines_of[all.project_of[line.party.0 as usize]].insert(line);
        }
        all
    }

    fn key(&self, line: Line) -> LineKey {
        let user = &self.users[line.party.0 as usize];
        let project = &self.projects[self.project_of[line.party.0 as usize]];
        let (of_project, of_user) = match self.counts_half(line) {
            true => (project.halved(), user.halved()),
            false => (project.key, user.key),
        };
        (line.qos == Qos::Low, of_project, of_user, Reverse(line.qos), line)
    }

    /// The line whose turn it is, until something is said of it.
    #[must_use]
    pub fn next(&self) -> Option<Line> {
        self.next.first().map(|(.., line)| *line)
    }

    /// A job of this user starts, or keeps room.
    pub fn start(&mut self, party: Party, demand: &Demand) {
        let amount = wanted(demand);
        self.take(party, amount);
        if demand.held_for == HeldFor::Unlimited {
            self.projects[self.project_of[party.0 as usize]].standing.fixed += amount;
        }
    }

    /// Whether a job with this demand may start: those that cannot be given back in time for others leave
    /// what is guaranteed to other projects, and the open part of the cluster.
    #[must_use]
    pub fn may_lend(&self, party: Party, demand: &Demand) -> bool {
        let Some(most) = self.fixed_at_most.filter(|_| demand.held_for == HeldFor::Unlimited) else {
            return true;
        };
        let own = self.project_of[party.0 as usize];
        let beyond = |(index, turn): (usize, &PartyTurn)| {
            let more = if index == own { wanted(demand) } else { 0 };
            (turn.standing.fixed + more).saturating_sub(turn.standing.guaranteed)
        };
        let before = self.projects[own].standing;
        let is_guaranteed = before.fixed + wanted(demand) <= before.guaranteed;
        is_guaranteed || self.projects.iter().enumerate().map(beyond).sum::<u64>() <= most
    }

    /// Whether a job with this demand waits for others, even if there is room: its user holds what is due to
    /// them, or what is left is lent only to jobs that give it back.
    #[must_use]
    pub fn waits_for_others(&self, party: Party, demand: &Demand) -> bool {
        self.holds_its_part(party) || !self.may_lend(party, demand)
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
        let lines = std::mem::take(&mut self.lines_of[project]);
        for line in &lines {
            self.next.remove(&self.key(*line));
        }
        self.users[user].change(&held);
        self.projects[project].change(&held);
        for line in &lines {
            self.next.insert(self.key(*line));
        }
        self.lines_of[project] = lines;
    }

    /// This line has no further turn.
    pub fn close(&mut self, line: Line) {
        self.next.remove(&self.key(line));
        self.lines_of[self.project_of[line.party.0 as usize]].remove(&line);
    }

    /// The turns of the project of this user and of the user.
    pub(crate) fn of(&self, Party(user): Party) -> (PartyTurn, PartyTurn) {
        (self.projects[self.project_of[user as usize]], self.users[user as usize])
    }

    /// The number of a user's project.
    pub(crate) fn project_of(&self, Party(user): Party) -> usize {
        self.project_of[user as usize]
    }

    /// Whether the turn of a line comes as if its user and the project held half as much.
    pub(crate) fn counts_half(&self, line: Line) -> bool {
        line.qos == Qos::High && self.users[line.party.0 as usize].standing.may_use_high
    }

    /// Whether a job of this size, in thousandths of a GPU, lets its user and the project hold no more than
    /// they are entitled to.
    #[must_use]
    pub fn is_due(&self, Party(user): Party, amount: u64) -> bool {
        let fits = |turn: &PartyTurn| turn.standing.held + amount <= turn.standing.entitled;
        fits(&self.users[user as usize]) && fits(&self.projects[self.project_of[user as usize]])
    }

    /// Whether it lets the project hold no more than it is guaranteed.
    #[must_use]
    pub fn is_guaranteed(&self, Party(user): Party, amount: u64) -> bool {
        let standing = self.projects[self.project_of[user as usize]].standing;
        standing.held + amount <= standing.guaranteed
    }

    /// Whether the side of `victim` still holds what it is entitled to without a job of this size, which is
    /// stopped for one of `newcomer`: so it cannot take the place back.
    #[must_use]
    pub fn may_reclaim(&self, newcomer: Party, victim: Party, amount: u64) -> bool {
        let (newcomer, victim) = (newcomer.0 as usize, victim.0 as usize);
        let standing = match self.project_of[newcomer] == self.project_of[victim] {
            _ if newcomer == victim => return false,
            true => self.users[victim].standing,
            false => self.projects[self.project_of[victim]].standing,
        };
        standing.held.saturating_sub(amount) >= standing.entitled
    }

    /// What the project of this user holds of what it is entitled to, and then the user, in millionths.
    #[must_use]
    pub fn parts_held(&self, Party(user): Party) -> (u64, u64) {
        (self.projects[self.project_of[user as usize]].key.0, self.users[user as usize].key.0)
    }

    /// What the project of this user holds and is entitled to, in thousandths of a GPU.
    #[must_use]
    pub fn standing_of_project(&self, Party(user): Party) -> Standing {
        self.projects[self.project_of[user as usize]].standing
    }

    /// Whether this user holds at least what they are entitled to, or their project does.
    #[must_use]
    pub fn holds_its_part(&self, Party(user): Party) -> bool {
        let is_full = |turn: &PartyTurn| turn.standing.held >= turn.standing.entitled;
        is_full(&self.users[user as usize]) || is_full(&self.projects[self.project_of[user as usize]])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohabit_types::{ShareTable, Time};

    use super::*;
    use crate::RecentUse;

    fn line(user: u32) -> Line {
        Line { party: Party(user), qos: Qos::Normal }
    }

    fn turns(users: &[(&str, u64)]) -> (FairShares, Turns) {
        let mut shares = FairShares::new(Arc::new(ShareTable::default()));
        for (name, held) in users {
            shares
                .set_usage(name, RecentUse { held: *held, used: 0, at: Time::EPOCH, ..RecentUse::default() });
        }
        let division = shares.divide(Time::EPOCH, 16_000, |_| 100_000);
        let turns = Turns::new(&shares, &division, (0..users.len() as u32).map(line));
        (shares, turns)
    }

    fn order(shares: &FairShares, turns: &mut Turns, count: usize) -> Vec<String> {
        let turn = |_| {
            let Line { party, .. } = turns.next().unwrap();
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
            shares.set_usage(name, RecentUse { held: 0, used, at: Time::EPOCH, ..RecentUse::default() });
        }
        let division = shares.divide(Time::EPOCH, 1_000, |_| 1_000);
        let turns = Turns::new(&shares, &division, (0..3).map(line));
        assert_eq!(turns.next().map(|next| shares.name(next.party).to_owned()).as_deref(), Some("ben"));
    }

    #[test]
    fn low_comes_last_and_high_as_if_its_user_held_half() {
        let mut shares = FairShares::new(Arc::new(ShareTable::default()));
        for (name, held) in [("ada", 5_000), ("ben", 4_000), ("cyd", 0)] {
            shares.set_usage(name, RecentUse { held, ..RecentUse::default() });
        }
        let division = shares.divide(Time::EPOCH, 24_000, |_| 100_000);
        let of = |user, qos| Line { party: Party(user), qos };
        let lines = [of(0, Qos::High), of(0, Qos::Normal), of(1, Qos::Normal), of(2, Qos::Low)];
        let mut turns = Turns::new(&shares, &division, lines.into_iter());
        let mut order = Vec::new();
        while let Some(line) = turns.next() {
            turns.close(line);
            order.push(line);
        }
        assert_eq!(order, [lines[0], lines[2], lines[1], lines[3]]);
        // Who has used up what may be used of it goes as usual.
        let spent = RecentUse { held: 5_000, high_used: u128::MAX / 2, ..RecentUse::default() };
        shares.set_usage("ada", spent);
        let division = shares.divide(Time::EPOCH, 24_000, |_| 100_000);
        let turns = Turns::new(&shares, &division, lines.into_iter());
        assert_eq!(turns.next(), Some(lines[2]));
    }

    #[test]
    fn a_user_that_is_closed_has_no_turn() {
        let (shares, mut turns) = turns(&[("ada", 0), ("ben", 0)]);
        turns.close(line(0));
        assert_eq!(order(&shares, &mut turns, 2), ["ben", "ben"]);
        turns.close(line(1));
        assert_eq!(turns.next(), None);
    }
}
