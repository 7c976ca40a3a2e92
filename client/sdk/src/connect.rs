//! The address of the head and the token of the user, given or found.
//!
//! They are found the way the command line finds them: environment variables first, then the state directory
//! of a head on the same machine. Tokens are read from files only, never from variables or arguments, which
//! others can see. The functions of [`ConnectOptions`] read small files where they are called; async code
//! calls [`Client::connect_from_environment`](crate::Client::connect_from_environment), or moves them to a
//! blocking thread.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cohabit_net::{Endpoint, Token};

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
    /// The head and token that the environment names: `COHABIT_HEAD` and `COHABIT_TOKEN_FILE`, and for what
    /// is not set the state directory of a head on this machine (`COHABIT_STATE`, or
    /// [`ConnectOptions::default_state_dir`]).
    ///
    /// # Errors
    /// [`Error::Configuration`] if there is no address or no readable token.
    pub fn from_environment() -> Result<ConnectOptions, Error> {
        ConnectOptions::from_variables(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    /// The head whose state directory this is, as its admin.
    ///
    /// # Errors
    /// [`Error::Configuration`] if no head has started with it, or its files may not be read.
    pub fn local(state_dir: impl AsRef<Path>) -> Result<ConnectOptions, Error> {
        let state_dir = state_dir.as_ref();
        Ok(ConnectOptions { head: address_in(state_dir)?, token: token_at(&state_dir.join("admin.token"))? })
    }

    /// Where a head keeps its state unless told otherwise: `/var/lib/cohabit` for root, else
    /// `~/.local/share/cohabit`.
    ///
    /// # Errors
    /// [`Error::Configuration`] if there is no home directory.
    pub fn default_state_dir() -> Result<PathBuf, Error> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        if is_root {
            return Ok(PathBuf::from("/var/lib/cohabit"));
        }
        let home = env::home_dir().ok_or_else(|| {
            Error::Configuration(
                "there is no home directory: set HOME, or set COHABIT_STATE to the head's state directory"
                    .into(),
            )
        })?;
        Ok(home.join(".local/share/cohabit"))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<ConnectOptions, Error> {
        let state_dir =
            || variable("COHABIT_STATE").map_or_else(ConnectOptions::default_state_dir, |dir| Ok(dir.into()));
        let head = match variable("COHABIT_HEAD") {
            Some(head) => head.into_string().map_err(|head| {
                Error::Configuration(format!("COHABIT_HEAD is not valid UTF-8: {}", head.to_string_lossy()))
            })?,
            None => address_in(&state_dir()?)?,
        };
        let token_file = match variable("COHABIT_TOKEN_FILE") {
            Some(file) => PathBuf::from(file),
            None => state_dir()?.join("admin.token"),
        };
        Ok(ConnectOptions { head, token: token_at(&token_file)? })
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

/// The address that a head leaves in its state directory.
fn address_in(state_dir: &Path) -> Result<String, Error> {
    let file = state_dir.join("address");
    let text = fs::read_to_string(&file).map_err(|error| {
        Error::Configuration(format!(
            "no head is configured: COHABIT_HEAD is not set, and {} cannot be read ({error}): set \
             COHABIT_HEAD=HOST:PORT, or start a head on this machine",
            file.display()
        ))
    })?;
    Ok(text.trim().to_owned())
}

fn token_at(file: &Path) -> Result<Token, Error> {
    Token::read_file(file).map_err(|error| {
        Error::Configuration(format!(
            "no usable token in {}: {error}; set COHABIT_TOKEN_FILE to another file",
            file.display()
        ))
    })
}

#[cfg(test)]
mod tests;
