//! `profile`: which workloads are compared on which GPU, in which ways, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use cohabit_console::{DisplayArguments, duration};
use cohabit_types::{SharingStrategy, Span};

// Arguments of `profile`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct ProfileArguments {
    /// The workloads to compare: a TOML file with a `[[workloads]]` table for each
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) workloads: PathBuf,
    /// The table to fill, with details beside it in FILE.csv.json; what is in it already is not measured
    /// again
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) out: PathBuf,
    /// The GPU, by UUID or number; needed where there are several
    #[arg(long, value_name = "UUID|NUMBER")]
    pub(crate) gpu: Option<String>,
    /// Ways of sharing to compare
    #[arg(
        long,
        value_name = "SHARING,…",
        value_delimiter = ',',
        default_value = "exclusive,time-sliced,mps",
        value_parser = str::parse::<SharingStrategy>,
        action = ArgAction::Append
    )]
    pub(crate) sharing: Vec<SharingStrategy>,
    /// How many share the GPU at a time
    #[arg(
        long,
        value_name = "COUNT,…",
        value_delimiter = ',',
        default_value = "1,2,3",
        value_parser = clap::value_parser!(u64).range(1..=3),
        action = ArgAction::Append
    )]
    pub(crate) set_sizes: Vec<u64>,
    /// Pairs to measure; where there are more, a sample that covers all workloads
    #[arg(long, value_name = "COUNT", default_value_t = 150, value_parser = at_most_10_000())]
    pub(crate) pairs: u64,
    /// Triples to measure, likewise
    #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = at_most_10_000())]
    pub(crate) triples: u64,
    /// For how long rates have to be steady; measuring ends after three times as long in any case
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_time)]
    pub(crate) steady: Duration,
    /// Steps of this time after the first do not count
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::span)]
    pub(crate) warm_up: Span,
    /// End after this time; the same command goes on where this one ends
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) max_time: Option<Duration>,
    /// What draws samples
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Start without a question
    #[arg(long)]
    pub(crate) yes: bool,
    /// Measure although somebody else is on the GPU
    #[arg(long)]
    pub(crate) force: bool,
    /// State folder of this machine's worker, which may not run meanwhile; as `worker start` without it
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// NVIDIA's management library, if not the usual one [env: COHABIT_NVML_LIBRARY]
    #[arg(long, value_name = "FILE")]
    pub nvml_library: Option<PathBuf>,
    #[command(flatten)]
    pub display: DisplayArguments,
}

/// Nobody measures more combinations; a sample of so many takes a moment to draw.
fn at_most_10_000() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(..=10_000)
}

/// A length of time that is not zero.
fn positive_time(text: &str) -> Result<Duration, String> {
    match duration::span(text)? {
        Span::ZERO => Err("no time at all is too short: write 10s or 8m".to_owned()),
        span => Ok(span.into()),
    }
}
