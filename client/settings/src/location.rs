//! Where the head is, and which file has the token to show there.
//!
//! Within a source, an address wins over a state directory. So `--state DIR` wins over `COHABIT_HEAD`.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use crate::{SettingKey, SettingSource, Settings, SettingsError, SettingsErrorKind};

/// The file in the state directory of a head that holds its address.
const ADDRESS: &str = "address";

/// The file in the state directory of a head that holds the token of its first admin. It remains when the
/// head stops.
pub const ADMIN_TOKEN: &str = "admin.token";

/// The file that has the token of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenLocation {
    /// Its path.
    pub path: PathBuf,
    /// The setting that names it, if one does in a configuration file.
    pub named_by: Option<String>,
}

/// The path, with the setting that names it.
impl fmt::Display for TokenLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.named_by {
            Some(place) => write!(f, "{} ({place})", self.path.display()),
            None => write!(f, "{}", self.path.display()),
        }
    }
}

impl Settings {
    /// The address of the head, `host:port`: as set, or as a head on this machine has left it.
    ///
    /// # Errors
    /// [`SettingsErrorKind::HeadStopped`] if the head of the state directory does not run;
    /// [`SettingsErrorKind::Configuration`] if none has ever started there.
    pub fn head_address(&self) -> Result<String, SettingsError> {
        match self.first_of(&[SettingKey::Head, SettingKey::State]) {
            Some(head) if head.key == SettingKey::Head => Ok(head.text.to_owned()),
            Some(state) => read_head_address(&state.path()),
            None => read_head_address(&default_state_directory()?),
        }
    }

    /// The file that has the token: as set, or that of the first admin of a head on this machine. Whether it
    /// exists shows when it is read.
    ///
    /// # Errors
    /// [`SettingsErrorKind::Configuration`] if nothing is set and there is no home directory.
    pub fn token_file(&self) -> Result<TokenLocation, SettingsError> {
        let Some(setting) = self.first_of(&[SettingKey::TokenFile, SettingKey::State]) else {
            return Ok(TokenLocation { path: default_state_directory()?.join(ADMIN_TOKEN), named_by: None });
        };
        let path = match setting.key == SettingKey::State {
            true => setting.path().join(ADMIN_TOKEN),
            false => setting.path(),
        };
        let named_by = matches!(setting.origin, SettingSource::File(_)).then(|| setting.place());
        Ok(TokenLocation { path, named_by })
    }

    /// The state directory, as set or by default.
    ///
    /// # Errors
    /// [`SettingsErrorKind::Configuration`] if nothing is set and there is no home directory.
    pub fn state_directory(&self) -> Result<PathBuf, SettingsError> {
        self.path(SettingKey::State).map_or_else(default_state_directory, Ok)
    }
}

/// The address that a head has left in its state directory.
///
/// # Errors
/// [`SettingsErrorKind::HeadStopped`] if the head has stopped; [`SettingsErrorKind::Configuration`] if none
/// has ever started with this directory.
pub fn read_head_address(state: &Path) -> Result<String, SettingsError> {
    let file = state.join(ADDRESS);
    match fs::read_to_string(&file) {
        Ok(address) => Ok(address.trim().to_owned()),
        Err(_) if state.join(ADMIN_TOKEN).exists() => Err(head_stopped(state)),
        Err(error) => Err(SettingsError::configuration(format!(
            "no head is configured: cannot read {} ({error}). Give --head HOST:PORT, set COHABIT_HEAD=HOST:PORT, \
             write head = \"HOST:PORT\" into ~/.config/cohabit/config.toml, or start a head on this machine with \
             `cohabit up`",
            file.display()
        ))),
    }
}

/// The error for a head that exists but is not running.
fn head_stopped(state: &Path) -> SettingsError {
    let state = state.display();
    let message = format!(
        "the head with state directory {state} is not running: start it with `cohabit head start --state {state}`"
    );
    SettingsError { kind: SettingsErrorKind::HeadStopped, message }
}

/// Where a head keeps its state unless told otherwise: `/var/lib/cohabit` for root, else
/// `~/.local/share/cohabit`.
///
/// # Errors
/// [`SettingsErrorKind::Configuration`] if there is no home directory.
pub fn default_state_directory() -> Result<PathBuf, SettingsError> {
    if geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/cohabit"));
    }
    let home = env::home_dir().ok_or_else(|| {
        SettingsError::configuration(
            "there is no home directory: set HOME, or set COHABIT_STATE to the head's state directory",
        )
    })?;
    Ok(home.join(".local/share/cohabit"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawSettings;

    fn with_state(state: &Path) -> Settings {
        Settings::of_flags([(SettingKey::State, state.to_str().unwrap().to_owned())].into())
    }

    #[test]
    fn a_head_that_was_never_started_is_an_error_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let error = with_state(&folder.path().join("none")).head_address().unwrap_err();
        assert_eq!(error.kind, SettingsErrorKind::Configuration);
        assert!(error.message.contains("cannot read") && error.message.contains("none/address"), "{error}");
        for remedy in ["--head HOST:PORT", "COHABIT_HEAD=HOST:PORT", "config.toml", "cohabit up"] {
            assert!(error.message.contains(remedy), "{error}");
        }
    }

    #[test]
    fn a_stopped_head_has_an_error_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("admin.token"), "").unwrap();
        let error = with_state(folder.path()).head_address().unwrap_err();
        assert_eq!(error.kind, SettingsErrorKind::HeadStopped);
        assert!(error.message.contains("is not running"), "{error}");
    }

    #[test]
    fn the_address_comes_from_the_state_directory_unless_a_flag_gives_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("address"), "127.0.0.1:4242\n").unwrap();
        assert_eq!(with_state(folder.path()).head_address().unwrap(), "127.0.0.1:4242");
        let state = folder.path().to_str().unwrap().to_owned();
        let both: RawSettings =
            [(SettingKey::State, state), (SettingKey::Head, "elsewhere:7070".to_owned())].into();
        assert_eq!(Settings::of_flags(both).head_address().unwrap(), "elsewhere:7070");
    }

    #[test]
    fn the_token_of_the_first_admin_is_in_the_state_directory() {
        let found = with_state(Path::new("/there")).token_file().unwrap();
        assert_eq!(found.to_string(), "/there/admin.token");
    }
}
