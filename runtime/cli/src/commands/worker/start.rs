//! `worker start`: runs a worker in the foreground until it is told to end. Ranks outlive it.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr as _;

use cohabit_client::proto::Links;
use cohabit_client::{Error as ClientError, Token};
use cohabit_worker::{DeviceSpec, LogLimits, WorkerDaemon, WorkerError, WorkerOptions};

use crate::arguments::{DeviceArguments, WorkerStartArguments};
use crate::config::{Key, Origin, Settings, Written};
use crate::connect::{path_flag, read_token, state_folder};
use crate::daemon::{self, EndSignals};
use crate::failure::{Failure, Trouble};
use crate::output;
use crate::values;

/// The worker's folder within a state folder that is not its own.
pub(in crate::commands) const WORKER_FOLDER: &str = "worker";

pub(super) fn start(arguments: WorkerStartArguments) -> Result<ExitCode, Failure> {
    let settings = Settings::with_flags(flags(&arguments)?)?;
    daemon::start_logging(&settings)?;
    let (head, token) = join(&settings)?;
    let options = options(&settings, head, token, folder(&settings)?)?;
    daemon::run(serve(options))
}

/// The folder of the flag; else one within the state folder, which is the head's if one runs here.
fn folder(settings: &Settings) -> Result<PathBuf, Failure> {
    match settings.find(Key::State) {
        Some(flag) if *flag.origin == Origin::Flag => Ok(flag.path()),
        Some(_) | None => Ok(state_folder(settings)?.join(WORKER_FOLDER)),
    }
}

async fn serve(options: WorkerOptions) -> Result<(), Failure> {
    let mut signals = EndSignals::watch()?;
    let head = options.head.clone();
    let mut worker = WorkerDaemon::start(options).await.map_err(failure)?;
    tokio::select! {
        () = signals.come() => return worker.stop().await.map_err(failure),
        joined = worker.joined() => joined.map_err(failure)?,
    }
    output::data(&format!("ready: {} joined {head}", worker.name()))?;
    tokio::select! {
        () = signals.come() => {}
        error = worker.failed() => return Err(failure(error)),
    }
    worker.stop().await.map_err(failure)
}

/// The flags, as settings.
fn flags(arguments: &WorkerStartArguments) -> Result<Written, Failure> {
    let mut written = daemon::logging_flags(&arguments.logging);
    written.extend(path_flag(Key::State, arguments.state.as_deref())?);
    written.extend(path_flag(Key::TokenFile, arguments.token_file.as_deref())?);
    written.extend(arguments.join.clone().map(|head| (Key::Join, head)));
    written.extend(device_flags(&arguments.devices));
    Ok(written)
}

/// The flags that say what is offered, as settings.
pub(in crate::commands) fn device_flags(arguments: &DeviceArguments) -> Written {
    let texts = [
        (Key::Devices, &arguments.devices),
        (Key::Network, &arguments.network),
        (Key::Interconnect, &arguments.interconnect),
        (Key::Name, &arguments.name),
        (Key::OrphanGrace, &arguments.orphan_grace),
    ];
    texts.into_iter().filter_map(|(key, text)| Some((key, text.clone()?))).collect()
}

/// Which cluster to join, and by what right.
fn join(settings: &Settings) -> Result<(String, Token), Failure> {
    let head = settings.first_of(&[Key::Join, Key::Head]).ok_or_else(|| {
        Failure::configuration(
            "no head to join is named: give --join HOST:PORT, as the head's ready line says",
        )
    })?;
    let token_file = settings.path(Key::TokenFile).ok_or_else(|| {
        Failure::configuration(
            "no token to join with: give --token-file with a copy of the head's worker.token",
        )
    })?;
    Ok((head.text.to_owned(), read_token(&token_file)?))
}

/// The settings as the worker takes them.
pub(in crate::commands) fn options(
    settings: &Settings,
    head: String,
    token: Token,
    state: PathBuf,
) -> Result<WorkerOptions, Failure> {
    let program = env::current_exe().map_err(|error| {
        Failure::new(Trouble::InputOutput, format!("this program cannot tell where it lies: {error}"))
    })?;
    let usual = WorkerOptions::new(head, token, state, program);
    let log_cap = settings.checked(Key::LogLimit, str::parse)?;
    Ok(WorkerOptions {
        name: settings.find(Key::Name).map(|setting| setting.text.to_owned()),
        devices: settings.checked(Key::Devices, DeviceSpec::from_str)?.unwrap_or(usual.devices),
        links: Links {
            network: settings.checked(Key::Network, str::parse)?,
            interconnect: settings.checked(Key::Interconnect, str::parse)?,
        },
        orphan_grace: settings.checked(Key::OrphanGrace, values::span)?.unwrap_or(usual.orphan_grace),
        log: log_cap.map_or(usual.log, |cap| LogLimits { cap, segment: usual.log.segment.min(cap) }),
        log_retention: settings.checked(Key::LogRetention, values::span)?.unwrap_or(usual.log_retention),
        ..usual
    })
}

/// What keeps a worker from starting, or ends it.
pub(in crate::commands) fn failure(error: WorkerError) -> Failure {
    let trouble = match error {
        WorkerError::Link(refused) => return ClientError::from(refused).into(),
        WorkerError::StateInUse(_) => Trouble::Configuration,
        WorkerError::File(_) | WorkerError::Machine(_) => Trouble::InputOutput,
        WorkerError::Failed(_) | WorkerError::Ended(_) => Trouble::Internal,
    };
    Failure::from_error(trouble, &error)
}
