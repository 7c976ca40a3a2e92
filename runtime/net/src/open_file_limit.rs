//! The limit of open files and sockets. A head with many workers needs more than the usual thousand, and
//! limits its connections to what the system allows.

use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The limit that is assumed where the system reports none.
const DEFAULT_LIMIT: u64 = 1_024;

/// The limit that this process was started with, once it was raised.
static INITIAL_LIMIT: OnceLock<u64> = OnceLock::new();

/// Raises the limit as far as the system allows without privileges.
pub fn raise_open_file_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && INITIAL_LIMIT.set(soft).is_ok()
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        tracing::warn!(%error, soft, hard, "cannot raise the limit of open files");
    }
}

/// The limit that this process was started with, for programs that it starts: some of them are slow or fail
/// with a larger one.
#[must_use]
pub fn initial_open_file_limit() -> u64 {
    INITIAL_LIMIT.get().copied().unwrap_or_else(open_file_limit)
}

/// The present limit.
#[must_use]
pub fn open_file_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(DEFAULT_LIMIT, |(soft, _)| soft)
}
