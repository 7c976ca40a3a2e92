//! Arguments of `profile`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use cohabit_console::{CommandError, DisplayArguments, duration};
use cohabit_types::{SharingStrategy, Span};

// Arguments of `profile`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct ProfileArguments {
    /// File that lists the workloads to measure, with a `[[workloads]]` table for each
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) workloads: PathBuf,
    /// Table to write, with details in FILE.csv.json; sets that it already contains are not measured again
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) out: PathBuf,
    /// GPU to use, by UUID or number; required if there are several
    #[arg(long, value_name = "UUID|NUMBER")]
    pub(crate) gpu: Option<String>,
    /// Sharing modes to measure
    #[arg(
        long,
        value_name = "SHARING,…",
        value_delimiter = ',',
        default_value = "exclusive,time-sliced,mps",
        value_parser = str::parse::<SharingStrategy>,
        action = ArgAction::Append
    )]
    pub(crate) sharing: Vec<SharingStrategy>,
    /// How many workloads share the GPU in a measurement
    #[arg(
        long,
        value_name = "COUNT,…",
        value_delimiter = ',',
        default_value = "1,2,3",
        value_parser = clap::value_parser!(u64).range(1..=3),
        action = ArgAction::Append
    )]
    pub(crate) set_sizes: Vec<u64>,
    /// Largest number of pairs to measure; if there are more, a sample that covers all workloads is measured
    /// [default: 150]
    #[arg(long, value_name = "COUNT", value_parser = at_most_10_000())]
    pub(crate) pairs: Option<u64>,
    /// Largest number of triples to measure, sampled in the same way [default: 30]
    #[arg(long, value_name = "COUNT", value_parser = at_most_10_000())]
    pub(crate) triples: Option<u64>,
    /// Time for which rates must be steady; a measurement takes at most three times as long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_time)]
    pub(crate) steady: Duration,
    /// Time after the first step during which steps are not counted
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse_duration)]
    pub(crate) warm_up: Span,
    /// Stop after this time; run the same command again to continue
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) max_time: Option<Duration>,
    /// Seed of the samples [default: 1]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Start without confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    /// Measure even if other processes use the GPU
    #[arg(long)]
    pub(crate) force: bool,
    /// State directory of the worker on this machine, which must not be running [default: as for `worker
    /// start`]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Path of NVIDIA's management library (NVML), if not in the standard location [env:
    /// COHABIT_NVML_LIBRARY]
    #[arg(long, value_name = "FILE")]
    pub nvml_library: Option<PathBuf>,
    #[command(flatten)]
    pub display: DisplayArguments,
}

impl ProfileArguments {
    /// Refuses flags about sets that are not measured.
    ///
    /// # Errors
    /// The first of these flags.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        let together = self.sharing.iter().any(|it| *it != SharingStrategy::Exclusive);
        let measures = |size: u64| together && self.set_sizes.contains(&size);
        let flags = [
            ("--pairs", self.pairs.is_some() && !measures(2), "no pairs are measured"),
            ("--triples", self.triples.is_some() && !measures(3), "no triples are measured"),
            ("--seed", self.seed.is_some() && !measures(2) && !measures(3), "no sample of sets is drawn"),
        ];
        match flags.into_iter().find(|(_, unused, _)| *unused) {
            Some((flag, _, why)) => Err(CommandError::invalid(format!(
                "{flag} has no effect, because {why}: add 2 or 3 to --set-sizes and time-sliced or mps to --sharing, or \
                 remove {flag}"
            ))),
            None => Ok(()),
        }
    }
}

/// Drawing a larger sample would take noticeable time, and measuring it days.
fn at_most_10_000() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(..=10_000)
}

/// Parses a duration other than zero.
fn positive_time(text: &str) -> Result<Duration, String> {
    match duration::parse_duration(text)? {
        Span::ZERO => Err("the time must be longer than zero: write for example 10s or 8m".to_owned()),
        span => Ok(span.into()),
    }
}
