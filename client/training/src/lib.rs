//! Training programs that behave well in a cluster, as functions that another program can embed.
//!
//! [`TrainingProgram`] is a clap subcommand for each program and [`run`] is the one door. Every program reports its
//! progress to `$COHABIT_PROGRESS`, saves checkpoints to `$COHABIT_CHECKPOINT_DIR`, answers SIGUSR1 and
//! SIGTERM, and goes on from its last checkpoint to the same weights, bit for bit, as if it had never been
//! interrupted. [`progress`], [`checkpoint`] and [`stop_signals`] are what to copy into a program of one's
//! own.

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
pub use self::digits::DigitsOptions;
pub use self::options::RunOptions;

use self::checkpoint::CheckpointRefused;
use self::job_context::JobContext;
use self::training_loop::TrainingEnd;

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
/// What a shell reports for a program ended by SIGTERM: 128 + 15.
const EXIT_TERMINATED: u8 = 143;

/// The training programs, as subcommands with their options.
#[derive(Clone, Debug, Subcommand)]
pub enum TrainingProgram {
    /// Train a small network on 1,797 handwritten digits
    Digits(DigitsOptions),
    /// Train a small language model on a few pages of English, letter by letter
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

/// Trains to the end or to SIGTERM, printing on stdout, and returns the exit code that the process should
/// have: 0 trained, 1 failed, 2 wrong options (another checkpoint's among them), 143 ended by SIGTERM.
///
/// Call it before anything else was started: the process may start itself again with the same arguments.
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
            "warning: using every core, since this program cannot start again: {error}"
        ));
    }
    let mut job = JobContext::from_environment()?;
    match program {
        TrainingProgram::Digits(options) => digits::train(options, &mut job),
        TrainingProgram::Charlm(options) => charlm::train(options, &mut job),
    }
}

/// Sees to it that candle uses this many threads, by starting this very process again if need be.
///
/// Candle takes the number from the environment alone, which no running process can change safely; left to
/// itself it takes every core, and its threads spin where they find none free. The process keeps its id.
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
    fn the_programs_are_sound_as_subcommands_of_another() {
        TrainingProgram::augment_subcommands(clap::Command::new("train")).debug_assert();
    }
}
