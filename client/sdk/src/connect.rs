//! The address of the head and the token of the user, given or found.
//!
//! They are found the way the command line finds them, by the same code (`cohabit-settings`): environment
//! variables first, then configuration files, then the state directory of a head on the same machine. Tokens
//! are read from files only, never from variables or arguments, which others can see. The functions of
//! [`ConnectOptions`] read small files where they are called; async code calls
//! [`Client::connect_from_environment`](crate::Client::connect_from_environment), or moves them to a blocking
//! thread.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use cohabit_net::{Endpoint, Token};
use cohabit_settings::{ADMIN_TOKEN, RawSettings, Settings, SettingsError};

use crate::Error;

/// Where the head is, and the token to show there.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// `host:port`.
    pub head: String,
    /// The token of the user.
    pub token: Token,
}

impl ConnectOptions {
    /// The head and token that `cohabit` uses without flags: those that `COHABIT_HEAD` and
    /// `COHABIT_TOKEN_FILE` name, else the keys `head` and `token-file` of `./cohabit.toml`,
    /// `~/.config/cohabit/config.toml` or
    /// `/etc/cohabit/config.toml`, else those in the state directory of a head on this machine:
    /// `COHABIT_STATE`, the key `state`, or [`ConnectOptions::default_state_dir`]. In each of these places,
    /// an address or token file wins over a state directory.
    ///
    /// # Errors
    /// [`Error::Configuration`] if there is no address or no readable token, or a file cannot be understood:
    /// with its path and line.
    pub fn from_environment() -> Result<ConnectOptions, Error> {
        ConnectOptions::from_settings(&Settings::with_flags(RawSettings::new())?)
    }

    /// The head whose state directory this is, as its admin.
    ///
    /// # Errors
    /// [`Error::Configuration`] if no head has started with it, or its files may not be read.
    pub fn local(state_dir: impl AsRef<Path>) -> Result<ConnectOptions, Error> {
        let state_dir = state_dir.as_ref();
        let token = state_dir.join(ADMIN_TOKEN);
        let head = cohabit_settings::read_head_address(state_dir)?;
        Ok(ConnectOptions { head, token: token_at(&token, &token.display())? })
    }

    /// Where a head keeps its state unless told otherwise: `/var/lib/cohabit` for root, else
    /// `~/.local/share/cohabit`.
    ///
    /// # Errors
    /// [`Error::Configuration`] if there is no home directory.
    pub fn default_state_dir() -> Result<PathBuf, Error> {
        Ok(cohabit_settings::default_state_directory()?)
    }

    /// The head and token of these settings.
    ///
    /// # Errors
    /// Those of [`ConnectOptions::from_environment`].
    pub fn from_settings(settings: &Settings) -> Result<ConnectOptions, Error> {
        for warning in settings.warnings() {
            tracing::warn!("{warning}");
        }
        let head = settings.head_address()?;
        let file = settings.token_file()?;
        Ok(ConnectOptions { head, token: token_at(&file.path, &file)? })
    }
}

impl From<SettingsError> for Error {
    fn from(error: SettingsError) -> Error {
        Error::Configuration(error.message)
    }
}

/// Runs a function that reads files on a blocking thread: async code of this crate reads files in no other
/// way.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let read = tokio::task::spawn_blocking(read).await;
    read.unwrap_or_else(|error| Err(Error::Configuration(format!("cannot read the files: {error}"))))
}

impl From<ConnectOptions> for Endpoint {
    fn from(connect: ConnectOptions) -> Endpoint {
        Endpoint { address: connect.head, token: connect.token }
    }
}

/// The token in a file, which an error shows so.
fn token_at(file: &Path, shown: &dyn Display) -> Result<Token, Error> {
    Token::read_file(file).map_err(|error| {
        Error::Configuration(format!(
            "no usable token in {shown}: {error}; set COHABIT_TOKEN_FILE to another file, or token-file in \
             cohabit.toml"
        ))
    })
}

#[cfg(test)]
mod tests;
