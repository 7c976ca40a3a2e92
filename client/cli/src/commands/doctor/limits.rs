//! Limits of the system that daemons run into.

use nix::sys::resource::{Resource, getrlimit};

use super::findings::Finding;

const CHECK: &str = "open files";
/// A head needs one for each worker and client, a worker a few for each rank.
const ENOUGH_FILES: u64 = 4_096;

pub(super) fn look() -> Vec<Finding> {
    vec![match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard >= ENOUGH_FILES => Finding::good(CHECK, format!("up to {hard} at once")),
        Ok((_, hard)) => Finding::doubtful(
            CHECK,
            format!("only {hard} at once"),
            format!("raise LimitNOFILE (systemd) or `ulimit -Hn` to {ENOUGH_FILES}"),
        ),
        Err(error) => {
            Finding::doubtful(CHECK, format!("the limit is not known ({error})"), "look at `ulimit -Hn`")
        }
    }]
}
