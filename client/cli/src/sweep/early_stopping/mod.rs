//! Which members of a sweep a rule stops, and why.
//!
//! The answer follows from what the members have reported, in the order of time, and from nothing else: every
//! client that asks again, from any machine and after any interruption, gets the same answer. What a member
//! reports after it was stopped changes nothing.

mod asha;
mod loss;
mod median;

use cohabit_client::types::{EarlyStopping, SweepGoal, Time};

use self::asha::AshaState;
use self::loss::Loss;
use self::median::MedianState;

/// What one member reported of the metric of its sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MemberReports {
    /// In the order of time.
    pub(crate) reports: Vec<MetricReport>,
    /// When it completed, if it did.
    pub(crate) completed_at: Option<Time>,
}

/// One value of the metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MetricReport {
    pub(crate) step: u64,
    pub(crate) at: Time,
    pub(crate) value: f64,
}

/// A member that is stopped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StopDecision {
    /// Its place among the members.
    pub(crate) member: usize,
    /// The step at which it is stopped.
    pub(crate) step: u64,
    /// Why, for people.
    pub(crate) reason: String,
}

/// What happened to a member.
#[derive(Debug, Clone, Copy)]
enum MemberEvent {
    Reported(u64, Loss),
    Completed,
}

/// A rule with what it has seen.
enum RuleState {
    Median(MedianState),
    Asha(AshaState),
}

/// The members that the rule stops, in the order in which it stops them.
pub(crate) fn decide(rule: EarlyStopping, goal: SweepGoal, members: &[MemberReports]) -> Vec<StopDecision> {
    let mut state = match rule {
        EarlyStopping::Median(rule) => RuleState::Median(MedianState::new(rule, goal, members.len())),
        EarlyStopping::Asha(rule) => RuleState::Asha(AshaState::new(rule, goal, members.len())),
    };
    let mut stopped = vec![false; members.len()];
    let mut decisions = Vec::new();
    for (member, event) in in_order(goal, members) {
        let reason = match event {
            MemberEvent::Reported(step, loss) if !stopped[member] => match &mut state {
                RuleState::Median(state) => state.report(member, step, loss).map(|reason| (step, reason)),
                RuleState::Asha(state) => state.report(member, step, loss).map(|reason| (step, reason)),
            },
            MemberEvent::Reported(..) => None,
            MemberEvent::Completed => {
                match &mut state {
                    RuleState::Median(state) => state.complete(member),
                    RuleState::Asha(_) => {}
                }
                None
            }
        };
        if let Some((step, reason)) = reason {
            stopped[member] = true;
            decisions.push(StopDecision { member, step, reason });
        }
    }
    decisions
}

/// What happened to all members, by time; what a member did at the same time keeps its order.
fn in_order(goal: SweepGoal, members: &[MemberReports]) -> Vec<(usize, MemberEvent)> {
    let mut all: Vec<(Time, usize, MemberEvent)> = Vec::new();
    for (member, MemberReports { reports, completed_at }) in members.iter().enumerate() {
        let event = |it: &MetricReport| MemberEvent::Reported(it.step, Loss::new(it.value, goal));
        all.extend(reports.iter().map(|it| (it.at, member, event(it))));
        all.extend(completed_at.map(|at| (at, member, MemberEvent::Completed)));
    }
    all.sort_by_key(|(at, member, _)| (*at, *member));
    all.into_iter().map(|(_, member, event)| (member, event)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohabit_client::types::{AshaRule, MedianRule};

    /// A member that reports these values at steps 1, 2, …, the first at this time, a second apart.
    pub(super) fn member(begin: u64, values: &[f64], completes: bool) -> MemberReports {
        let at = |place: usize| Time::from_micros((begin + place as u64) * 1_000_000);
        let report = |(place, value): (usize, &f64)| MetricReport {
            step: place as u64 + 1,
            at: at(place),
            value: *value,
        };
        let reports: Vec<MetricReport> = values.iter().enumerate().map(report).collect();
        MemberReports { completed_at: completes.then(|| at(reports.len())), reports }
    }

    #[test]
    fn what_a_stopped_member_reports_later_changes_nothing() {
        let rule = EarlyStopping::Asha(AshaRule { grace: 1, reduction: 2, rungs: 3 });
        let good = member(0, &[0.1, 0.1, 0.1, 0.1], true);
        let stopped = |values: &[f64]| {
            let members = [good.clone(), member(10, values, false), member(20, &[0.2; 4], false)];
            decide(rule, SweepGoal::Min, &members)
        };
        let short = stopped(&[0.9]);
        assert_eq!((short.len(), short[0].member, short[0].step), (2, 1, 1));
        assert_eq!(stopped(&[0.9, 0.0, 0.0, 0.0]), short);
    }

    #[test]
    fn a_metric_that_is_no_number_is_worse_than_all_numbers() {
        let rule = EarlyStopping::Asha(AshaRule { grace: 1, reduction: 2, rungs: 1 });
        for goal in [SweepGoal::Min, SweepGoal::Max] {
            let members = [member(0, &[1e9], true), member(5, &[f64::NAN], false)];
            assert_eq!(decide(rule, goal, &members)[0].member, 1);
        }
        let rule = EarlyStopping::Median(MedianRule { grace: 1, completed: 1 });
        let members = [member(0, &[1e9], true), member(5, &[f64::NAN], false)];
        assert_eq!(decide(rule, SweepGoal::Min, &members)[0].member, 1);
    }
}
