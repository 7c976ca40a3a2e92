//! The error of everything in this directory.

use std::io;
use std::path::Path;

/// Why MPS does not work, as a text for people: few callers can do anything else with it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct MpsError(pub String);

/// The error of an action on a file.
pub(super) fn file_error(action: &str, path: &Path, error: &io::Error) -> MpsError {
    MpsError(format!("cannot {action} '{}': {error}", path.display()))
}
