//! The names of the files beside a journal.

use std::path::{Path, PathBuf};

/// The write-ahead log of a journal.
pub(crate) fn log_of(journal: &Path) -> PathBuf {
    with_suffix(journal, "-wal")
}

/// The same name with this at its end.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
