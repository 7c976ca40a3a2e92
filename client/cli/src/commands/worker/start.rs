//! `worker start`: runs a worker in the foreground until it receives SIGTERM or SIGINT. Ranks outlive it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr as _;

use cohabit_client::types::{LinkBandwidths, SharingLimits};
use cohabit_client::{Error as ClientError, Token};
use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_worker_daemon::{
    AccountOptions, DeviceIds, DeviceSpec, LogLimits, MpsMode, OwnAccount, RetentionOptions, RootJobs,
    WorkerDaemon, WorkerError, WorkerOptions,
};

use crate::arguments::{DeviceArguments, WorkerStartArguments};
use crate::config::{RawSettings, SettingKey, Settings, read_settings};
use crate::daemon::{self, ShutdownSignals};
use crate::endpoint::{path_flag, read_token};
use crate::values;
use crate::worker_directory::worker_directory;

pub(super) fn start(arguments: &WorkerStartArguments) -> Result<ExitCode, CommandError> {
    let settings = read_settings(flags(arguments)?)?;
    daemon::start_logging(&settings)?;
    let (head, token) = join(&settings)?;
    let options = options(&settings, head, token, worker_directory(&settings)?)?;
    daemon::run(serve(options))
}

async fn serve(options: WorkerOptions) -> Result<(), CommandError> {
    let mut signals = ShutdownSignals::watch()?;
    let head = options.head.clone();
    let mut worker = WorkerDaemon::start(options).await.map_err(failure)?;
    tokio::select! {
        () = signals.wait() => return worker.stop().await.map_err(failure),
        joined = worker.joined() => joined.map_err(failure)?,
    }
    daemon::print_ready(&format!("ready: {} joined {head}", worker.name())).await?;
    tokio::select! {
        () = signals.wait() => {}
        error = worker.failed() => return Err(failure(error)),
    }
    worker.stop().await.map_err(failure)
}

/// The flags as settings.
fn flags(arguments: &WorkerStartArguments) -> Result<RawSettings, CommandError> {
    let mut written = daemon::logging_flags(&arguments.logging);
    written.extend(path_flag(SettingKey::State, arguments.state.as_deref())?);
    written.extend(path_flag(SettingKey::TokenFile, arguments.token_file.as_deref())?);
    written.extend(arguments.join.clone().map(|head| (SettingKey::Join, head)));
    written.extend(device_flags(&arguments.devices)?);
    Ok(written)
}

/// The flags on devices as settings.
pub(crate) fn device_flags(arguments: &DeviceArguments) -> Result<RawSettings, CommandError> {
    let texts = [
        (SettingKey::Devices, &arguments.devices),
        (SettingKey::MaxSharing, &arguments.max_sharing),
        (SettingKey::MaxJobs, &arguments.max_jobs),
        (SettingKey::GpuReserve, &arguments.gpu_reserve),
        (SettingKey::Mps, &arguments.mps),
        (SettingKey::DeviceIds, &arguments.device_ids),
        (SettingKey::Network, &arguments.network),
        (SettingKey::Interconnect, &arguments.interconnect),
        (SettingKey::Name, &arguments.name),
        (SettingKey::MinUid, &arguments.min_uid),
        (SettingKey::OrphanGrace, &arguments.orphan_grace),
    ];
    let mut written: RawSettings =
        texts.into_iter().filter_map(|(key, text)| Some((key, text.clone()?))).collect();
    written.extend(arguments.no_root_jobs.then(|| (SettingKey::NoRootJobs, true.to_string())));
    written
        .extend(arguments.allow_shared_account.then(|| (SettingKey::AllowSharedAccount, true.to_string())));
    written
        .extend(arguments.no_application_ports.then(|| (SettingKey::NoApplicationPorts, true.to_string())));
    written.extend(path_flag(SettingKey::NvmlLibrary, arguments.nvml_library.as_deref())?);
    Ok(written)
}

/// The head to join and the token.
fn join(settings: &Settings) -> Result<(String, Token), CommandError> {
    let head = settings.first_of(&[SettingKey::Join, SettingKey::Head]).ok_or_else(|| {
        CommandError::configuration(
            "no head to join: give --join HOST:PORT, as in the ready line of the head",
        )
    })?;
    let token_file = settings.path(SettingKey::TokenFile).ok_or_else(|| {
        CommandError::configuration(
            "no token to join with: give --token-file with a copy of the file worker.token of the head",
        )
    })?;
    Ok((head.text.to_owned(), read_token(&token_file)?))
}

