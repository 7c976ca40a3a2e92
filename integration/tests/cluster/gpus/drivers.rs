//! Sharing under the MPS of each driver: those up to 550 serve one user at a time, and know fewer options.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use nix::unistd::geteuid;

use super::kit::{GpuCluster, PART};
use crate::kit::{Cluster, until};

const DRIVERS: [&str; 3] = ["535.261.03", "550.163.01", "580.159.03"];

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

/// Only a worker that is root runs jobs of several users.
#[test]
fn with_an_old_driver_jobs_of_two_users_take_turns_on_a_gpu() {
    if !geteuid().is_root() {
        return;
    }
    let cluster = Cluster::with_head(&["--policy", "first-fit-sharing"], &[]);
    set_permissions(cluster.folder(), Permissions::from_mode(0o777)).unwrap();
    let gpus = GpuCluster::with_driver(cluster, "550.163.01");
    if !gpus.is_reachable_for_all() {
        return;
    }
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
    if !geteuid().is_root() {
        return;
    }
    let cluster = Cluster::start(&[]);
    set_permissions(cluster.folder(), Permissions::from_mode(0o777)).unwrap();
    let gpus = GpuCluster::with_driver(cluster, "580.159.03");
    if !gpus.is_reachable_for_all() {
        return;
    }
    for user in ["ada", "bea"] {
        let token = gpus.cluster.token(user, &["--role", "user", "--name", user]);
        let job = gpus.submit_endless(&[&PART[..], &["--token-file", &token]].concat());
        gpus.until_sharing(&job, "enforced");
    }
    gpus.until_clients(0, 2);
}

#[test]
fn mps_that_did_not_start_is_tried_again_and_nodes_says_so_until_it_works() {
    let gpus = GpuCluster::with(1, &[], |gpu| gpu.mps.control = cohabit_fakes::StartScript::Exits(46));
    let first = gpus.submit_endless(&PART);
    gpus.until_sharing(&first, "unenforced");
    let why = gpus.device(0)["sharing_reason"].as_str().unwrap().to_owned();
    assert!(why.contains("exclusively") && why.contains("tried again"), "{why}");
    gpus.world.edit_gpu(&gpus.uuid(0), |gpu| gpu.mps.control = cohabit_fakes::StartScript::Works).unwrap();
    gpus.cluster.ok(&["cancel", &first]);
    until("the GPU enforces limits", || gpus.device(0)["sharing"] == "enforced");
    let second = gpus.submit_endless(&PART);
    gpus.until_sharing(&second, "enforced");
}
