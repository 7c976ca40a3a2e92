//! Finds the address of the head and a token for it, as `cohabit-settings` says, and connects.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohabit_client::{Client, ConnectOptions, Token};
use cohabit_console::CommandError;

use crate::arguments::ConnectionArguments;
use crate::config::{self, RawSettings, SettingKey, Settings};
use crate::token_expiry::warn_of_own_token;

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

/// The same for a command with a person before it, who can end it: it goes on whenever the head comes back.
pub(crate) async fn connect_to_stay(flags: &ConnectionArguments) -> Result<Client, CommandError> {
    Ok(connect(flags).await?.with_retry_timeout(Duration::MAX))
}

/// The settings, with these flags first.
pub(crate) fn read_settings(flags: &ConnectionArguments) -> Result<Settings, CommandError> {
    config::read_settings(connection_flags(flags)?)
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
    let head = settings.head_address()?;
    let file = settings.token_file()?;
    Ok(ConnectOptions { head, token: read_token_of(&file.path, &file)? })
}

/// Reads the token in a file.
#[cfg(any(feature = "worker", test))]
pub(crate) fn read_token(file: &Path) -> Result<Token, CommandError> {
    read_token_of(file, &file.display())
}

/// The same; the error shows the file so.
fn read_token_of(file: &Path, shown: &dyn Display) -> Result<Token, CommandError> {
    Token::read_file(file).map_err(|error| {
        CommandError::configuration(format!(
            "no usable token in {shown}: {error}. Give --token-file FILE or set COHABIT_TOKEN_FILE; an admin of \
             the cluster creates tokens with `cohabit token create`"
        ))
    })
}

/// The state directory, as set or by default.
pub(crate) fn state_directory(settings: &Settings) -> Result<PathBuf, CommandError> {
    Ok(settings.state_directory()?)
}

#[cfg(test)]
mod tests {
    use cohabit_console::CommandErrorKind;

    use super::*;

    #[test]
    fn a_stopped_head_is_unreachable_and_one_that_never_ran_is_not_configured() {
        let folder = tempfile::tempdir().unwrap();
        let flags = ConnectionArguments { state: Some(folder.path().into()), ..Default::default() };
        let kind = || resolve_endpoint(&read_settings(&flags).unwrap()).unwrap_err().kind;
        assert_eq!(kind(), CommandErrorKind::Configuration);
        std::fs::write(folder.path().join("admin.token"), "").unwrap();
        assert_eq!(kind(), CommandErrorKind::Unreachable);
    }

    #[test]
    fn the_error_of_a_missing_token_names_its_path() {
        let failure = read_token(Path::new("/nonexistent/token")).err().unwrap();
        assert_eq!(failure.kind, CommandErrorKind::Configuration);
        assert!(failure.message.starts_with("no usable token in /nonexistent/token"), "{failure}");
    }
}
