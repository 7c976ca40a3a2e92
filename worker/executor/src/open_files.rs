//! The limit of open files that a rank inherits.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Lowers the soft limit of open files of this process and of everything that it starts.
pub(crate) fn lower_open_file_limit(limit: u64) {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A failure is harmless: the rank may then open more files than usual.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, limit.min(hard), hard);
    }
}
