//! Arguments about the behavior of jobs: progress, and what stops cost.

use clap::Args;
use cohabit_sim::{JobBehavior, StopCost};

// How jobs behave.
#[derive(Debug, Args)]
pub(crate) struct BehaviorArguments {
    /// Fraction of jobs that report their progress (steps done, steps to do and rate), 0 to 1; the seed
    /// decides which
    #[arg(long, value_name = "FRACTION", default_value_t = JobBehavior::default().reporting)]
    #[arg(value_parser = parse_fraction)]
    pub(crate) progress: f64,
    /// Fraction of jobs that policies may stop for other jobs, 0 to 1; the seed decides which [default: 1]
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) preemptible: Option<f64>,
    /// Seconds that a stop costs a job: to save a checkpoint before it ends, and to load it after the next
    /// start; the job holds its devices meanwhile [default: 15,45]
    #[arg(long, value_name = "SAVE,RESTART")]
    pub(crate) stop_cost: Option<StopCost>,
}

impl BehaviorArguments {
    pub(crate) fn behavior(&self) -> JobBehavior {
        let usual = JobBehavior::default();
        JobBehavior {
            reporting: self.progress,
            preemptible: self.preemptible.unwrap_or(usual.preemptible),
            stop_cost: self.stop_cost.unwrap_or(usual.stop_cost),
        }
    }
}

fn parse_fraction(text: &str) -> Result<f64, String> {
    let fraction = text.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction));
    fraction
        .ok_or_else(|| format!("'{text}' is not a fraction of jobs: write a number from 0 to 1, such as 0.3"))
}
