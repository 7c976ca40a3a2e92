//! The median stopping rule: Golovin et al., "Google Vizier: A Service for Black-Box Optimization", KDD 2017,
//! section 3.2.2.
//!
//! It stops a trial that runs, at step s, if the best value that it has reported by step s is strictly worse
//! than the median of the running averages ō_{1:s} of what all completed trials had reported up to step s.
//! Two parameters keep it from judging on little: the first step at which it stops a member, and how many
//! others must have completed with a report up to that step.

use cohabit_client::types::{MedianRule, SweepGoal, counted};
use cohabit_console::format_number;

use super::loss::Loss;

pub(super) struct MedianState {
    rule: MedianRule,
    goal: SweepGoal,
    /// The steps and losses of each member, in the order of time.
    reports: Vec<Vec<(u64, Loss)>>,
    completed: Vec<usize>,
}

impl MedianState {
    pub(super) fn new(rule: MedianRule, goal: SweepGoal, members: usize) -> MedianState {
        MedianState { rule, goal, reports: vec![Vec::new(); members], completed: Vec::new() }
    }

    pub(super) fn complete(&mut self, member: usize) {
        self.completed.push(member);
    }

    /// Why the member is stopped, if it is.
    pub(super) fn report(&mut self, member: usize, step: u64, loss: Loss) -> Option<String> {
        self.reports[member].push((step, loss));
        if step < self.rule.grace {
            return None;
        }
        let averages = self.completed.iter().filter(|it| **it != member);
        let mut averages: Vec<f64> = averages.filter_map(|it| self.average(*it, step)).collect();
        if averages.is_empty() || averages.len() < self.rule.completed as usize {
            return None;
        }
        let best = self.reports[member].iter().map(|(_, loss)| loss.0).fold(f64::INFINITY, f64::min);
        let median = median(&mut averages);
        (best > median).then(|| {
            let shown = |loss: f64| format_number(Loss(loss).value(self.goal));
            format!(
                "median rule at step {step}: its best, {}, is worse than {}, the median of the averages of {}",
                shown(best),
                shown(median),
                counted(averages.len() as u64, "completed member", "completed members")
            )
        })
    }

    /// The average of what a member reported up to a step.
    fn average(&self, member: usize, step: u64) -> Option<f64> {
        let until = || self.reports[member].iter().filter(|(at, _)| *at <= step).map(|(_, loss)| loss.0);
        let count = until().count();
        (count > 0).then(|| until().sum::<f64>() / count as f64)
    }
}

/// The middle one of these numbers, or the mean of both in the middle.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() % 2 {
        0 => f64::midpoint(numbers[middle - 1], numbers[middle]),
        _ => numbers[middle],
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::EarlyStopping;

    use super::super::tests::member;
    use super::super::{MemberReports, StopDecision, decide};
    use super::*;

    fn stops(grace: u64, completed: u32, goal: SweepGoal, members: &[MemberReports]) -> Vec<StopDecision> {
        decide(EarlyStopping::Median(MedianRule { grace, completed }), goal, members)
    }

    /// The running averages of the completed members are, at step 1: 1.0, 0.8, 0.6 (median 0.8); at step 2:
    /// (1.0+0.6)/2 = 0.8, (0.8+0.2)/2 = 0.5, (0.6+0.6)/2 = 0.6 (median 0.6); at step 3: 2.0/3 = 0.67,
    /// 1.2/3 = 0.4, 1.8/3 = 0.6 (median 0.6).
    fn completed() -> [MemberReports; 3] {
        [&[1.0, 0.6, 0.4], &[0.8, 0.2, 0.2], &[0.6, 0.6, 0.6]].map(|values| member(0, values, true))
    }

    fn with(values: &[f64]) -> Vec<MemberReports> {
        completed().into_iter().chain([member(100, values, false)]).collect()
    }

    #[test]
    fn a_member_stops_where_its_best_is_worse_than_the_median_of_running_averages() {
        let stopped = |values: &[f64]| stops(0, 3, SweepGoal::Min, &with(values)).first().map(|it| it.step);
        assert_eq!(stopped(&[0.81]), Some(1));
        assert_eq!(stopped(&[0.8]), None, "equal is not strictly worse");
        assert_eq!(stopped(&[0.7, 0.61, 0.1]), Some(2));
        assert_eq!(stopped(&[0.7, 0.6, 0.9]), None, "its best counts, not its last");
        let reason = stops(0, 3, SweepGoal::Min, &with(&[0.7, 0.61]))[0].reason.clone();
        assert_eq!(
            reason,
            "median rule at step 2: its best, 0.6100, is worse than 0.6000, the median of the averages of 3 \
             completed members"
        );
    }

    #[test]
    fn nothing_stops_before_the_grace_or_with_too_few_completed() {
        let bad = [9.0, 9.0, 9.0];
        assert_eq!(stops(3, 3, SweepGoal::Min, &with(&bad))[0].step, 3);
        assert_eq!(stops(4, 3, SweepGoal::Min, &with(&bad)), []);
        assert_eq!(stops(0, 4, SweepGoal::Min, &with(&bad)), []);
        let running = completed().map(|it| MemberReports { completed_at: None, ..it });
        assert_eq!(stops(0, 1, SweepGoal::Min, &[&running[..], &[member(100, &bad, false)]].concat()), []);
    }

    /// With an even number the median is the mean of both in the middle: (0.8 + 1.0) / 2 = 0.9 at step 1.
    #[test]
    fn the_median_of_two_is_their_mean_and_larger_may_be_better() {
        let two = |value: f64| [&completed()[..2], &[member(100, &[value], false)]].concat();
        assert_eq!(stops(0, 2, SweepGoal::Min, &two(0.91)).len(), 1);
        assert_eq!(stops(0, 2, SweepGoal::Min, &two(0.9)).len(), 0);
        assert_eq!(stops(0, 2, SweepGoal::Max, &two(0.91)).len(), 0);
        assert_eq!(stops(0, 2, SweepGoal::Max, &two(0.89)).len(), 1);
    }
}
