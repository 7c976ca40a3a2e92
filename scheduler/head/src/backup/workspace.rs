//! A directory for what is not complete yet.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::error::BackupError;

/// A new directory that only this account can use, removed when it is dropped.
pub(super) fn private_folder(above: &Path, prefix: &str) -> Result<TempDir, BackupError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).permissions(Permissions::from_mode(0o700));
    builder.tempdir_in(above).map_err(BackupError::io(above))
}
