//! How many files this process may have open: each object in memory or on disk needs one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Where the system tells no limit.
const NO_LIMIT: u64 = 1 << 20;

/// Raises the limit as far as it may be raised, and returns it.
pub(super) fn raise_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = if raised.is_ok() { maximum } else { current };
    limit.unwrap_or(NO_LIMIT)
}
