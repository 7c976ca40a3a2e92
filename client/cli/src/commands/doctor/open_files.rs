//! Limits of the system that daemons run into.

use nix::sys::resource::{Resource, getrlimit};

use super::findings::Finding;

const CHECK: &str = "open files";
/// A head needs one for each worker and client, a worker a few for each rank.
const MIN_OPEN_FILES: u64 = 4_096;

pub(super) fn check() -> Vec<Finding> {
    vec![match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard >= MIN_OPEN_FILES => Finding::ok(CHECK, format!("up to {hard} at once")),
        Ok((_, hard)) => Finding::warning(
            CHECK,
            format!("only {hard} at once"),
            format!("raise LimitNOFILE (systemd) or `ulimit -Hn` to {MIN_OPEN_FILES}"),
        ),
        Err(error) => {
            Finding::warning(CHECK, format!("the limit is not known ({error})"), "look at `ulimit -Hn`")
        }
    }]
}
