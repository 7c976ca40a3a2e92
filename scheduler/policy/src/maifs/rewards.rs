//! What agents are rewarded for in training (section 8): fewer jobs in the system than the teacher has on the
//! same arrivals.

use std::sync::Arc;

use cohabit_types::Time;

use super::action::JointAction;
use super::agents::Agents;
use super::observation::JointObservation;
use super::reward_baseline::RewardBaseline;
use super::teacher::Lesson;
use super::transition::JointTransition;

/// The cost of an agent that sits out because of a conflict, for one of V agents.
const CONFLICT: f64 = 0.02;

/// The value of what is so many mean run times away falls by a factor of e.
const HORIZON: f64 = 20.0;

/// The jobs in the system over time, and the sub-step whose reward is not known yet.
#[derive(Debug)]
pub(super) struct RewardClock {
    baseline: Arc<RewardBaseline>,
    /// The next change of the teacher's number of jobs.
    next_change: usize,
    since: Time,
    jobs: u32,
    /// The integral of N - N* since the last sub-step, in seconds.
    excess: f64,
    open: Option<OpenStep>,
}

/// A sub-step whose reward is not known yet.
#[derive(Debug)]
struct OpenStep {
    at: Time,
    observation: Arc<JointObservation>,
    action: JointAction,
    conflicts: usize,
    taught: Lesson,
}

impl RewardClock {
    pub(super) fn new(baseline: Arc<RewardBaseline>) -> RewardClock {
        RewardClock { baseline, next_change: 0, since: Time::EPOCH, jobs: 0, excess: 0.0, open: None }
    }

    /// From now on there are so many jobs in the system.
    pub(super) fn count(&mut self, now: Time, jobs: u32) {
        self.advance(now);
        self.jobs = jobs;
    }

    fn advance(&mut self, now: Time) {
        while self.since < now {
            let change = self.baseline.jobs.get(self.next_change).map(|(at, _)| *at);
            let until = change.filter(|at| *at <= now).unwrap_or(now).max(self.since);
            let of_teacher = self.next_change.checked_sub(1).map_or(0, |last| self.baseline.jobs[last].1);
            let length = until.since(self.since).as_secs_f64();
            self.excess += (f64::from(self.jobs) - f64::from(of_teacher)) * length;
            self.since = until;
            self.next_change += usize::from(change == Some(until));
            if change.is_none() && until == now {
                break;
            }
        }
    }

    /// A sub-step: the reward of the one before is known now, and the agents are told.
    pub(super) fn step(
        &mut self,
        now: Time,
        observation: &Arc<JointObservation>,
        action: JointAction,
        conflicts: usize,
        taught: Lesson,
        agents: &mut dyn Agents,
    ) {
        self.close(now, Some(observation), agents);
        let observation = Arc::clone(observation);
        self.open = Some(OpenStep { at: now, observation, action, conflicts, taught });
    }

    /// Tells the agents what came of the last sub-step; without a next one, the episode has ended.
    pub(super) fn close(&mut self, now: Time, next: Option<&Arc<JointObservation>>, agents: &mut dyn Agents) {
        self.advance(now);
        let excess = std::mem::take(&mut self.excess);
        let Some(OpenStep { at, observation, action, conflicts, taught }) = self.open.take() else { return };
        let mean = self.baseline.mean_seconds.max(1e-9);
        let share = conflicts as f64 / observation.agents() as f64;
        let reward = -excess / mean - CONFLICT * share;
        let discount = (-now.since(at).as_secs_f64() / (HORIZON * mean)).exp();
        agents.decided(JointTransition {
            observation,
            action,
            reward: reward as f32,
            discount: discount as f32,
            next: next.cloned(),
            teacher: taught.taught,
        });
    }

    /// The episode is over.
    pub(super) fn finish(&mut self, agents: &mut dyn Agents) {
        self.close(self.since, None, agents);
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::Span;

    use super::super::values::JointValues;
    use super::super::{Coordination, ObservationShape};
    use super::*;

    #[derive(Default)]
    struct Told(Vec<JointTransition>);

    impl Agents for Told {
        fn coordination(&self) -> Coordination {
            Coordination::default()
        }
        fn levels(&self) -> usize {
            1
        }
        fn values(&mut self, _: &[Arc<JointObservation>]) -> Vec<JointValues> {
            Vec::new()
        }
        fn decided(&mut self, transition: JointTransition) {
            self.0.push(transition);
        }
    }

    fn at(seconds: f64) -> Time {
        Time::EPOCH + Span::from_secs_f64(seconds)
    }

    /// The sum of rewards, without conflicts, of steps at these times of a run with these numbers of jobs.
    fn total(baseline: Vec<(Time, u32)>, run: &[(f64, u32)], steps: &[f64], end: f64) -> f64 {
        let baseline = RewardBaseline { mean_seconds: 2.0, jobs: baseline };
        let (mut clock, mut told) = (RewardClock::new(Arc::new(baseline)), Told::default());
        let observation = Arc::new(JointObservation::new(ObservationShape { nodes: 1, jobs: 1, levels: 1 }));
        let mut times: Vec<(f64, Option<u32>)> = run.iter().map(|(at, jobs)| (*at, Some(*jobs))).collect();
        times.extend(steps.iter().map(|at| (*at, None)));
        times.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (time, jobs) in times {
            match jobs {
                Some(jobs) => clock.count(at(time), jobs),
                None => {
                    let taught = Lesson { action: vec![], taught: vec![] };
                    clock.step(at(time), &observation, vec![], 0, taught, &mut told);
                }
            }
        }
        clock.close(at(end), None, &mut told);
        told.0.iter().map(|it| f64::from(it.reward)).sum()
    }

    /// Golden check 6: A-SRPT's worked example, with arrivals 0, 1, 2 and ends 14.5, 6.5, 4.5: the integral of
    /// the jobs in the system is 22.5, the sum of the completion times.
    #[test]
    fn undiscounted_rewards_are_the_sum_of_completion_times() {
        let run = [(0.0, 1), (1.0, 2), (2.0, 3), (4.5, 2), (6.5, 1), (14.5, 0)];
        let sum: f64 = 14.5 + 5.5 + 2.5;
        assert!((sum - 22.5).abs() < 1e-12);
        assert!((total(vec![], &run, &[0.0, 1.0, 2.0, 4.5], 14.5) + sum / 2.0).abs() < 1e-6);
        assert!(
            (total(vec![], &run, &[0.0], 14.5) + sum / 2.0).abs() < 1e-6,
            "however many sub-steps there are"
        );
    }

    #[test]
    fn what_the_teacher_has_in_the_system_costs_nothing() {
        let run = [(0.0, 1), (1.0, 2), (2.0, 3), (4.5, 2), (6.5, 1), (14.5, 0)];
        let same: Vec<(Time, u32)> = run.iter().map(|(time, jobs)| (at(*time), *jobs)).collect();
        assert!(total(same.clone(), &run, &[0.0, 2.0], 14.5).abs() < 1e-6);
        let worse = [(0.0, 1), (1.0, 2), (2.0, 3), (4.5, 2), (6.5, 1), (16.5, 0)];
        assert!((total(same, &worse, &[0.0, 2.0], 16.5) + 1.0).abs() < 1e-6);
    }
}
