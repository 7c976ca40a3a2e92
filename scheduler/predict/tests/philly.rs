//! Backtests the estimators on the Philly trace: its jobs are submitted and end in their original order, each
//! starting at once.
//!
//! The trace is not part of the repository. Without it, the tests print that they are skipped.
#![expect(clippy::print_stderr, clippy::unwrap_used, reason = "a test that prints its results")]

use std::path::{Path, PathBuf};

use cohabit_policy::{CompletedRun, Estimator, JobFeatures};
use cohabit_predict::{
    Accuracy, AccuracyStats, Constant, EstimateErrors, Forest, GroupMean, Quantity, RecentMedian, backtest,
};
use cohabit_types::{Estimate, Span, Time};

/// The median of the whole trace, which no estimator can know in advance.
const MEDIAN_RUNTIME: Span = Span::from_secs(1_144);

/// The trace, if `shared/data` lies above the repository.
fn trace() -> Option<PathBuf> {
    let file = "shared/data/philly/philly_pollux_66k.csv.gz";
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = above.map(|folder| folder.join(file)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: there is no {file} in any directory above");
    }
    found
}

/// The jobs of the trace; the virtual cluster stands for user and group, and iterations are ten per second.
fn jobs(trace: &Path) -> Vec<CompletedRun> {
    let file = std::fs::File::open(trace).unwrap();
    let mut rows = csv::Reader::from_reader(flate2::read::GzDecoder::new(file));
    rows.records().map(|row| job(&row.unwrap())).collect()
}

fn job(row: &csv::StringRecord) -> CompletedRun {
    let submitted: jiff::civil::DateTime = row[0].parse().unwrap();
    let since_1970 = submitted.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_second();
    let submitted_at = Time::EPOCH + Span::from_secs(since_1970.unsigned_abs());
    let runtime = Span::from_secs_f64(row[1].parse().unwrap());
    let gpus: u64 = row[2].parse().unwrap();
    let features = JobFeatures {
        user: row[4].to_owned(),
        group: format!("{}, {gpus} GPUs", &row[4]),
        submitted_at,
        devices_milli: gpus * 1_000,
        ..JobFeatures::default()
    };
    let iterations = Some((runtime.as_secs_f64() * 10.0) as u64);
    CompletedRun { features, ended_at: submitted_at + runtime, runtime, iterations }
}

fn errors(comparison: &AccuracyStats) -> EstimateErrors {
    comparison.errors.unwrap()
}

fn tell(name: &str, accuracy: &Accuracy) {
    let row = |set: &str, comparison: &AccuracyStats| {
        let Some(it) = comparison.errors else { return };
        eprintln!(
            "{name:15} {set:10} {:6} jobs, {:6} estimated | within a factor of 2: {:.1}% | median error {:.1}% \
             | MAPE {:.0}% | log ratio p5 {:.2} p50 {:.2} p95 {:.2}",
            comparison.jobs,
            comparison.estimated,
            it.within_factor_2 * 100.0,
            it.median_relative_error * 100.0,
            it.mape * 100.0,
            it.log_ratio.p5,
            it.log_ratio.p50,
            it.log_ratio.p95,
        );
    };
    row("all", &accuracy.all);
    row("recurring", &accuracy.recurring);
    row("first seen", &accuracy.first_seen);
}

/// A forest that measures the time of its fits.
#[derive(Default)]
struct Timed {
    forest: Forest,
    fits: u32,
    seconds: f64,
}

impl Estimator for Timed {
    fn estimate(&self, job: &JobFeatures) -> Option<Estimate> {
        self.forest.estimate(job)
    }

    #[expect(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "the time is printed and decides nothing"
    )]
    fn learn(&mut self, done: &[CompletedRun]) {
        self.forest.remember(done);
        if let Some(training) = self.forest.training() {
            let begun = std::time::Instant::now();
            self.forest.adopt(training.fit());
            self.seconds += begun.elapsed().as_secs_f64();
            self.fits += 1;
        }
    }
}

#[test]
#[ignore = "takes minutes unless it is optimised: cargo test --release -p cohabit-predict -- --ignored"]
fn the_forest_beats_the_recent_median_on_the_whole_trace() {
    let Some(trace) = trace() else { return };
    let jobs = jobs(&trace);
    let measure = |name: &str, estimator: &mut dyn Estimator, quantity| {
        let accuracy = backtest(estimator, &jobs, quantity);
        tell(name, &accuracy);
        accuracy
    };
    let mut constant = Constant { runtime: Some(MEDIAN_RUNTIME), iterations: None };
    measure("constant", &mut constant, Quantity::Runtime);
    measure("group mean", &mut GroupMean::default(), Quantity::Runtime);
    let median = measure("recent median", &mut RecentMedian::default(), Quantity::Runtime);
    let mut timed = Timed::default();
    let forest = measure("forest", &mut timed, Quantity::Runtime);
    eprintln!("{} fits of both quantities took {:.1} s", timed.fits, timed.seconds);
    let iterations = measure("iterations", &mut Forest::default(), Quantity::Iterations);
    for forest in [&forest, &iterations] {
        let (forest, median) = (errors(&forest.all), errors(&median.all));
        assert!(forest.within_factor_2 > median.within_factor_2 + 0.01);
        assert!(forest.median_relative_error < median.median_relative_error - 0.01);
        assert!(forest.mape < median.mape);
    }
}

#[test]
fn the_recent_median_is_within_a_factor_of_two_for_most_jobs() {
    let Some(trace) = trace() else { return };
    let jobs = jobs(&trace);
    assert_eq!(jobs.len(), 65_797);
    let median = backtest(&mut RecentMedian::default(), &jobs, Quantity::Runtime);
    let mean = backtest(&mut GroupMean::default(), &jobs, Quantity::Runtime);
    assert!((0.62..0.65).contains(&errors(&median.recurring).within_factor_2));
    assert!(errors(&median.all).within_factor_2 > 1.5 * errors(&mean.all).within_factor_2);
}
