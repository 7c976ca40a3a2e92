//! Arguments about the jobs, the cluster and what policies know, which `simulate` and `policy train` share.

use std::path::PathBuf;

use clap::Args;
use cohabit_console::duration::parse_duration;
use cohabit_sim::trace::{JobLimits, ThroughputSource, TraceFormat};
use cohabit_types::{SharingLimits, Span};

use super::behavior::BehaviorArguments;
use super::interference::{Predictor, Truth};
use super::sensitivity::SensitivityArguments;
use super::{ClusterArgument, EstimatorArgument, TraceSource};

// The jobs, the cluster, and what policies know.
#[derive(Debug, Args)]
pub(crate) struct WorkloadArguments {
    /// Trace file (plain or gzip), or synthetic:JOBS to generate that many jobs from the seed
    #[arg(long, value_name = "FILE|synthetic:JOBS")]
    pub(crate) trace: TraceSource,
    /// Format of the trace: csv, philly, openb, gavel, pai (hours) or pai-seconds [default: detected from the
    /// first line]
    #[arg(long)]
    pub(crate) format: Option<TraceFormat>,
    /// Fail on invalid rows of the trace instead of skipping them
    #[arg(long)]
    pub(crate) strict: bool,
    /// CSV file of measured steps per second, for traces that contain only steps (gavel)
    #[arg(long, value_name = "FILE")]
    pub(crate) throughputs: Option<PathBuf>,
    /// Measurements to use from the file of --throughputs
    #[arg(long, value_name = "SOURCE/GPU", default_value_t, requires = "throughputs")]
    pub(crate) throughputs_of: ThroughputSource,
    /// Leave out jobs of the trace that run longer than this, such as 1d, before any are counted
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) max_duration: Option<Span>,
    /// Leave out jobs of the trace on more GPUs than this, before any are counted
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_gpus: Option<u32>,
    /// Cluster to simulate, such as 16x8:V100@25g: machines x devices, GPU and network bandwidth. The
    /// bandwidth between the devices of a machine follows a slash; join groups with +:
    /// 8x8:A100@100g/300GB+4x4:K80@10g
    #[arg(long, value_name = "SPEC")]
    pub(crate) cluster: ClusterArgument,
    /// Estimator of run times: oracle, forest, recent-median, group-mean, constant, or noisy:SIGMA (the
    /// actual run time with a log-normal error)
    #[arg(long, value_name = "ESTIMATOR", default_value = "forest")]
    pub(crate) estimator: EstimatorArgument,
    /// Source of the true slowdowns of jobs that share a GPU: law (from the utilization of each job), a table
    /// of measurements (from `cohabit profile`, or Gavel's pairs), or a trained model (from `cohabit predict
    /// train`)
    #[arg(long, value_name = "law|table:FILE|model:DIR", default_value = "law")]
    pub(crate) interference: Truth,
    /// Table of measurements from which the training configurations of jobs are drawn; such jobs share GPUs.
    /// With --interference table:FILE, they are drawn from FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) configurations: Option<PathBuf>,
    /// Source of the slowdowns that policies predict: law (from measurements of jobs running alone), none
    /// (by what jobs request), truth, the pretrained model that comes with this program, or a model in a
    /// directory [default: law]
    #[arg(long, value_name = "law|none|truth|pretrained|model:DIR")]
    pub(crate) predictor: Option<Predictor>,
    /// Largest slowdown that sharing may cause, as a factor (1.3 = 30% slower): policies that limit the
    /// slowdown use it, and results report the time above it [default: no limit; results report the time
    /// above 1.3]
    #[arg(long, value_name = "FACTOR", value_parser = parse_slowdown)]
    pub(crate) max_slowdown: Option<f64>,
    /// Largest number of jobs that share a GPU [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) max_sharing: Option<u32>,
    #[command(flatten)]
    pub(crate) sensitivity: SensitivityArguments,
    #[command(flatten)]
    pub(crate) behavior: BehaviorArguments,
}

impl WorkloadArguments {
    /// The source of predicted slowdowns.
    pub(crate) fn predictor(&self) -> &Predictor {
        self.predictor.as_ref().unwrap_or(&Predictor::Law)
    }

    /// The largest number of jobs that share a GPU.
    pub(crate) fn max_sharing(&self) -> u32 {
        self.max_sharing.unwrap_or(SharingLimits::default().max_ranks)
    }

    /// Which jobs of the trace are left out.
    pub(crate) const fn limits(&self) -> JobLimits {
        JobLimits { duration: self.max_duration, devices: self.max_gpus }
    }
}

fn parse_slowdown(text: &str) -> Result<f64, String> {
    let slowdown = text.parse().ok().filter(|slowdown| (1.0..=1_000.0).contains(slowdown));
    slowdown.ok_or_else(|| format!("'{text}' is not a slowdown of at least 1: write 1.3 for 30% slower"))
}
