//! Where the worker of this machine keeps its state.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cohabit_console::{CommandError, CommandErrorKind};
use nix::unistd::geteuid;

use crate::config::{SettingKey, SettingSource, Settings};
use crate::endpoint::state_folder;

/// The worker's folder within a state folder that is not its own.
pub(crate) const WORKER_FOLDER: &str = "worker";

/// The folder of the flag; else one within the state folder, which is the head's if one runs here.
pub(crate) fn worker_directory(settings: &Settings) -> Result<PathBuf, CommandError> {
    match settings.find(SettingKey::State) {
        Some(flag) if *flag.origin == SettingSource::Flag => Ok(flag.path()),
        Some(_) | None => create_within(&state_folder(settings)?),
    }
}

/// The worker's folder within this one, which is made unless it is there. Where jobs run as the accounts of
/// their users, these have to pass through it.
pub(crate) fn create_within(state: &Path) -> Result<PathBuf, CommandError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(state);
    let opened = made.and_then(|()| match geteuid().is_root() {
        true => fs::set_permissions(state, Permissions::from_mode(0o711)),
        false => Ok(()),
    });
    opened.map_err(|error| {
        let message = format!("the state folder '{}' cannot be used: {error}", state.display());
        CommandError::new(CommandErrorKind::InputOutput, message)
    })?;
    Ok(state.join(WORKER_FOLDER))
}
