//! Nodes: whether their workers separate users, enforce limits, and run the release of the head.

use cohabit_client::types::{DeviceKind, Enforcement, NodeRecord, NodeState, UserIsolation};

use super::super::findings::{Finding, listed};

const USERS: &str = "users";
const LIMITS: &str = "cpus, memory";
const DEVICES: &str = "GPU files";
const BUILDS: &str = "builds";

pub(super) fn check(nodes: &[NodeRecord], head_build: &str) -> Vec<Finding> {
    let present: Vec<&NodeRecord> = nodes.iter().filter(|node| node.state != NodeState::Lost).collect();
    if present.is_empty() {
        let observed = "no worker has joined, so none is checked";
        return vec![Finding::warning("nodes", observed, "start workers, then check again")];
    }
    vec![users(&present), limits(&present), devices(&present), builds(&present, head_build)]
}

fn users(nodes: &[&NodeRecord]) -> Finding {
    let shares_account = |node: &&&NodeRecord| node.isolation.users == UserIsolation::Together;
    let shared = listed(nodes.iter().filter(shares_account).map(|node| node.name.as_str()));
    match shared.is_empty() {
        true => Finding::ok(USERS, "every worker runs each job under the account of its user"),
        false => Finding::error(
            USERS,
            format!("jobs of all users run under one account on {shared}: they reach each other's files"),
            "run these workers as root",
        ),
    }
}

fn limits(nodes: &[&NodeRecord]) -> Finding {
    let unenforced = nodes.iter().filter_map(|node| match &node.isolation.host_limits {
        Enforcement::Enforced => None,
        Enforcement::Unenforced(why) => Some(format!("{} ({why})", node.name)),
    });
    let unenforced: Vec<String> = unenforced.collect();
    match unenforced.is_empty() {
        true => Finding::ok(LIMITS, "every worker enforces the cores and the memory that jobs request"),
        false => Finding::warning(
            LIMITS,
            format!("counted, but not enforced on {}", unenforced.join(", ")),
            "start these workers as systemd services with Delegate=yes",
        ),
    }
}

/// Where there are GPUs.
fn devices(nodes: &[&NodeRecord]) -> Finding {
    let has_gpus = |node: &&&NodeRecord| node.devices.iter().any(|it| it.device.kind == DeviceKind::Gpu);
    let open = nodes.iter().filter(has_gpus).filter_map(|node| match &node.isolation.devices {
        Enforcement::Enforced => None,
        Enforcement::Unenforced(why) => Some(format!("{} ({why})", node.name)),
    });
    let open: Vec<String> = open.collect();
    match open.is_empty() {
        true => Finding::ok(DEVICES, "every job reaches only the GPUs that it was given"),
        false => Finding::warning(
            DEVICES,
            format!("jobs can open the device files of all GPUs on {}", open.join(", ")),
            "run these workers as root, as systemd services with Delegate=yes",
        ),
    }
}

fn builds(nodes: &[&NodeRecord], head_build: &str) -> Finding {
    let others = nodes.iter().filter(|node| node.build != head_build);
    let others: Vec<String> = others.map(|node| format!("{} ({})", node.name, node.build)).collect();
    match others.is_empty() {
        true => Finding::ok(BUILDS, format!("head and workers run cohabit {head_build}")),
        false => Finding::warning(
            BUILDS,
            format!("the head runs cohabit {head_build}; other builds run on {}", others.join(", ")),
            "finish the upgrade: the head first, then the workers",
        ),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::Isolation;

    use super::super::super::findings::Diagnosis;
    use super::*;
    use crate::render::samples::nodes;

    fn statuses(nodes: &[NodeRecord], build: &str) -> Vec<(&'static str, Diagnosis)> {
        check(nodes, build).iter().map(|finding| (finding.check, finding.status)).collect()
    }

    #[test]
    fn nodes_that_separate_users_and_enforce_limits_pass() {
        let passed = [
            (USERS, Diagnosis::Ok),
            (LIMITS, Diagnosis::Ok),
            (DEVICES, Diagnosis::Ok),
            (BUILDS, Diagnosis::Ok),
        ];
        assert_eq!(statuses(&nodes(), "0.1.0"), passed);
    }

    #[test]
    fn nodes_that_do_not_are_named() {
        let mut all = nodes();
        all[1].isolation = Isolation::default();
        all[0].isolation.devices = Enforcement::Unenforced("no filter".into());
        let found = check(&all, "0.2.0");
        assert_eq!(
            found.iter().map(|it| it.status).collect::<Vec<_>>(),
            [Diagnosis::Error, Diagnosis::Warning, Diagnosis::Warning, Diagnosis::Warning]
        );
        for (finding, named) in found.iter().zip([
            "on trial:",
            "on trial (",
            "on gpu1 (no filter)",
            "on gpu1 (0.1.0), trial (0.1.0)",
        ]) {
            assert!(finding.observed.contains(named), "{}", finding.observed);
        }
    }

    #[test]
    fn a_cluster_without_nodes_is_not_passed_in_silence() {
        assert_eq!(statuses(&[], "0.1.0"), [("nodes", Diagnosis::Warning)]);
        let lost = nodes().into_iter().map(|node| NodeRecord { state: NodeState::Lost, ..node });
        assert_eq!(statuses(&lost.collect::<Vec<_>>(), "0.1.0"), [("nodes", Diagnosis::Warning)]);
    }
}
