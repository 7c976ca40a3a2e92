//! Who may be stopped for a job whose turn it is.

use cohabit_types::{Demand, Qos};

use crate::amounts::wanted;
use crate::line::Line;
use crate::parties::{Party, Standing};
use crate::turns::{PartyTurn, PartyTurnKey, Turns};

/// The jobs that are stopped for one whose turn it is, while they are chosen.
///
/// Its turn comes before those of all whose jobs are stopped, although they hold less then, and its side
/// holds no larger part than theirs once it holds the place: so nobody can take the place back.
#[derive(Debug, Clone)]
pub struct Displacement<'t> {
    turns: &'t Turns,
    newcomer: Line,
    /// What the newcomer would hold, in thousandths of a GPU.
    gains: u64,
    /// What those that were chosen hold.
    released: Vec<(Party, u64)>,
}

impl<'t> Displacement<'t> {
    /// A job of this line with this demand comes, and nobody was chosen yet.
    #[must_use]
    pub fn new(turns: &'t Turns, newcomer: Line, demand: &Demand) -> Displacement<'t> {
        Displacement { turns, newcomer, gains: wanted(demand), released: Vec::new() }
    }

    /// Whether a job of `victim` that holds so much, in thousandths of a GPU, may be stopped, too.
    #[must_use]
    pub fn may_stop(&self, victim: Line, holds: u64) -> bool {
        let newcomer = self.newcomer;
        match (newcomer.qos == Qos::Low, victim.qos == Qos::Low) {
            (true, false) => return false,
            (false, true) => return true,
            (true, true) | (false, false) => {}
        }
        if newcomer.party == victim.party {
            return victim.qos <= newcomer.qos;
        }
        let [to, from] = [newcomer, victim].map(|line| self.left_to(line.party, (victim.party, holds)));
        if self.key(newcomer, &to) > self.key(victim, &from) {
            return false;
        }
        let is_same_project = self.turns.project_of(newcomer.party) == self.turns.project_of(victim.party);
        let side =
            |(project, user): (PartyTurn, PartyTurn)| if is_same_project { user } else { project }.standing;
        let (gains, loses) = (side(to), side(from));
        // Of high quality of service, half counts.
        let counts = |line: Line, held: u64| match self.turns.counts_half(line) {
            true => u128::from(held),
            false => 2 * u128::from(held),
        };
        let entitled = |of: Standing| u128::from(of.entitled.max(1));
        let left = counts(victim, loses.held) * entitled(gains);
        left >= counts(newcomer, gains.held + self.gains) * entitled(loses)
    }

    /// Such a job is stopped.
    pub fn stop(&mut self, victim: Line, holds: u64) {
        self.released.push((victim.party, holds));
    }

    /// The turns of the project of this user and of the user, without what was chosen and one more job.
    fn left_to(&self, of: Party, more: (Party, u64)) -> (PartyTurn, PartyTurn) {
        let project_of = |party| self.turns.project_of(party);
        let released = self.released.iter().chain([&more]);
        let of_project = released.clone().filter(|(party, _)| project_of(*party) == project_of(of));
        let of_user = released.filter(|(party, _)| *party == of);
        let [of_project, of_user] =
            [of_project.map(|(_, holds)| holds).sum::<u64>(), of_user.map(|(_, holds)| holds).sum()];
        let (mut project, mut user) = self.turns.of(of);
        project.change(|held| held.saturating_sub(of_project));
        user.change(|held| held.saturating_sub(of_user));
        (project, user)
    }

    fn key(&self, line: Line, (project, user): &(PartyTurn, PartyTurn)) -> (PartyTurnKey, PartyTurnKey) {
        match self.turns.counts_half(line) {
            true => (project.halved(), user.halved()),
            false => (project.key, user.key),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohabit_types::{GpuRequest, ShareProject, ShareTable, Time};

    use super::*;
    use crate::{FairShares, RecentUse};

    fn line(user: u32, qos: Qos) -> Line {
        Line { party: Party(user), qos }
    }

    fn normal(user: u32) -> Line {
        line(user, Qos::Normal)
    }

    fn gpus(count: u32) -> Demand {
        Demand { gpus: GpuRequest::Whole(count), ..Demand::default() }
    }

    /// The turns of users who hold and used so much, in one project if said so.
    fn turns(users: &[(&str, u64, u128)], is_one_project: bool) -> Turns {
        let members = users.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let vision = ShareProject { users: members, ..ShareProject::default() };
        let projects = is_one_project.then(|| ("vision".to_owned(), vision)).into_iter().collect();
        let mut table = ShareTable { projects, ..ShareTable::default() };
        table.user.high_gpu_hours = 10;
        let mut shares = FairShares::new(Arc::new(table));
        for (name, held, used) in users {
            shares.set_usage(name, RecentUse { held: *held, used: *used, ..RecentUse::default() });
        }
        let division = shares.divide(Time::EPOCH, 16_000, |_| 100_000);
        Turns::new(&shares, &division, (0..users.len() as u32).map(normal))
    }

    fn may_stop(turns: &Turns, newcomer: Line, count: u32, victim: Line, holds: u64) -> bool {
        Displacement::new(turns, newcomer, &gpus(count)).may_stop(victim, holds)
    }

    #[test]
    fn a_job_is_stopped_only_for_somebody_who_has_less_even_afterwards() {
        // Each is entitled to 8 of 16.
        let turns = turns(&[("ada", 9_000, 0), ("ben", 7_000, 0)], false);
        let (ada, ben) = (normal(0), normal(1));
        assert!(may_stop(&turns, ben, 1, ada, 1_000) && !may_stop(&turns, ben, 2, ada, 2_000));
        assert!(!may_stop(&turns, ada, 1, ben, 1_000) && may_stop(&turns, ada, 1, ada, 1_000));
    }

    #[test]
    fn what_several_give_up_counts_together_and_so_does_all_that_the_newcomer_gets() {
        let turns = turns(&[("ada", 5_000, 0), ("ben", 1_000, 0)], false);
        assert!(!may_stop(&turns, normal(1), 4, normal(0), 1_000), "ben would hold five, and ada four");
        let mut displacement = Displacement::new(&turns, normal(1), &gpus(2));
        let mut stopped = 0;
        while displacement.may_stop(normal(0), 1_000) {
            displacement.stop(normal(0), 1_000);
            stopped += 1;
        }
        assert_eq!(stopped, 2, "ada keeps three, and ben gets to three");
    }

    #[test]
    fn a_job_without_a_gpu_is_stopped_only_for_somebody_whose_turn_comes_first() {
        let turns = turns(&[("ada", 0, 5 << 40), ("ben", 0, 1 << 40)], false);
        assert_eq!(turns.next(), Some(normal(1)));
        assert!(may_stop(&turns, normal(1), 0, normal(0), 0));
        assert!(!may_stop(&turns, normal(0), 0, normal(1), 0));
    }

    #[test]
    fn within_a_project_the_lines_count_as_in_the_order_of_turns() {
        let turns = turns(&[("ada", 8_000, 0), ("ben", 0, 0)], true);
        let high = line(0, Qos::High);
        // It has the next turn, and would take the place back.
        assert!(!may_stop(&turns, normal(1), 1, high, 1_000));
        assert!(may_stop(&turns, normal(1), 1, normal(0), 1_000));
        assert!(may_stop(&turns, line(1, Qos::High), 1, high, 1_000));
    }

    #[test]
    fn nothing_is_stopped_for_a_job_whose_turn_would_come_later() {
        let turns = turns(&[("ada", 9_000, 0), ("ben", 7_000, 0)], false);
        let may = |to, from| may_stop(&turns, to, 1, from, 1_000);
        let (ada, ben) = (normal(0), normal(1));
        assert!(!may(line(1, Qos::Low), ada) && may(ben, line(0, Qos::Low)));
        assert!(may(ada, line(1, Qos::Low)), "it has only what nobody else wants");
        assert!(!may(ada, line(0, Qos::High)) && may(line(0, Qos::High), ada));
        // Ada's eight would count four.
        assert!(!may(ben, line(0, Qos::High)));
    }
}
