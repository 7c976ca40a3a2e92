//! Sharing under the MPS of each driver: those up to 550 serve one user at a time, and know fewer options.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use cohabit_fakes::StartScript;
use nix::unistd::geteuid;

use super::kit::{GpuCluster, PART};
use crate::kit::{Cluster, say, until};

const DRIVERS: [&str; 3] = ["535.261.03", "550.163.01", "580.159.03"];

/// A cluster whose worker runs jobs of several users. Only root can do that, with fakes that all users reach;
/// otherwise the test that needs it says so and passes.
fn of_several_users(policy: &str, driver: &str) -> Option<GpuCluster> {
    if !geteuid().is_root() {
        say("skipped: only root may run jobs as the accounts of their users");
        return None;
    }
    let cluster = Cluster::with_head(&["--policy", policy], &[]);
    set_permissions(cluster.folder(), Permissions::from_mode(0o777)).unwrap();
    let gpus = GpuCluster::with_driver(cluster, driver);
    if !gpus.is_reachable_for_all() {
        say("skipped: other users cannot reach the directory of this build");
        return None;
    }
    Some(gpus)
}

#[test]
fn jobs_of_one_user_share_a_gpu_under_mps_with_every_driver() {
    for driver in DRIVERS {
        let gpus = GpuCluster::with_driver(Cluster::start(&[]), driver);
        let jobs = [gpus.submit_endless(&PART), gpus.submit_endless(&PART)];
        for job in &jobs {
            gpus.until_sharing(job, "enforced");
        }
        gpus.until_clients(0, 2);
    }
}

#[test]
fn with_an_old_driver_jobs_of_two_users_take_turns_on_a_gpu() {
    let Some(gpus) = of_several_users("first-fit-sharing", "550.163.01") else { return };
    let device = gpus.device(0);
    assert_eq!(device["sharing"], "one-user", "{device}");
    let token = |user: &str| gpus.cluster.token(user, &["--role", "user", "--name", user]);
    let (ada, bea) = (token("ada"), token("bea"));
    let submit = |token: &str| gpus.submit_endless(&[&PART[..], &["--token-file", token]].concat());
    let adas = submit(&ada);
    gpus.until_sharing(&adas, "enforced");
    let (beas, second) = (submit(&bea), submit(&ada));
    gpus.until_sharing(&second, "enforced");
    gpus.until_clients(0, 2);
    until("bea's job says why it waits", || {
        gpus.cluster.show(&beas)["reason"].as_str().is_some_and(|why| why.contains("no other user shares"))
    });
    gpus.cluster.ok(&["cancel", &adas, &second]);
    gpus.until_sharing(&beas, "enforced");
    gpus.until_steps(&beas, 1);
}

#[test]
fn with_a_current_driver_jobs_of_two_users_share_a_gpu() {
    let Some(gpus) = of_several_users("first-fit-sharing", "580.159.03") else { return };
    for user in ["ada", "bea"] {
        let token = gpus.cluster.token(user, &["--role", "user", "--name", user]);
        let job = gpus.submit_endless(&[&PART[..], &["--token-file", &token]].concat());
        gpus.until_sharing(&job, "enforced");
    }
    gpus.until_clients(0, 2);
}

#[test]
fn mps_that_did_not_start_is_tried_again_and_nodes_says_so_until_it_works() {
    let gpus = GpuCluster::with(1, &[], |gpu| gpu.mps.control = StartScript::Exits(46));
    let first = gpus.submit_endless(&PART);
    gpus.until_sharing(&first, "unenforced");
    let why = gpus.device(0)["sharing_reason"].as_str().unwrap().to_owned();
    assert!(why.contains("exclusively") && why.contains("tried again"), "{why}");
    gpus.world.edit_gpu(&gpus.uuid(0), |gpu| gpu.mps.control = StartScript::Works).unwrap();
    gpus.cluster.ok(&["cancel", &first]);
    until("the GPU enforces limits", || gpus.device(0)["sharing"] == "enforced");
    let second = gpus.submit_endless(&PART);
    gpus.until_sharing(&second, "enforced");
}
