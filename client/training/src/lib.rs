//! Small training programs for trying Cohabit, which need no GPU and no download.
//!
//! [`TrainingProgram`] has a clap subcommand for each program, and [`run`] runs one. The hidden command
//! `cohabit train` and the binaries of `examples` call it. A program reports its progress to
//! `$COHABIT_PROGRESS`, saves checkpoints to `$COHABIT_CHECKPOINT_DIR`, and reacts to SIGUSR1 and SIGTERM. A
//! training that is resumed from a checkpoint ends with the same weights, bit for bit, as an uninterrupted
//! one. Nothing here talks to a cluster: a program learns everything from environment variables and signals,
//! like any program of a user.
//!
//! [`DigitsModel`] is the network of `digits` with its images, for programs that train it in their own way.
//!
//! Start reading at `training_loop.rs`. To see how a program can report progress, save checkpoints and handle
//! signals, read `progress.rs`, `checkpoint.rs` and `stop_signals.rs`.

mod adam;
mod charlm;
mod checkpoint;
mod digits;
mod gradients;
mod job_context;
mod options;
mod parameters;
mod process_group;
mod progress;
mod random;
mod stop_signals;
mod training_loop;

use std::env;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Subcommand;

pub use self::charlm::CharlmOptions;
pub use self::digits::{DigitsModel, DigitsOptions};
pub use self::options::RunOptions;

use self::checkpoint::CheckpointRefused;
use self::job_context::JobContext;
use self::training_loop::TrainingEnd;

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
/// The exit code that shells report for a program killed by SIGTERM: 128 + 15.
const EXIT_TERMINATED: u8 = 143;

/// The training programs as subcommands.
#[derive(Clone, Debug, Subcommand)]
pub enum TrainingProgram {
    /// Train a small network on 1,797 handwritten digits
    Digits(DigitsOptions),
    /// Train a small language model on a few pages of English text, character by character
    Charlm(CharlmOptions),
}

impl TrainingProgram {
    fn run_options(&self) -> &RunOptions {
        match self {
            Self::Digits(options) => &options.run,
            Self::Charlm(options) => &options.run,
        }
    }
}

/// Trains until the end or until SIGTERM, prints on stdout, and returns the exit code for the process: 0
/// trained, 1 failed, 2 options that differ from those of the checkpoint, 143 stopped by SIGTERM.
///
/// Call it before starting anything else: the process may execute itself again with the same arguments.
pub fn run(program: &TrainingProgram) -> ExitCode {
    match train(program) {
        Ok(TrainingEnd::Finished) => ExitCode::SUCCESS,
        Ok(TrainingEnd::Terminated) => EXIT_TERMINATED.into(),
        Err(error) => {
            job_context::warn(&format!("error: {error:#}"));
            if error.is::<CheckpointRefused>() { EXIT_USAGE.into() } else { EXIT_FAILED.into() }
        }
    }
}

fn train(program: &TrainingProgram) -> Result<TrainingEnd> {
    if let Err(error) = use_threads(program.run_options().threads) {
        job_context::warn(&format!(
            "warning: using every core, because this program cannot restart itself: {error}"
        ));
    }
    let mut job = JobContext::from_environment()?;
    match program {
        TrainingProgram::Digits(options) => digits::train(options, &mut job),
        TrainingProgram::Charlm(options) => charlm::train(options, &mut job),
    }
}

/// Makes candle use this many threads, by executing this process again if necessary. The process keeps its
/// id.
///
/// Candle takes the number only from the environment, which a running process cannot change safely. By
/// default it uses every core, and its threads spin if no core is free.
fn use_threads(threads: u16) -> io::Result<()> {
    let threads = threads.to_string();
    if env::var(options::THREADS_VARIABLE).is_ok_and(|present| present == threads) {
        return Ok(());
    }
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_default();
    let mut same = Command::new(env::current_exe()?);
    Err(same.arg0(name).args(arguments).env(options::THREADS_VARIABLE, threads).exec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_are_valid_subcommands() {
        TrainingProgram::augment_subcommands(clap::Command::new("train")).debug_assert();
    }
}
