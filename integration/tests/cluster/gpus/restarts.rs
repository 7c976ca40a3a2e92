//! A worker that is killed while jobs share its GPUs, and restarted.

use super::kit::{GpuCluster, PART};
use crate::kit::until;

#[test]
fn a_killed_worker_adopts_its_mps_daemon_and_jobs_keep_running() {
    let mut gpus = GpuCluster::start(1);
    let (one, other) = (gpus.submit_endless(&PART), gpus.submit_endless(&PART));
    gpus.until_sharing(&one, "enforced");
    gpus.until_sharing(&other, "enforced");
    let daemons = gpus.mps_processes();
    gpus.cluster.kill_worker(0);
    gpus.cluster.restart_worker(0);
    let third = gpus.submit_endless(&PART);
    gpus.until_sharing(&third, "enforced");
    assert_eq!(gpus.mps_processes(), daemons, "the same daemon serves all");
    for job in [&one, &other] {
        let shown = gpus.cluster.show(job);
        assert_eq!(
            (shown["attempt"].as_u64(), shown["sharing"].as_str()),
            (Some(1), Some("enforced")),
            "{shown}"
        );
    }
}

#[test]
fn a_daemon_that_died_with_its_worker_has_no_culprit() {
    let mut gpus = GpuCluster::start(1);
    let job = gpus.submit(&PART, &["--steps", "200", "--rate", "50", "--checkpoint"]);
    gpus.until_sharing(&job, "enforced");
    gpus.cluster.kill_worker(0);
    for pid in gpus.mps_processes() {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
    }
    gpus.cluster.restart_worker(0);
    let ended = gpus.cluster.end(&job);
    assert_eq!((ended["state"].as_str(), ended["attempt"].as_u64()), (Some("COMPLETED"), Some(2)), "{ended}");
}

#[test]
fn an_unused_daemon_is_stopped_by_the_next_worker() {
    let mut gpus = GpuCluster::start(1);
    gpus.cluster.ok(&["wait", &gpus.submit(&PART, &["--steps", "3", "--rate", "50"])]);
    assert!(!gpus.mps_processes().is_empty());
    gpus.cluster.kill_worker(0);
    gpus.cluster.restart_worker(0);
    until("nobody's daemon has gone", || gpus.mps_processes().is_empty());
}
