//! Turns flags and settings into the options of the head.

use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU64;

use cohabit_client::MOST_SNAPSHOT_BYTES;
use cohabit_client::types::{Bytes, NewToken, ParseAmountError, Span};
use cohabit_console::CommandError;
use cohabit_head::{CheckpointOptions, Config, HeadOptions, InterferenceSource, RequestLimits};

use crate::arguments::HeadStartArguments;
use crate::config::{RawSettings, SettingKey, Settings};
use crate::daemon;
use crate::endpoint::{path_flag, state_directory};
use crate::values;

/// The flags as settings.
pub(crate) fn flags(arguments: &HeadStartArguments) -> Result<RawSettings, CommandError> {
    let mut written = daemon::logging_flags(&arguments.logging);
    written.extend(path_flag(SettingKey::State, arguments.state.as_deref())?);
    written.extend(path_flag(SettingKey::Sensitivity, arguments.sensitivity.as_deref())?);
    written.extend(path_flag(SettingKey::Agents, arguments.agents.as_deref())?);
    let texts = [
        (SettingKey::Listen, &arguments.listen),
        (SettingKey::Policy, &arguments.policy),
        (SettingKey::Interference, &arguments.interference),
        (SettingKey::MaxSlowdown, &arguments.max_slowdown),
        (SettingKey::LostAfter, &arguments.lost_after),
        (SettingKey::CheckpointDir, &arguments.checkpoint_dir),
        (SettingKey::CheckpointLimit, &arguments.checkpoint_limit),
        (SettingKey::MaxRunningJobs, &arguments.max_running_jobs),
        (SettingKey::FairShare, &arguments.fair_share),
        (SettingKey::IdleStop, &arguments.idle_stop),
        (SettingKey::PrivateData, &arguments.private_data),
    ];
    written.extend(texts.into_iter().filter_map(|(key, text)| Some((key, text.clone()?))));
    Ok(written)
}

/// The options of the head.
pub(crate) fn options(settings: &Settings) -> Result<HeadOptions, CommandError> {
    let usual = HeadOptions::new(state_directory(settings)?);
    Ok(HeadOptions {
        listen: settings.checked(SettingKey::Listen, address)?.unwrap_or(usual.listen),
        policy: settings.find(SettingKey::Policy).map_or(usual.policy, |setting| setting.text.to_owned()),
        interference: interference(settings)?.unwrap_or(usual.interference),
        sensitivity: settings.path(SettingKey::Sensitivity),
        agents: settings.path(SettingKey::Agents),
        max_slowdown: settings.checked(SettingKey::MaxSlowdown, str::parse)?.or(usual.max_slowdown),
        config: config(settings, usual.config)?,
        history_retention: settings
            .checked(SettingKey::HistoryRetention, values::parse_duration)?
            .unwrap_or(usual.history_retention),
        report_retention: settings
            .checked(SettingKey::ReportRetention, values::parse_duration)?
            .unwrap_or(usual.report_retention),
        checkpoints: checkpoints(settings, usual.checkpoints)?,
        limits: limits(settings, usual.limits)?,
        private_data: settings.checked(SettingKey::PrivateData, str::parse)?.unwrap_or(usual.private_data),
        user_token_lifetime: settings
            .checked(SettingKey::TokenLifetime, token_lifetime)?
            .unwrap_or(usual.user_token_lifetime),
        ..usual
    })
}

/// Where checkpoints go of jobs that name no directory.
fn checkpoints(settings: &Settings, usual: CheckpointOptions) -> Result<CheckpointOptions, CommandError> {
    Ok(CheckpointOptions {
        directory: settings.checked(SettingKey::CheckpointDir, checkpoint_directory)?.or(usual.directory),
        limit: settings.checked(SettingKey::CheckpointLimit, str::parse)?.unwrap_or(usual.limit),
    })
}

/// The same path on every node, so it cannot be relative to anything here.
fn checkpoint_directory(text: &str) -> Result<String, String> {
    match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "'{text}' is not an absolute path: give the full path, which is the same on all nodes"
        )),
    }
}

/// How long a new token of a user is valid; none if it does not expire.
fn token_lifetime(text: &str) -> Result<Option<Span>, String> {
    values::parse_expiry(text).map(|lifetime| Some(lifetime).filter(|it| *it != NewToken::FOREVER))
}