/// The options of the worker.
pub(crate) fn options(
    settings: &Settings,
    head: String,
    token: Token,
    state: PathBuf,
) -> Result<WorkerOptions, CommandError> {
    let usual = WorkerOptions::new(head, token, state);
    let log_cap = settings.checked(SettingKey::LogLimit, str::parse)?;
    Ok(WorkerOptions {
        name: settings.find(SettingKey::Name).map(|setting| setting.text.to_owned()),
        devices: settings.checked(SettingKey::Devices, DeviceSpec::from_str)?.unwrap_or(usual.devices),
        links: LinkBandwidths {
            network: settings.checked(SettingKey::Network, str::parse)?,
            interconnect: settings.checked(SettingKey::Interconnect, str::parse)?,
        },
        sharing: sharing(settings)?,
        max_jobs: settings.checked(SettingKey::MaxJobs, max_jobs)?,
        application_ports: settings.checked(SettingKey::NoApplicationPorts, str::parse)? != Some(true),
        mps: settings.checked(SettingKey::Mps, mps_mode)?.unwrap_or(usual.mps),
        device_ids: settings.checked(SettingKey::DeviceIds, device_ids)?.unwrap_or(usual.device_ids),
        nvml_library: settings.path(SettingKey::NvmlLibrary),
        accounts: accounts(settings)?,
        orphan_grace: settings
            .checked(SettingKey::OrphanGrace, values::parse_duration)?
            .unwrap_or(usual.orphan_grace),
        log: log_cap.map_or(usual.log, |cap| LogLimits { cap, segment: usual.log.segment.min(cap) }),
        retention: retention(settings)?,
        ..usual
    })
}

/// How much of what ended jobs leave is kept.
fn retention(settings: &Settings) -> Result<RetentionOptions, CommandError> {
    let usual = RetentionOptions::default();
    let ranks = settings.checked(SettingKey::LogRanks, |text| {
        text.parse().map_err(|_| format!("'{text}' is not a number of ranks: write a number such as 10000"))
    })?;
    Ok(RetentionOptions {
        age: settings.checked(SettingKey::LogRetention, values::parse_duration)?.unwrap_or(usual.age),
        bytes: settings.checked(SettingKey::LogTotal, str::parse)?,
        ranks,
        ..usual
    })
}

/// The accounts that jobs run as.
fn accounts(settings: &Settings) -> Result<AccountOptions, CommandError> {
    let usual = AccountOptions::default();
    let min_uid = settings.checked(SettingKey::MinUid, |text| match text.parse() {
        Ok(uid) if uid >= 1 => Ok(uid),
        Ok(_) | Err(_) => Err(format!("'{text}' is not a user id above 0: write a number such as 1000")),
    })?;
    Ok(AccountOptions {
        root_jobs: match settings.checked(SettingKey::NoRootJobs, str::parse::<bool>)? {
            Some(true) => RootJobs::Never,
            Some(false) | None => usual.root_jobs,
        },
        min_uid: min_uid.unwrap_or(usual.min_uid),
        own_account: match settings.checked(SettingKey::AllowSharedAccount, str::parse::<bool>)? {
            Some(true) => OwnAccount::Shared,
            Some(false) | None => usual.own_account,
        },
    })
}

/// The limits of sharing.
fn sharing(settings: &Settings) -> Result<SharingLimits, CommandError> {
    let usual = SharingLimits::default();
    let max_ranks = settings.checked(SettingKey::MaxSharing, |text| match text.parse() {
        Ok(count) if count >= 1 => Ok(count),
        Ok(_) | Err(_) => Err(format!("'{text}' is not a number of ranks: write 1 (no sharing) or more")),
    })?;
    Ok(SharingLimits {
        max_ranks: max_ranks.unwrap_or(usual.max_ranks),
        reserve: settings.checked(SettingKey::GpuReserve, str::parse)?.unwrap_or(usual.reserve),
    })
}

fn max_jobs(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(count) if count >= 1 => Ok(count),
        Ok(_) | Err(_) => Err(format!("'{text}' is not a number of jobs: write 1 or more")),
    }
}

fn mps_mode(text: &str) -> Result<MpsMode, String> {
    match text {
        "auto" => Ok(MpsMode::Auto),
        "off" => Ok(MpsMode::Off),
        _ => Err(format!("'{text}' is not a mode of MPS: write auto or off")),
    }
}

fn device_ids(text: &str) -> Result<DeviceIds, String> {
    match text {
        "auto" => Ok(DeviceIds::Auto),
        "uuid" => Ok(DeviceIds::Uuid),
        "index" => Ok(DeviceIds::Index),
        _ => Err(format!("'{text}' is not a form of device ids: write auto, uuid or index")),
    }
}

