//! The options that every training program has, and the checks that they share.
//!
//! Clap does the checking, so a wrong value ends the program with exit code 2 before anything has started.

use std::path::PathBuf;

use clap::{Args, value_parser};

use super::job_context::JobContext;
use super::process_group::ProcessGroup;

/// Where candle looks for the number of threads.
pub(crate) const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// A year; far beyond it the clock could not be added to.
const MAX_CHECKPOINT_SECONDS: u64 = 365 * 24 * 3600;

/// How a program runs, whatever it trains.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// Decides the first weights and the order of the data: the same seed gives the same training
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Train together with the other ranks of a gang, each on its part of every step; see RANK, WORLD_SIZE,
    /// MASTER_ADDR and MASTER_PORT
    #[arg(long)]
    pub data_parallel: bool,

    /// Processor threads to use; for networks this small one is as fast as many
    #[arg(long, env = THREADS_VARIABLE, default_value_t = 1)]
    #[arg(value_parser = value_parser!(u16).range(1..=256))]
    pub threads: u16,

    /// Folder to save checkpoints in and to resume from; without it nothing is saved
    #[arg(long = "checkpoint", value_name = "DIR", env = "COHABIT_CHECKPOINT_DIR")]
    pub checkpoint_folder: Option<PathBuf>,

    /// Save a checkpoint each time that this many seconds have gone by
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = value_parser!(u64).range(1..=MAX_CHECKPOINT_SECONDS))]
    pub checkpoint_seconds: u64,
}

impl RunOptions {
    /// The ranks to train with; all but the first leave speaking to the first.
    pub(crate) fn team(&self, job: &mut JobContext) -> anyhow::Result<ProcessGroup> {
        let team = if self.data_parallel { ProcessGroup::from_environment()? } else { ProcessGroup::alone() };
        if !team.is_first() {
            job.mute();
        }
        Ok(team)
    }
}

/// Reads a number above zero, for learning rates and temperatures.
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
    fn only_finite_numbers_above_zero_are_taken() {
        assert_eq!(positive_number("1e-3"), Ok(0.001));
        for wrong in ["0", "-1", "nan", "inf", "", "fast"] {
            assert!(positive_number(wrong).is_err(), "{wrong} was taken");
        }
    }
}