fn limits(settings: &Settings, usual: RequestLimits) -> Result<RequestLimits, CommandError> {
    let count = |key, usual| Ok::<u64, CommandError>(settings.checked(key, str::parse)?.unwrap_or(usual));
    let user_code = settings.checked(SettingKey::MaxUserCode, str::parse)?.unwrap_or(usual.user_code);
    Ok(RequestLimits {
        snapshot: settings
            .checked(SettingKey::MaxSnapshotSize, |text| snapshot_size(text, user_code))?
            .unwrap_or(usual.snapshot.min(user_code)),
        user_code,
        array_members: count(SettingKey::MaxArrayMembers, usual.array_members)?,
        dependencies: count(SettingKey::MaxDependencies, usual.dependencies)?,
        job_bytes: settings.checked(SettingKey::MaxJobSize, job_size)?.unwrap_or(usual.job_bytes),
        grace: settings.checked(SettingKey::MaxGrace, values::parse_duration)?.unwrap_or(usual.grace),
        user_priority: settings
            .checked(SettingKey::MaxUserPriority, str::parse)?
            .unwrap_or(usual.user_priority),
        submits_per_second: count(SettingKey::MaxSubmitsPerSecond, usual.submits_per_second)?,
        changes_per_second: count(SettingKey::MaxChangesPerSecond, usual.changes_per_second)?,
        queued_jobs: count(SettingKey::MaxQueuedJobs, usual.queued_jobs)?,
        user_bytes: settings.checked(SettingKey::MaxUserSize, str::parse)?.unwrap_or(usual.user_bytes),
    })
}

/// Clients refuse larger snapshots by themselves, and no snapshot is larger than all stored code of its user.
fn snapshot_size(text: &str, user_code: Bytes) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: ParseAmountError| error.to_string())?;
    if size > MOST_SNAPSHOT_BYTES {
        return Err(format!("{size} is too much: clients send at most {MOST_SNAPSHOT_BYTES} of a snapshot"));
    }
    match size <= user_code {
        true => Ok(size),
        false => Err(format!("{size} is more than {user_code}, which one user may store (max-user-code)")),
    }
}

/// The source of predicted slowdowns. A path in a configuration file is relative to that file.
fn interference(settings: &Settings) -> Result<Option<InterferenceSource>, CommandError> {
    let Some(setting) = settings.find(SettingKey::Interference) else { return Ok(None) };
    let basis = setting.check(str::parse::<InterferenceSource>)?;
    Ok(Some(basis.within(setting.folder())))
}

fn config(settings: &Settings, usual: Config) -> Result<Config, CommandError> {
    Ok(Config {
        lost_after: settings
            .checked(SettingKey::LostAfter, values::parse_duration)?
            .unwrap_or(usual.lost_after),
        retention: settings
            .checked(SettingKey::Retention, values::parse_duration)?
            .unwrap_or(usual.retention),
        archive_after: settings
            .checked(SettingKey::ArchiveAfter, values::parse_duration)?
            .unwrap_or(usual.archive_after),
        node_failures: settings.checked(SettingKey::NodeFailures, str::parse)?.unwrap_or(usual.node_failures),
        max_running_jobs: settings
            .checked(SettingKey::MaxRunningJobs, running_jobs)?
            .unwrap_or(usual.max_running_jobs),
        fair_share: settings.checked(SettingKey::FairShare, on_or_off)?.unwrap_or(usual.fair_share),
        idle_stop: settings.checked(SettingKey::IdleStop, idle_stop)?.unwrap_or(usual.idle_stop),
        succession: usual.succession,
        prefetch: usual.prefetch,
    })
}

/// `off` and a time of zero are the same.
fn idle_stop(text: &str) -> Result<Option<Span>, String> {
    match text {
        "off" | "0" => Ok(None),
        _ => Ok(Some(values::parse_duration(text)?).filter(|span| *span > Span::ZERO)),
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(format!("'{other}' is neither on nor off")),
    }
}

/// At least one: with a limit of zero every job would wait for ever.
fn running_jobs(text: &str) -> Result<Option<u64>, String> {
    match (text, text.parse::<NonZeroU64>()) {
        (NO_LIMIT, _) => Ok(None),
        (_, Ok(limit)) => Ok(Some(limit.get())),
        (_, Err(_)) => {
            Err(format!("'{text}' is not a number of jobs: write 1 or more, or '{NO_LIMIT}' for no limit"))
        }
    }
}

/// The word for no limit.
const NO_LIMIT: &str = "none";

/// The largest `max-job-size`: the order to a worker carries the job in one message.
const LARGEST_JOB: Bytes = Bytes(4 << 20);

fn job_size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: ParseAmountError| error.to_string())?;
    match size <= LARGEST_JOB {
        true => Ok(size),
        false => Err(format!("{size} is too much: at most {LARGEST_JOB} of a job fit a message to a worker")),
    }
}

