//! The limit of open files, which daemons may reach.

use nix::sys::resource::{Resource, getrlimit};

use super::findings::Finding;

const CHECK: &str = "open files";
/// A head needs one per worker and client, a worker a few per rank.
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
            Finding::warning(CHECK, format!("cannot determine the limit ({error})"), "check `ulimit -Hn`")
        }
    }]
}
