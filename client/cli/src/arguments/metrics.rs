//! Arguments of `metrics`.

use clap::Args;
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;
use super::jobs::JobReferences;

// Arguments of `metrics`.
#[derive(Debug, Args)]
pub(crate) struct MetricsArguments {
    #[command(flatten)]
    pub(crate) jobs: JobReferences,
    /// Print every report as CSV: job, attempt, step, time, and a column for each metric
    #[arg(long, conflicts_with = "plot")]
    pub(crate) csv: bool,
    /// Plot the metrics over the steps
    #[arg(long)]
    pub(crate) plot: bool,
    /// Only these metrics [default: all]
    #[arg(long = "metric", value_name = "NAME", value_delimiter = ',')]
    pub(crate) names: Vec<String>,
    /// Rank whose metrics to show [default: 0]
    #[arg(long)]
    pub(crate) rank: Option<u32>,
    /// Attempt whose metrics to show [default: all]
    #[arg(long)]
    pub(crate) attempt: Option<u32>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}
