//! Options that all training programs have.
//!
//! Clap checks them, so a wrong value ends the program with exit code 2 before anything has started.

use std::path::PathBuf;

use clap::{Args, value_parser};

use crate::job_context::JobContext;
use crate::process_group::ProcessGroup;

/// The environment variable from which candle takes the number of threads.
pub(crate) const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// A year: much larger values would overflow the clock.
const MAX_CHECKPOINT_SECONDS: u64 = 365 * 24 * 3600;

/// Options of a run that do not depend on the program.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// Seed of the initial weights and the order of the data; the same seed gives the same result
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Divide every step among the ranks that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe
    #[arg(long)]
    pub data_parallel: bool,

    /// CPU threads to use; more than one does not speed up such small networks
    #[arg(long, env = THREADS_VARIABLE, default_value_t = 1)]
    #[arg(value_parser = value_parser!(u16).range(1..=256))]
    pub threads: u16,

    /// Directory to save checkpoints in and resume from [default: no checkpoints]
    #[arg(long = "checkpoint", value_name = "DIR", env = "COHABIT_CHECKPOINT_DIR")]
    pub checkpoint_folder: Option<PathBuf>,

    /// Seconds between checkpoints
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = value_parser!(u64).range(1..=MAX_CHECKPOINT_SECONDS))]
    pub checkpoint_seconds: u64,
}

impl RunOptions {
    /// The ranks to train with. Only the first prints and reports.
    pub(crate) fn process_group(&self, job: &mut JobContext) -> anyhow::Result<ProcessGroup> {
        let group =
            if self.data_parallel { ProcessGroup::from_environment()? } else { ProcessGroup::alone() };
        if !group.is_first() {
            job.mute();
        }
        Ok(group)
    }
}

/// Parses a number above zero, for learning rates and temperatures.
pub(crate) fn positive_number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        Ok(_) | Err(_) => Err("expected a number above zero, such as 0.001".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_above_zero_are_accepted() {
        assert_eq!(positive_number("1e-3"), Ok(0.001));
        for wrong in ["0", "-1", "nan", "inf", "", "fast"] {
            assert!(positive_number(wrong).is_err(), "{wrong} was accepted");
        }
    }
}
