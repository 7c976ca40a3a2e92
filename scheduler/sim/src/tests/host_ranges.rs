//! Evaluations of jobs whose cores and host memory may change.

use std::sync::Arc;

use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::{SensitivityProfiles, SensitivityTable};
use cohabit_types::Bytes;

use crate::cluster_spec::ClusterSpec;
use crate::evaluation::{EstimatorKind, Evaluation, EvaluationMetrics, JobBehavior, Observer, evaluate};
use crate::machine::Hardware;
use crate::trace::synthetic;
use crate::workload::{Pace, SensitivityTables, noisy_tables, workload};

struct SilentObserver;

impl Observer for SilentObserver {
    fn progressed(&mut self, _: usize, _: usize) {}

    fn clock_us(&mut self) -> u64 {
        0
    }
}

/// Speeds at one, three, six and twelve cores, whatever the memory.
fn table(speeds: [f64; 4]) -> Arc<SensitivityTable> {
    let rows: Vec<Vec<f64>> = speeds.iter().map(|speed| vec![*speed]).collect();
    Arc::new(SensitivityTable::new(vec![1.0, 3.0, 6.0, 12.0], &[Bytes::ZERO], &rows).unwrap())
}

/// What policies know of the tables.
#[derive(Clone, Copy)]
enum Known {
    Exact,
    Noisy,
}

/// The same jobs for every policy: some are twice as fast with six cores for each GPU, the others as fast
/// with one as with three.
fn judged(policy: &str, known: Known) -> EvaluationMetrics {
    let shapes = "2x8:V100@25g,24c500G".parse::<ClusterSpec>().unwrap().shapes();
    let tables: SensitivityTables =
        [("hungry".into(), table([0.4, 1.0, 2.0, 2.0])), ("frugal".into(), table([1.0; 4]))].into();
    let mut pace = Pace::on(&shapes);
    let jobs = workload(&synthetic(60, 5), &shapes, None, 5, |model, devices| pace.fastest(model, devices));
    let (jobs, truth) = jobs.with_load(0.8, 16).with_ranges(&shapes, &tables, 5);
    let sensitivity: SensitivityProfiles = match known {
        Known::Exact => truth.clone(),
        Known::Noisy => noisy_tables(&truth, 0.2, 5),
    };
    let evaluation = Evaluation {
        shapes,
        hardware: Hardware { sensitivity: Arc::new(truth), ..Hardware::default() },
        jobs: jobs.jobs,
        policy: policy.into(),
        knowledge: InterferenceContext::default(),
        sensitivity: Arc::new(sensitivity),
        fair_share: false,
        estimator: EstimatorKind::Oracle,
        behavior: JobBehavior::default(),
        seed: 5,
    };
    let done = evaluate(evaluation, &mut SilentObserver).unwrap().metrics;
    assert_eq!(done.completed, done.jobs, "{done:?}");
    done
}

#[test]
fn a_policy_that_does_not_tune_leaves_jobs_their_proportional_share() {
    let done = judged("fifo", Known::Exact);
    assert_eq!((done.allotments, done.speed_by_share), (0, 1.0), "{done:?}");
    let blind = judged("fifo", Known::Noisy);
    assert_eq!(EvaluationMetrics { wall_s: 0.0, ..blind }, EvaluationMetrics { wall_s: 0.0, ..done });
}

#[test]
fn a_policy_that_tunes_changes_shares_and_jobs_are_faster() {
    let fixed = judged("fifo", Known::Exact);
    for known in [Known::Exact, Known::Noisy] {
        let done = judged("fifo:tune=on", known);
        assert!(done.allotments > 0, "{done:?}");
        assert!(done.speed_by_share > 1.1 && done.speed_by_share <= 2.0, "{done:?}");
        assert!(done.mean_jct_s < fixed.mean_jct_s, "{done:?}");
    }
}