/// The error of a worker that cannot start or has failed.
pub(crate) fn failure(error: WorkerError) -> CommandError {
    let kind = match error {
        WorkerError::Link(refused) => return ClientError::from(refused).into(),
        WorkerError::StateInUse(_) => CommandErrorKind::Configuration,
        WorkerError::Store(_) | WorkerError::File(_) | WorkerError::Machine(_) | WorkerError::Mps(_) => {
            CommandErrorKind::InputOutput
        }
        WorkerError::Failed(_) | WorkerError::Ended(_) => CommandErrorKind::Internal,
    };
    CommandError::from_error(kind, &error)
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{Bytes, Span};

    use super::*;

    fn options_of(written: &[(SettingKey, &str)]) -> Result<WorkerOptions, CommandError> {
        let written = written.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
        let token = "cohabit1.".to_owned() + &"0".repeat(64) + "." + &"0".repeat(64);
        let token = token.parse().expect("it has the form of a token");
        options(&read_settings(written)?, "head:1".into(), token, "/state".into())
    }

    #[test]
    fn settings_of_sharing_become_options() {
        let usual = options_of(&[]).unwrap();
        assert_eq!(
            (usual.sharing, usual.mps, usual.nvml_library),
            (SharingLimits::default(), MpsMode::Auto, None)
        );
        let options = options_of(&[
            (SettingKey::MaxSharing, "2"),
            (SettingKey::GpuReserve, "3G"),
            (SettingKey::Mps, "off"),
            (SettingKey::DeviceIds, "uuid"),
            (SettingKey::NvmlLibrary, "/lib/nvml.so"),
        ])
        .unwrap();
        assert_eq!(options.sharing, SharingLimits { max_ranks: 2, reserve: Bytes(3 << 30) });
        assert_eq!(options.device_ids, DeviceIds::Uuid);
        assert_eq!((options.mps, options.nvml_library), (MpsMode::Off, Some("/lib/nvml.so".into())));
    }

    #[test]
    fn settings_of_accounts_become_options() {
        let accounts = |written: &[(SettingKey, &str)]| options_of(written).map(|options| options.accounts);
        let usual = AccountOptions {
            root_jobs: RootJobs::OfAdmins,
            min_uid: 1_000,
            own_account: OwnAccount::OfItsUser,
        };
        assert_eq!(accounts(&[]).unwrap(), usual);
        let written = [
            (SettingKey::NoRootJobs, "true"),
            (SettingKey::MinUid, "500"),
            (SettingKey::AllowSharedAccount, "true"),
        ];
        let chosen =
            AccountOptions { root_jobs: RootJobs::Never, min_uid: 500, own_account: OwnAccount::Shared };
        assert_eq!(accounts(&written).unwrap(), chosen);
        for text in ["0", "-1", "ada"] {
            let message = accounts(&[(SettingKey::MinUid, text)]).unwrap_err().message;
            assert!(message.contains("--min-uid: '") && message.contains("such as 1000"), "{message}");
        }
    }

    #[test]
    fn settings_of_retention_become_options() {
        let usual = options_of(&[]).unwrap().retention;
        assert_eq!((usual.age, usual.bytes, usual.ranks), (Span::from_secs(7 * 24 * 3600), None, None));
        let written =
            [(SettingKey::LogRetention, "1d"), (SettingKey::LogTotal, "2G"), (SettingKey::LogRanks, "70")];
        let chosen = options_of(&written).unwrap().retention;
        let expected = (Span::from_secs(24 * 3600), Some(Bytes(2 << 30)), Some(70));
        assert_eq!((chosen.age, chosen.bytes, chosen.ranks), expected);
        let message = options_of(&[(SettingKey::LogRanks, "many")]).unwrap_err().message;
        assert!(message.contains("'many' is not a number of ranks"), "{message}");
    }

    #[test]
    fn errors_on_settings_of_sharing_say_how_to_write_them() {
        for (key, text, advice) in [
            (
                SettingKey::MaxSharing,
                "0",
                "--max-sharing: '0' is not a number of ranks: write 1 (no sharing) or more",
            ),
            (SettingKey::MaxSharing, "many", "write 1"),
            (SettingKey::MaxJobs, "0", "--max-jobs: '0' is not a number of jobs: write 1 or more"),
            (SettingKey::GpuReserve, "much", "--gpu-reserve: "),
            (
                SettingKey::DeviceIds,
                "pci",
                "--device-ids: 'pci' is not a form of device ids: write auto, uuid or index",
            ),
            (SettingKey::Mps, "always", "--mps: 'always' is not a mode of MPS: write auto or off"),
        ] {
            let message = options_of(&[(key, text)]).unwrap_err().message;
            assert!(message.contains(advice), "{message}");
        }
    }
}
