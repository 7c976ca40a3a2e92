//! What a worker on this machine can isolate: users from each other, and the CPUs and memory of jobs.
//!
//! A worker makes the same checks when it starts.

use cohabit_worker_daemon::check_delegation;
use nix::unistd::geteuid;

use super::findings::Finding;

const USERS: &str = "users";
const LIMITS: &str = "cpus, memory";

pub(super) fn check() -> Vec<Finding> {
    vec![users(geteuid().is_root()), limits(check_delegation())]
}

fn users(is_root: bool) -> Finding {
    match is_root {
        true => Finding::ok(USERS, "a worker that runs as root runs each job under the account of its user"),
        false => Finding::warning(
            USERS,
            "a worker that runs as this user runs only the jobs of this account",
            "run the worker as root to serve several users",
        ),
    }
}

fn limits(check_delegation: Result<(), String>) -> Finding {
    match check_delegation {
        Ok(()) => Finding::ok(
            LIMITS,
            "can be enforced, if the worker is a systemd service with Delegate=yes and DelegateSubgroup=daemon",
        ),
        Err(why) => Finding::warning(
            LIMITS,
            format!("counted, but not enforced ({why})"),
            "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Diagnosis;
    use super::*;

    #[test]
    fn missing_isolation_is_a_warning_with_the_reason() {
        assert_eq!((users(true).status, users(false).status), (Diagnosis::Ok, Diagnosis::Warning));
        assert_eq!(limits(Ok(())).status, Diagnosis::Ok);
        let found = limits(Err("there are none".into()));
        assert_eq!(found.status, Diagnosis::Warning);
        assert!(found.observed.contains("(there are none)"), "{}", found.observed);
    }
}
