//! Finds the address of the head and a token for it, and connects.
//!
//! Both come from flags, then from environment variables, then from configuration files. Within a source, an
//! address wins over a state directory. So `--state DIR` wins over `COHABIT_HEAD`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohabit_client::{Client, ConnectOptions, Token};
use cohabit_console::{CommandError, CommandErrorKind};

use crate::arguments::ConnectionArguments;
use crate::config::{RawSettings, SettingKey, Settings};
use crate::token_expiry::warn_of_own_token;

/// The file in the state directory of a head that holds its address.
const ADDRESS: &str = "address";
/// The file in the state directory of a head that holds the token of its first admin. It remains when the
/// head stops.
const ADMIN_TOKEN: &str = "admin.token";

/// How long commands that wait for jobs try to reach a head that is gone: longer than a restart for an
/// upgrade takes.
const HEAD_ABSENCE: Duration = Duration::from_secs(60);

/// Connects to the head that the flags or settings name.
pub(crate) async fn connect(flags: &ConnectionArguments) -> Result<Client, CommandError> {
    let client = Client::connect(resolve_endpoint(&read_settings(flags)?)?).await?;
    warn_of_own_token(&client).await;
    Ok(client)
}

/// The same for a command that waits for jobs, and goes on when a head comes back after this time at most.
pub(crate) async fn connect_to_wait(flags: &ConnectionArguments) -> Result<Client, CommandError> {
    Ok(connect(flags).await?.with_retry_timeout(HEAD_ABSENCE))
}

/// The settings, with these flags first.
pub(crate) fn read_settings(flags: &ConnectionArguments) -> Result<Settings, CommandError> {
    Settings::with_flags(connection_flags(flags)?)
}

/// These flags as settings.
pub(crate) fn connection_flags(flags: &ConnectionArguments) -> Result<RawSettings, CommandError> {
    let mut written = RawSettings::new();
    written.extend(flags.address.head.clone().map(|head| (SettingKey::Head, head)));
    written.extend(path_flag(SettingKey::TokenFile, flags.address.token_file.as_deref())?);
    written.extend(path_flag(SettingKey::State, flags.state.as_deref())?);
    Ok(written)
}

/// A path flag as a setting.
pub(crate) fn path_flag(
    key: SettingKey,
    path: Option<&Path>,
) -> Result<Option<(SettingKey, String)>, CommandError> {
    path.map(|path| match path.to_str() {
        Some(text) => Ok((key, text.to_owned())),
        None => Err(CommandError::invalid(format!(
            "--{} {} is not valid UTF-8: use a path that is",
            key.name(),
            path.display()
        ))),
    })
    .transpose()
}

/// The address of the head and the token.
pub(crate) fn resolve_endpoint(settings: &Settings) -> Result<ConnectOptions, CommandError> {
    Ok(ConnectOptions { head: find_head(settings)?, token: find_token(settings)? })
}

fn find_head(settings: &Settings) -> Result<String, CommandError> {
    match settings.first_of(&[SettingKey::Head, SettingKey::State]) {
        Some(head) if head.key == SettingKey::Head => Ok(head.text.to_owned()),
        Some(state) => read_address(&state.path()),
        None => read_address(&default_state_directory()?),
    }
}

fn read_address(folder: &Path) -> Result<String, CommandError> {
    match fs::read_to_string(folder.join(ADDRESS)) {
        Ok(address) => Ok(address.trim().to_owned()),
        Err(_) if folder.join(ADMIN_TOKEN).exists() => Err(head_not_running_error(folder)),
        Err(error) => Err(CommandError::configuration(format!(
            "no head is configured: cannot read {} ({error}). Give --head HOST:PORT, set COHABIT_HEAD, or start \
             a head on this machine with `cohabit up`",
            folder.join(ADDRESS).display()
        ))),
    }
}

/// The error for a head that exists but is not running.
fn head_not_running_error(folder: &Path) -> CommandError {
    let folder = folder.display();
    let advice = format!("start it with `cohabit head start --state {folder}`");
    CommandError::new(
        CommandErrorKind::Unreachable,
        format!("the head with state directory {folder} is not running: {advice}"),
    )
}

/// The token of this client.
fn find_token(settings: &Settings) -> Result<Token, CommandError> {
    let file = match settings.first_of(&[SettingKey::TokenFile, SettingKey::State]) {
        Some(file) if file.key == SettingKey::TokenFile => file.path(),
        Some(state) => state.path().join(ADMIN_TOKEN),
        None => default_state_directory()?.join(ADMIN_TOKEN),
    };
    read_token(&file)
}

/// Reads the token in a file.
pub(crate) fn read_token(file: &Path) -> Result<Token, CommandError> {
    Token::read_file(file).map_err(|error| {
        CommandError::configuration(format!(
            "no usable token in {}: {error}. Give --token-file FILE or set COHABIT_TOKEN_FILE; an admin of the \
             cluster creates tokens with `cohabit token create`",
            file.display()
        ))
    })
}

/// The state directory, as set or by default.
pub(crate) fn state_directory(settings: &Settings) -> Result<PathBuf, CommandError> {
    settings.path(SettingKey::State).map_or_else(default_state_directory, Ok)
}

fn default_state_directory() -> Result<PathBuf, CommandError> {
    Ok(ConnectOptions::default_state_dir()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_was_never_started_is_an_error_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let flags = ConnectionArguments { state: Some(folder.path().join("none")), ..Default::default() };
        let failure = find_head(&read_settings(&flags).unwrap()).unwrap_err();
        assert_eq!(failure.kind, CommandErrorKind::Configuration);
        assert!(
            failure.message.contains("cannot read") && failure.message.contains("none/address"),
            "{failure}"
        );
        assert!(failure.message.contains("--head HOST:PORT"), "{failure}");
    }

    #[test]
    fn a_stopped_head_has_an_error_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("admin.token"), "").unwrap();
        let flags = ConnectionArguments { state: Some(folder.path().into()), ..Default::default() };
        let failure = find_head(&read_settings(&flags).unwrap()).unwrap_err();
        assert_eq!(failure.kind, CommandErrorKind::Unreachable);
        assert!(failure.message.contains("is not running"), "{failure}");
    }

    #[test]
    fn the_address_comes_from_the_state_directory_unless_a_flag_gives_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("address"), "127.0.0.1:4242\n").unwrap();
        let mut flags = ConnectionArguments { state: Some(folder.path().into()), ..Default::default() };
        assert_eq!(find_head(&read_settings(&flags).unwrap()).unwrap(), "127.0.0.1:4242");
        flags.address.head = Some("elsewhere:7070".into());
        assert_eq!(find_head(&read_settings(&flags).unwrap()).unwrap(), "elsewhere:7070");
    }

    #[test]
    fn the_error_of_a_missing_token_names_its_path() {
        let failure = read_token(Path::new("/nonexistent/token")).err().unwrap();
        assert_eq!(failure.kind, CommandErrorKind::Configuration);
        assert!(failure.message.starts_with("no usable token in /nonexistent/token"), "{failure}");
    }
}
