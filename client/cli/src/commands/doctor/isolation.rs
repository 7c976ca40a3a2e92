//! What a worker on this machine could keep apart: users from each other, and jobs from what others claimed.
//!
//! A worker finds out for itself when it starts; this tells what it would take.

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
        true => Finding::ok(USERS, "a worker run by root runs each job as the account of its user"),
        false => Finding::warning(
            USERS,
            "a worker run by you runs the jobs of all users as you",
            "run it as root where users must be told apart",
        ),
    }
}

fn limits(check_delegation: Result<(), String>) -> Finding {
    match check_delegation {
        Ok(()) => Finding::ok(
            LIMITS,
            "can be limits for jobs, if the worker is a service with Delegate=yes and DelegateSubgroup=daemon",
        ),
        Err(why) => Finding::warning(
            LIMITS,
            format!("are counted for jobs, but nobody enforces them ({why})"),
            "boot with cgroups of version 2 (systemd.unified_cgroup_hierarchy=1)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Diagnosis;
    use super::*;

    #[test]
    fn what_is_not_kept_apart_is_doubtful_and_said_with_the_reason() {
        assert_eq!((users(true).status, users(false).status), (Diagnosis::Ok, Diagnosis::Warning));
        assert_eq!(limits(Ok(())).status, Diagnosis::Ok);
        let found = limits(Err("there are none".into()));
        assert_eq!(found.status, Diagnosis::Warning);
        assert!(found.observed.contains("(there are none)"), "{}", found.observed);
    }
}
