//! `profile`: measures the slowdown of workloads that share a real GPU and writes a table.
//!
//! The profiler of the worker measures. This command reads the workloads, asks before it uses the GPU, shows
//! the progress and prints the results. Start reading at [`run`].

mod arguments;
mod document;
mod progress;
mod summary;
mod workloads;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, Screen, current_command_line, output};
use cohabit_profiler::{
    BusyGpu, EarlyStop, ProfileError, ProfileOptions, ProfilePlan, ProfileReport, Profiler, TrialTiming,
};
use cohabit_types::{Span, counted};
use signal_hook::consts::{SIGINT, SIGTERM};

pub use self::arguments::ProfileArguments;
use self::progress::ProfileProgress;
#[doc(hidden)]
pub use self::workloads::parse_workloads;

/// Measures what the arguments ask for. `state` gives the directory of this machine's worker, creating it if
/// necessary.
///
/// # Errors
///
/// Bad workloads, a GPU that is missing or busy, a user who declines, and sets that could not be measured.
pub fn run(
    arguments: &ProfileArguments,
    nvml_library: Option<PathBuf>,
    state: impl FnOnce() -> Result<PathBuf, CommandError>,
) -> Result<ExitCode, CommandError> {
    arguments.check()?;
    let profiler = Profiler::prepare(options(arguments, nvml_library, state)?).map_err(failure)?;
    let gpu = format!("{} ({})", profiler.device().model, profiler.device().id);
    if profiler.left() > 0 {
        let estimate = Span::from(profiler.estimate());
        let table = arguments.out.display();
        let plan = format!(
            "{} to measure on {gpu}, which takes about {estimate}. Results are written to {table}",
            counted(profiler.left(), "set", "sets")
        );
        ask_consent(&plan, arguments)?;
    }
    let stop = stop_flag()?;
    let mut progress = ProfileProgress::new();
    let report = profiler.run(&mut progress, &stop).map_err(failure)?;
    progress.end();
    print_result(&report, &gpu, arguments)?;
    exit_code_of(&report, arguments)
}

/// The options of the profiler. The workloads are read first: `state` creates a directory, and only a good
/// file of workloads is a reason to.
fn options(
    arguments: &ProfileArguments,
    nvml_library: Option<PathBuf>,
    state: impl FnOnce() -> Result<PathBuf, CommandError>,
) -> Result<ProfileOptions, CommandError> {
    Ok(ProfileOptions {
        workloads: workloads::read(&arguments.workloads)?,
        comparison: ProfilePlan {
            sharing: arguments.sharing.clone(),
            sizes: arguments.set_sizes.iter().map(|size| *size as usize).collect(),
            pairs: arguments.pairs.unwrap_or(150) as usize,
            triples: arguments.triples.unwrap_or(30) as usize,
            seed: arguments.seed.unwrap_or(1),
        },
        pacing: TrialTiming { warm_up: arguments.warm_up.into(), steady: arguments.steady },
        max_time: arguments.max_time,
        table: arguments.out.clone(),
        gpu: arguments.gpu.clone(),
        busy: if arguments.force { BusyGpu::Accept } else { BusyGpu::Refuse },
        state: state()?,
        nvml_library,
        search_path: std::env::var("PATH").unwrap_or_default(),
        command: current_command_line(),
    })
}

/// Prints the plan and asks whether to start, unless --yes is given.
fn ask_consent(plan: &str, arguments: &ProfileArguments) -> Result<(), CommandError> {
    output::print_message(plan);
    if arguments.yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(CommandError::invalid(
            "stdin is not a terminal: give --yes to start without confirmation",
        ));
    }
    output::print_message("Other programs should not use the GPU meanwhile. Start? [y/N]");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    Err(CommandError::new(CommandErrorKind::Interrupted, "not confirmed: nothing was started"))
}

/// A flag that SIGINT and SIGTERM set from now on.
fn stop_flag() -> Result<Arc<AtomicBool>, CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|error| {
            CommandError::new(CommandErrorKind::InputOutput, format!("cannot handle signals: {error}"))
        })?;
    }
    Ok(stop)
}

fn print_result(report: &ProfileReport, gpu: &str, arguments: &ProfileArguments) -> Result<(), CommandError> {
    match arguments.display.output {
        OutputFormat::Table => output::print_text(&summary::by_sharing(report, Screen::of_stdout())),
        OutputFormat::Wide => output::print_text(&summary::by_member(report, Screen::of_stdout())),
        OutputFormat::Json => output::print_document(&document::document(report, gpu, &arguments.out)),
        OutputFormat::Quiet => output::print_text(&arguments.out.display().to_string()),
    }
}

/// The exit code. Sets that could not be measured are an error; reaching --max-time is not.
fn exit_code_of(report: &ProfileReport, arguments: &ProfileArguments) -> Result<ExitCode, CommandError> {
    let on = || {
        let left = counted(report.left, "set is", "sets are");
        format!("{left} left: run the same command again to continue")
    };
    match report.stopped {
        Some(EarlyStop::Interrupted) => {
            return Err(CommandError::new(CommandErrorKind::Interrupted, format!("interrupted; {}", on())));
        }
        Some(EarlyStop::TimeOver) => output::print_message(&format!("--max-time is reached; {}", on())),
        None => {}
    }
    if report.unmeasured.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(CommandError::new(
        CommandErrorKind::Impossible("not_measured"),
        format!(
            "{} could not be measured, for the reasons above and in {}.json: run the same command again to retry them",
            counted(report.unmeasured.len(), "set", "sets"),
            arguments.out.display()
        ),
    ))
}

fn failure(error: ProfileError) -> CommandError {
    let kind = match error {
        ProfileError::NoGpus(_) | ProfileError::NotThatGpu(_) => CommandErrorKind::NotFound,
        ProfileError::Busy { .. } | ProfileError::WorkerHere(_) => CommandErrorKind::TryLater,
        ProfileError::CannotShare { .. } => CommandErrorKind::Impossible("cannot_share"),
        ProfileError::Table { .. } | ProfileError::OtherWorkload { .. } => {
            CommandErrorKind::Impossible("other_table")
        }
        ProfileError::NotAlone(_) => CommandErrorKind::Usage,
        ProfileError::Gpu(_) | ProfileError::Mps(_) | ProfileError::NotGivenBack { .. } => {
            CommandErrorKind::Impossible("gpu_trouble")
        }
        ProfileError::Changed(_) | ProfileError::Machine(_) | ProfileError::File(_) => {
            CommandErrorKind::InputOutput
        }
    };
    CommandError::from_error(kind, &error)
}
