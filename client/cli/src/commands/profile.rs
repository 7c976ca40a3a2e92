//! `profile`: measures workloads alone and together on a real GPU, and fills a table with what sharing costs.
//!
//! The measuring is the worker's; this command reads what is to be compared, asks before it takes the GPU,
//! shows how far it is, and tells what came out.

mod bar;
mod document;
mod summary;
mod workloads;

#[cfg(feature = "fuzzing")]
pub(crate) use workloads::understood as parse_workloads;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cohabit_client::proto::Span;
use cohabit_profiler::{
    BusyGpu, EarlyStop, ProfileError, ProfileOptions, ProfilePlan, ProfileReport, Profiler, TrialTiming,
};
use tokio::runtime::{Builder, Runtime};

use self::bar::ProfileProgress;
use super::current_command_line;
use super::worker::start::folder;
use crate::arguments::{OutputFormat, ProfileArguments};
use crate::config::{RawSettings, SettingKey, Settings};
use crate::connect::path_flag;
use crate::daemon::ShutdownSignals;
use crate::failure::{CommandError, CommandErrorKind};
use crate::output::{self, Screen};

pub(super) fn profile(arguments: &ProfileArguments) -> Result<ExitCode, CommandError> {
    let profiler = Profiler::prepare(options(arguments)?).map_err(failure)?;
    let gpu = format!("{} ({})", profiler.device().model, profiler.device().id);
    if profiler.left() > 0 {
        let estimate = Span::from(profiler.estimate());
        let table = arguments.out.display();
        let plan =
            format!("{} sets to measure on {gpu}, about {estimate}; rows go to {table}", profiler.left());
        consent(&plan, arguments)?;
    }
    let (asked, _signals) = end_on_signals()?;
    let mut bar = ProfileProgress::new();
    let ending = profiler.run(&mut bar, &asked).map_err(failure)?;
    bar.end();
    tell(&ending, &gpu, arguments)?;
    verdict(&ending, arguments)
}

/// What was asked for, with what the settings add.
fn options(arguments: &ProfileArguments) -> Result<ProfileOptions, CommandError> {
    let mut flags = RawSettings::new();
    flags.extend(path_flag(SettingKey::State, arguments.state.as_deref())?);
    flags.extend(path_flag(SettingKey::NvmlLibrary, arguments.nvml_library.as_deref())?);
    let settings = Settings::with_flags(flags)?;
    Ok(ProfileOptions {
        workloads: workloads::read(&arguments.workloads)?,
        comparison: ProfilePlan {
            sharing: arguments.sharing.clone(),
            sizes: arguments.set_sizes.iter().map(|size| *size as usize).collect(),
            pairs: arguments.pairs as usize,
            triples: arguments.triples as usize,
            seed: arguments.seed,
        },
        pacing: TrialTiming { warm_up: arguments.warm_up.into(), steady: arguments.steady },
        max_time: arguments.max_time,
        table: arguments.out.clone(),
        gpu: arguments.gpu.clone(),
        busy: if arguments.force { BusyGpu::Accept } else { BusyGpu::Refuse },
        state: folder(&settings)?,
        nvml_library: settings.path(SettingKey::NvmlLibrary),
        search_path: std::env::var("PATH").unwrap_or_default(),
        command: current_command_line(),
    })
}

/// Says what is about to happen to the GPU, and asks unless it was said that all is well.
fn consent(plan: &str, arguments: &ProfileArguments) -> Result<(), CommandError> {
    output::message(plan);
    if arguments.yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(CommandError::invalid(
            "nobody is there to be asked: start without a question with --yes",
        ));
    }
    output::message("The GPU should have nothing else to do meanwhile. Start? [y/N]");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    Err(CommandError::new(CommandErrorKind::Interrupted, "nothing was started"))
}

/// A mark that SIGINT and SIGTERM set from now on, and what watches for them.
fn end_on_signals() -> Result<(Arc<AtomicBool>, Runtime), CommandError> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("the system gives no threads: {error}"))
    })?;
    let asked = Arc::new(AtomicBool::new(false));
    let mark = Arc::clone(&asked);
    let mut signals = runtime.block_on(async { ShutdownSignals::watch() })?;
    runtime.spawn(async move {
        signals.wait().await;
        mark.store(true, Ordering::Relaxed);
    });
    Ok((asked, runtime))
}

fn tell(ending: &ProfileReport, gpu: &str, arguments: &ProfileArguments) -> Result<(), CommandError> {
    match arguments.display.output {
        OutputFormat::Table => output::data(&summary::by_sharing(ending, Screen::of_stdout())),
        OutputFormat::Wide => output::data(&summary::by_member(ending, Screen::of_stdout())),
        OutputFormat::Json => output::document(&document::document(ending, gpu, &arguments.out)),
        OutputFormat::Quiet => output::data(&arguments.out.display().to_string()),
    }
}

/// How the command ends: sets that say nothing are a failure, time that is over is none.
fn verdict(ending: &ProfileReport, arguments: &ProfileArguments) -> Result<ExitCode, CommandError> {
    let on = || format!("{} sets are left: the same command goes on with them", ending.left);
    match ending.stopped {
        Some(EarlyStop::Asked) => {
            return Err(CommandError::new(CommandErrorKind::Interrupted, format!("interrupted; {}", on())));
        }
        Some(EarlyStop::TimeOver) => output::message(&format!("the time is over; {}", on())),
        None => {}
    }
    if ending.unmeasured.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(CommandError::new(
        CommandErrorKind::Impossible("not_measured"),
        format!(
            "{} sets could not be measured, for the reasons above and in {}.json; the same command tries them again",
            ending.unmeasured.len(),
            arguments.out.display()
        ),
    ))
}

fn failure(error: ProfileError) -> CommandError {
    let trouble = match error {
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
    CommandError::from_error(trouble, &error)
}