/// Parses an address, or resolves a name.
fn address(text: &str) -> Result<SocketAddr, String> {
    let refuse =
        || format!("'{text}' is not an address to listen on: write for example 0.0.0.0:7070 or 127.0.0.1:0");
    text.to_socket_addrs().map_err(|_| refuse())?.next().ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{PrivateData, Slowdown};

    use super::*;
    use crate::config::read_settings;
    use cohabit_console::CommandErrorKind;

    fn options_of(written: &[(SettingKey, &str)]) -> Result<HeadOptions, CommandError> {
        let mut written: RawSettings = written.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
        written.entry(SettingKey::State).or_insert_with(|| "/state".to_owned());
        options(&read_settings(written)?)
    }

    #[test]
    fn settings_become_options() {
        let options = options_of(&[
            (SettingKey::Listen, "127.0.0.1:0"),
            (SettingKey::LostAfter, "10m"),
            (SettingKey::NodeFailures, "2"),
            (SettingKey::MaxQueuedJobs, "500"),
            (SettingKey::MaxRunningJobs, "8"),
            (SettingKey::IdleStop, "1h"),
            (SettingKey::MaxJobSize, "1M"),
            (SettingKey::PrivateData, "on"),
            (SettingKey::TokenLifetime, "90d"),
        ])
        .unwrap();
        assert_eq!((options.limits.queued_jobs, options.limits.job_bytes), (500, Bytes(1 << 20)));
        let sharing =
            options_of(&[(SettingKey::Interference, "table:pairs.csv"), (SettingKey::MaxSlowdown, "1.5")])
                .unwrap();
        assert_eq!(sharing.interference, InterferenceSource::Table("pairs.csv".into()));
        assert_eq!(sharing.max_slowdown, Some(Slowdown(1_500)));
        let given =
            options_of(&[(SettingKey::Sensitivity, "tables.csv"), (SettingKey::Agents, "agents")]).unwrap();
        assert_eq!((given.sensitivity, &options.sensitivity), (Some("tables.csv".into()), &None));
        assert_eq!((given.agents, &options.agents), (Some("agents".into()), &None));
        assert_eq!(options.listen, "127.0.0.1:0".parse().unwrap());
        assert_eq!(options.config.lost_after, Span::from_secs(600));
        assert_eq!((options.config.node_failures, options.config.max_running_jobs), (2, Some(8)));
        assert_eq!(sharing.config.max_running_jobs, Some(1_000));
        let thirty_minutes = Some(Span::from_secs(1_800));
        assert_eq!(
            (options.config.idle_stop, sharing.config.idle_stop),
            (Some(Span::from_secs(3_600)), thirty_minutes)
        );
        for off in ["off", "0", "0s"] {
            assert_eq!(options_of(&[(SettingKey::IdleStop, off)]).unwrap().config.idle_stop, None, "{off}");
        }
        let unlimited = options_of(&[(SettingKey::MaxRunningJobs, "none")]).unwrap();
        assert_eq!(unlimited.config.max_running_jobs, None);
        for wrong in ["0", "-1", "many"] {
            let error = options_of(&[(SettingKey::MaxRunningJobs, wrong)]).unwrap_err().to_string();
            assert!(error.contains("is not a number of jobs: write 1 or more"), "{error}");
        }
        assert_eq!(options.private_data, PrivateData::On);
        assert_eq!(options.user_token_lifetime, Some(Span::from_secs(90 * 86_400)));
        let forever = options_of(&[(SettingKey::TokenLifetime, "never")]).unwrap();
        assert_eq!(forever.user_token_lifetime, None);
        assert_eq!(options.state_dir, std::path::Path::new("/state"));
    }

    #[test]
    fn the_error_of_a_wrong_value_names_the_flag() {
        for (key, text, start) in [
            (SettingKey::Listen, "7070", "--listen: '7070' is not an address"),
            (SettingKey::LostAfter, "300", "--lost-after: '300' has no unit"),
            (SettingKey::IdleStop, "30", "--idle-stop: '30' has no unit"),
            (SettingKey::NodeFailures, "many", "--node-failures: "),
            (SettingKey::MaxJobSize, "1G", "--max-job-size: 1 GiB is too much: at most 4 MiB"),
            (SettingKey::Interference, "laws", "--interference: 'laws' is not a source of slowdowns"),
            (SettingKey::PrivateData, "yes", "--private-data: 'yes' is neither on nor off"),
            (SettingKey::MaxSlowdown, "0.9", "--max-slowdown: '0.9' is not a slowdown"),
        ] {
            let failure = options_of(&[(key, text)]).unwrap_err();
            assert_eq!(failure.kind, CommandErrorKind::Usage);
            assert!(failure.message.starts_with(start), "{failure}");
        }
    }
}
