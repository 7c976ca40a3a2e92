//! Asynchronous successive halving: Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys
//! 2020, algorithm 2, as a rule that stops members.
//!
//! Rung k lies at step r·η^k. In the paper a member waits at a rung until it is among the best ⌊n/η⌋ of the
//! n members that have reached the rung, and is then promoted. The members of an array run without waiting,
//! so the same comparison is made when a member reaches a rung: it goes on if it is among the best ⌊n/η⌋ of
//! those that have reached the rung so far, itself included, or the best of fewer than η; else it is stopped.

use cohabit_client::types::{AshaRule, SweepGoal};
use cohabit_console::format_number;

use super::loss::Loss;

pub(super) struct AshaState {
    rule: AshaRule,
    goal: SweepGoal,
    steps: Vec<u64>,
    /// The losses with which members have reached each rung.
    rungs: Vec<Vec<Loss>>,
    /// The next rung of each member.
    next: Vec<usize>,
}

impl AshaState {
    pub(super) fn new(rule: AshaRule, goal: SweepGoal, members: usize) -> AshaState {
        let steps = rule.steps();
        AshaState { rule, goal, rungs: vec![Vec::new(); steps.len()], steps, next: vec![0; members] }
    }

    /// Why the member is stopped, if it is. A report may be beyond several rungs.
    pub(super) fn report(&mut self, member: usize, step: u64, loss: Loss) -> Option<String> {
        while let Some(rung_step) = self.steps.get(self.next[member]).filter(|it| **it <= step) {
            let rung = &mut self.rungs[self.next[member]];
            self.next[member] += 1;
            rung.push(loss);
            let kept = (rung.len() / self.rule.reduction as usize).max(1);
            let better = rung.iter().filter(|it| it.0 < loss.0).count();
            if better >= kept {
                return Some(format!(
                    "asha at step {step}: {} is not among the best {kept} of the {} that reached step {rung_step}",
                    format_number(loss.value(self.goal)),
                    rung.len()
                ));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::EarlyStopping;

    use super::super::tests::member;
    use super::super::{MemberReports, decide};
    use super::*;

    fn stops(rule: AshaRule, goal: SweepGoal, members: &[MemberReports]) -> Vec<(usize, u64)> {
        let decisions = decide(EarlyStopping::Asha(rule), goal, members);
        decisions.into_iter().map(|it| (it.member, it.step)).collect()
    }

    /// Members that reach a rung one after another, with these values all along.
    fn one_after_another(values: &[f64], steps: usize) -> Vec<MemberReports> {
        let member = |(place, value): (usize, &f64)| member(place as u64 * 100, &vec![*value; steps], false);
        values.iter().enumerate().map(member).collect()
    }

    /// η = 2, rungs at steps 1, 2 and 4. At rung 0 the values 5, 4, 6, 3 and 3.5 arrive: 5 is the best of one;
    /// 4 of two (⌊2/2⌋ = 1 kept); 6 is not (⌊3/2⌋ = 1); 3 is (⌊4/2⌋ = 2: 3 and 4); 3.5 is (⌊5/2⌋ = 2: 3 and
    /// 3.5). At rung 1 arrive 5, 4, 3 and 3.5: 5 and 4 and 3 are each the best of 1, 2 and 3, and 3.5 is
    /// second of four, of which ⌊4/2⌋ = 2 are kept. So it is at rung 2.
    #[test]
    fn the_best_of_each_rung_go_on() {
        let rule = AshaRule { grace: 1, reduction: 2, rungs: 3 };
        assert_eq!(stops(rule, SweepGoal::Min, &one_after_another(&[5.0, 4.0, 6.0, 3.0, 3.5], 4)), [(2, 1)]);
        let negated = one_after_another(&[-5.0, -4.0, -6.0, -3.0, -3.5], 4);
        assert_eq!(stops(rule, SweepGoal::Max, &negated), [(2, 1)]);
    }

    /// η = 4, r = 1: the first four keep ⌊4/4⌋ = 1, and of eight ⌊8/4⌋ = 2 are kept.
    #[test]
    fn one_of_eta_is_kept() {
        let rule = AshaRule { grace: 1, reduction: 4, rungs: 1 };
        let values = [8.0, 1.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0];
        // Only 8 and 1 were the best when they arrived; 2 is second of eight.
        assert_eq!(
            stops(rule, SweepGoal::Min, &one_after_another(&values, 1)),
            [(2, 1), (3, 1), (4, 1), (5, 1), (6, 1)]
        );
    }

    #[test]
    fn rungs_wait_for_their_steps_and_a_report_may_be_beyond_several() {
        let rule = AshaRule { grace: 3, reduction: 3, rungs: 2 };
        let members = one_after_another(&[1.0, 2.0], 12);
        assert_eq!(stops(rule, SweepGoal::Min, &members), [(1, 3)]);
        let mut jumps = members;
        jumps[1].reports.drain(..8);
        assert_eq!(stops(rule, SweepGoal::Min, &jumps), [(1, 9)]);
        let equal = one_after_another(&[1.0, 1.0, 1.0], 12);
        assert_eq!(stops(rule, SweepGoal::Min, &equal), [], "who is as good as the best goes on");
    }

    #[test]
    fn the_reason_names_the_rung_and_the_values() {
        let rule = EarlyStopping::Asha(AshaRule { grace: 2, reduction: 3, rungs: 2 });
        let decisions = decide(rule, SweepGoal::Max, &one_after_another(&[0.75, 0.5], 6));
        assert_eq!(
            decisions[0].reason,
            "asha at step 2: 0.5000 is not among the best 1 of the 2 that reached step 2"
        );
    }
}
