//! Absurd estimates, progress and predictions in the whole cluster: every job completes, and no plan leaves a
//! device idle beside a job that fits it.

use std::sync::Arc;

use cohabit_policy::interference::{ColocationEstimate, ColocationSet, Interference, InterferenceContext};
use cohabit_types::{Estimate, JobSpec, JobState, Span, Time};

use super::kit::*;
use crate::head_hooks::HeadHooks;
use crate::program::{SigtermBehaviour, SimProgram};
use crate::recorder::TraceDetail;
use crate::scenario::Scenario;
use crate::world::World;

/// Estimates nothing, no time at all, eternity, or a hundred times too little or too much, in turn.
#[derive(Default)]
struct AbsurdEstimator {
    asked: usize,
}

impl HeadHooks for AbsurdEstimator {
    fn estimate(&mut self, _: Time, _: &str, spec: &JobSpec) -> Option<Estimate> {
        self.asked += 1;
        let true_micros = SimProgram::of(spec).solo_duration.as_micros();
        let micros = [0, u64::MAX, true_micros / 100, true_micros * 100].get(self.asked % 5).copied()?;
        let runtime = Some(Span::from_micros(micros));
        Some(Estimate { iterations: Some(micros), runtime, ..Estimate::default() })
    }
}

/// Predicts these slowdowns and uncertainties, the first for the first set, and so on in turn.
#[derive(Debug)]
struct AbsurdPredictor([f64; 5]);

impl Interference for AbsurdPredictor {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let estimate = |number: usize| ColocationEstimate {
            slowdown: self.0[number % 5],
            uncertainty: self.0[(number + 1) % 5],
            memory: Some(self.0[(number + 2) % 5]),
            utilization: Some(self.0[(number + 3) % 5]),
            fits: self.0[(number + 4) % 5],
            measured: number.is_multiple_of(2),
        };
        let all = sets.iter().enumerate();
        all.map(|(number, set)| set.members.iter().map(|_| estimate(number)).collect()).collect()
    }
}

/// A job that counts its steps in an absurd way, on a whole device or a part of one.
fn job(number: u64) -> JobSpec {
    let program = SimProgram {
        steps: [1, u64::MAX, 1_000, 3][number as usize % 4],
        on_term: SigtermBehaviour::Checkpoints(secs(5)),
        ..SimProgram::working(secs(if number.is_multiple_of(5) { 6_000 } else { 30 + number * 13 % 300 }))
    };
    let preemptible = !number.is_multiple_of(7);
    let whole = JobSpec { preemptible, ..program.job() };
    let mut stop = whole.stop;
    stop.grace = secs(30);
    let demand = if number.is_multiple_of(3) { work_on(400, 1).demand } else { whole.demand };
    JobSpec { demand, stop, ..whole }
}

fn all_complete(policy: &str, predictor: [f64; 5]) {
    let interference = Arc::new(AbsurdPredictor(predictor));
    let knowledge = InterferenceContext { interference, ..InterferenceContext::default() };
    let calm = Scenario { policy: policy.into(), knowledge, ..cluster(2) };
    let scenario = (0..40).fold(calm, |all, number| all.submit(at(50 + number * 97), job(number)));
    let mut hooks = AbsurdEstimator::default();
    let mut world = World::new(1, scenario.quiet(at(20_000)), TraceDetail::Last(60), &mut hooks);
    let run = world.run();
    assert_eq!(run, Ok(()), "{policy} with {predictor:?}");
    let records = world.records();
    assert_eq!(records.len(), 40);
    let unfinished = records.iter().find(|record| record.state != JobState::Completed);
    assert!(unfinished.is_none(), "{policy} with {predictor:?}: {unfinished:?}");
}

#[test]
fn absurd_estimates_and_progress_let_every_job_complete() {
    for policy in ["a-srpt", "a-srpt:quantum=1,stop-ratio=0,margin=0.1", "hybrid"] {
        all_complete(policy, [1.2, 0.1, 1e9, 0.5, 0.9]);
    }
}

#[test]
fn absurd_predictions_let_every_job_complete() {
    let absurd = [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e300];
    for turn in 0..5 {
        let mut predictor = absurd;
        predictor.rotate_left(turn);
        all_complete("hybrid:quantum=60,stop-ratio=0", predictor);
    }
}
