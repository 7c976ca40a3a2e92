//! Memory limits: a job that takes too much ends, and its neighbors are not affected.

use super::kit::{GpuCluster, PART};

#[test]
fn a_job_over_its_limit_runs_out_of_memory_and_its_neighbor_keeps_running() {
    let gpus = GpuCluster::start(1);
    let neighbor = gpus.submit_endless(&PART);
    gpus.until_steps(&neighbor, 1);
    let greedy = gpus.submit(&PART, &["--steps", "1000", "--rate", "50", "--alloc", "30G"]);
    let ended = gpus.cluster.end(&greedy);
    assert_eq!(
        (ended["state"].as_str(), ended["reason_code"].as_str()),
        (Some("OUT_OF_MEMORY"), Some("gpu_oom"))
    );
    assert_eq!(ended["exit_code"], 1);
    assert!(ended["reason"].as_str().unwrap().contains("out of memory"), "{ended}");
    let before = gpus.cluster.show(&neighbor)["progress"]["step"].as_u64();
    crate::kit::until("the neighbor goes on", || {
        gpus.cluster.show(&neighbor)["progress"]["step"].as_u64() > before
    });
    assert_eq!(gpus.cluster.show(&neighbor)["attempt"], 1);
}

#[test]
fn an_ordinary_failure_is_not_taken_for_a_lack_of_memory() {
    let gpus = GpuCluster::start(1);
    let ended = gpus.cluster.end(&gpus.submit(&PART, &["--steps", "3", "--rate", "50", "--exit", "3"]));
    assert_eq!((ended["state"].as_str(), ended["reason_code"].as_str()), (Some("FAILED"), Some("exit_code")));
}

#[test]
fn a_job_that_runs_out_of_memory_is_tried_again_if_it_has_retries() {
    let gpus = GpuCluster::start(1);
    let flags = [&PART[..], &["--retries", "1"]].concat();
    let ended = gpus.cluster.end(&gpus.submit(&flags, &["--steps", "3", "--rate", "50", "--alloc", "30G"]));
    assert_eq!(ended["state"], "OUT_OF_MEMORY");
    assert_eq!(ended["attempt"], 2);
}
