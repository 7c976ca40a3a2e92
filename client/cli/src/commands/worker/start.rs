//! `worker start`: runs a worker in the foreground until it is told to end. Ranks outlive it.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr as _;

use cohabit_client::proto::{Links, SharingLimits};
use cohabit_client::{Error as ClientError, Token};
use cohabit_worker_daemon::{
    DeviceSpec, LogLimits, MpsUse, RootJobs, WorkerDaemon, WorkerError, WorkerOptions,
};

use nix::unistd::geteuid;

use crate::arguments::{DeviceArguments, WorkerStartArguments};
use crate::config::{Key, Origin, Settings, Written};
use crate::connect::{path_flag, read_token, state_folder};
use crate::daemon::{self, EndSignals};
use crate::failure::{Failure, Trouble};
use crate::output;
use crate::values;

/// The worker's folder within a state folder that is not its own.
pub(in crate::commands) const WORKER_FOLDER: &str = "worker";

pub(super) fn start(arguments: &WorkerStartArguments) -> Result<ExitCode, Failure> {
    let settings = Settings::with_flags(flags(arguments)?)?;
    daemon::start_logging(&settings)?;
    let (head, token) = join(&settings)?;
    let options = options(&settings, head, token, folder(&settings)?)?;
    daemon::run(serve(options))
}

/// The folder of the flag; else one within the state folder, which is the head's if one runs here.
pub(in crate::commands) fn folder(settings: &Settings) -> Result<PathBuf, Failure> {
    match settings.find(Key::State) {
        Some(flag) if *flag.origin == Origin::Flag => Ok(flag.path()),
        Some(_) | None => within(&state_folder(settings)?),
    }
}

/// The worker's folder within this one, which is made unless it is there. Where jobs run as the accounts of
/// their users, these have to pass through it.
pub(in crate::commands) fn within(state: &Path) -> Result<PathBuf, Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(state);
    let opened = made.and_then(|()| match geteuid().is_root() {
        true => fs::set_permissions(state, Permissions::from_mode(0o711)),
        false => Ok(()),
    });
    opened.map_err(|error| {
        let message = format!("the state folder '{}' cannot be used: {error}", state.display());
        Failure::new(Trouble::InputOutput, message)
    })?;
    Ok(state.join(WORKER_FOLDER))
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
    written.extend(device_flags(&arguments.devices)?);
    Ok(written)
}

/// The flags that say what is offered, as settings.
pub(in crate::commands) fn device_flags(arguments: &DeviceArguments) -> Result<Written, Failure> {
    let texts = [
        (Key::Devices, &arguments.devices),
        (Key::MaxSharing, &arguments.max_sharing),
        (Key::GpuReserve, &arguments.gpu_reserve),
        (Key::Mps, &arguments.mps),
        (Key::Network, &arguments.network),
        (Key::Interconnect, &arguments.interconnect),
        (Key::Name, &arguments.name),
        (Key::OrphanGrace, &arguments.orphan_grace),
    ];
    let mut written: Written =
        texts.into_iter().filter_map(|(key, text)| Some((key, text.clone()?))).collect();
    written.extend(arguments.no_root_jobs.then(|| (Key::NoRootJobs, true.to_string())));
    written.extend(path_flag(Key::NvmlLibrary, arguments.nvml_library.as_deref())?);
    Ok(written)
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
        sharing: sharing(settings)?,
        mps: settings.checked(Key::Mps, mps_use)?.unwrap_or(usual.mps),
        nvml_library: settings.path(Key::NvmlLibrary),
        root_jobs: match settings.checked(Key::NoRootJobs, str::parse::<bool>)? {
            Some(true) => RootJobs::Never,
            Some(false) | None => usual.root_jobs,
        },
        orphan_grace: settings.checked(Key::OrphanGrace, values::span)?.unwrap_or(usual.orphan_grace),
        log: log_cap.map_or(usual.log, |cap| LogLimits { cap, segment: usual.log.segment.min(cap) }),
        log_retention: settings.checked(Key::LogRetention, values::span)?.unwrap_or(usual.log_retention),
        ..usual
    })
}

/// How far its GPUs may be shared.
fn sharing(settings: &Settings) -> Result<SharingLimits, Failure> {
    let usual = SharingLimits::default();
    let max_ranks = settings.checked(Key::MaxSharing, |text| match text.parse() {
        Ok(count) if count >= 1 => Ok(count),
        Ok(_) | Err(_) => Err(format!("'{text}' is no number of ranks: write 1 (nobody shares) or more")),
    })?;
    Ok(SharingLimits {
        max_ranks: max_ranks.unwrap_or(usual.max_ranks),
        reserve: settings.checked(Key::GpuReserve, str::parse)?.unwrap_or(usual.reserve),
    })
}

fn mps_use(text: &str) -> Result<MpsUse, String> {
    match text {
        "auto" => Ok(MpsUse::Auto),
        "off" => Ok(MpsUse::Off),
        _ => Err(format!("'{text}' does not say when MPS is used: write auto or off")),
    }
}

/// What keeps a worker from starting, or ends it.
pub(in crate::commands) fn failure(error: WorkerError) -> Failure {
    let trouble = match error {
        WorkerError::Link(refused) => return ClientError::from(refused).into(),
        WorkerError::StateInUse(_) => Trouble::Configuration,
        WorkerError::File(_) | WorkerError::Machine(_) | WorkerError::Mps(_) => Trouble::InputOutput,
        WorkerError::Failed(_) | WorkerError::Ended(_) => Trouble::Internal,
    };
    Failure::from_error(trouble, &error)
}

#[cfg(test)]
mod tests {
    use cohabit_client::proto::Bytes;

    use super::*;

    fn options_of(written: &[(Key, &str)]) -> Result<WorkerOptions, Failure> {
        let written = written.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
        let token = "cohabit1.".to_owned() + &"0".repeat(64) + "." + &"0".repeat(64);
        let token = token.parse().expect("it has the form of a token");
        options(&Settings::with_flags(written)?, "head:1".into(), token, "/state".into())
    }

    #[test]
    fn settings_of_sharing_become_options() {
        let usual = options_of(&[]).unwrap();
        assert_eq!(
            (usual.sharing, usual.mps, usual.nvml_library),
            (SharingLimits::default(), MpsUse::Auto, None)
        );
        let options = options_of(&[
            (Key::MaxSharing, "2"),
            (Key::GpuReserve, "3G"),
            (Key::Mps, "off"),
            (Key::NvmlLibrary, "/lib/nvml.so"),
        ])
        .unwrap();
        assert_eq!(options.sharing, SharingLimits { max_ranks: 2, reserve: Bytes(3 << 30) });
        assert_eq!((options.mps, options.nvml_library), (MpsUse::Off, Some("/lib/nvml.so".into())));
    }

    #[test]
    fn wrong_settings_of_sharing_are_refused_with_how_to_write_them() {
        for (key, text, advice) in [
            (
                Key::MaxSharing,
                "0",
                "--max-sharing: '0' is no number of ranks: write 1 (nobody shares) or more",
            ),
            (Key::MaxSharing, "many", "write 1"),
            (Key::GpuReserve, "much", "--gpu-reserve: "),
            (Key::Mps, "always", "--mps: 'always' does not say when MPS is used: write auto or off"),
        ] {
            let message = options_of(&[(key, text)]).unwrap_err().message;
            assert!(message.contains(advice), "{message}");
        }
    }
}
