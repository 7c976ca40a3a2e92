//! Where the worker of this machine keeps its state.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cohabit_console::{CommandError, CommandErrorKind};
use nix::unistd::geteuid;

use crate::config::{SettingKey, SettingSource, Settings};
use crate::endpoint::state_directory;

/// The worker's directory within a state directory that is not its own.
pub(crate) const WORKER_FOLDER: &str = "worker";

/// The directory that --state names; else one within the state directory, which may belong to a head.
pub(crate) fn worker_directory(settings: &Settings) -> Result<PathBuf, CommandError> {
    match settings.find(SettingKey::State) {
        Some(flag) if *flag.origin == SettingSource::Flag => Ok(flag.path()),
        Some(_) | None => create_within(&state_directory(settings)?),
    }
}

/// Creates the state directory and returns the worker's directory within it. Where jobs run under the
/// accounts of their users, these accounts need to traverse the state directory.
pub(crate) fn create_within(state: &Path) -> Result<PathBuf, CommandError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(state);
    let prepared = created.and_then(|()| match geteuid().is_root() {
        true => fs::set_permissions(state, Permissions::from_mode(0o711)),
        false => Ok(()),
    });
    prepared.map_err(|error| {
        let message = format!("cannot use the state directory '{}': {error}", state.display());
        CommandError::new(CommandErrorKind::InputOutput, message)
    })?;
    Ok(state.join(WORKER_FOLDER))
}
