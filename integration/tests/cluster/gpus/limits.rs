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

#[test]
fn a_second_process_does_not_double_the_limit_of_a_job() {
    let gpus = GpuCluster::start(1);
    let neighbor = gpus.submit_endless(&PART);
    let greedy =
        gpus.submit(&PART, &["--steps", "1000000", "--rate", "50", "--processes", "2", "--alloc", "15G"]);
    let ended = gpus.cluster.end(&greedy);
    assert_eq!(
        (ended["state"].as_str(), ended["reason_code"].as_str()),
        (Some("OUT_OF_MEMORY"), Some("gpu_oom")),
        "{ended}"
    );
    assert_eq!(gpus.cluster.state(&neighbor), "RUNNING");
}

/// Runs a fake training without the variable that limits it.
fn without_its_limit(gpus: &GpuCluster, flags: &[&str], client: &str) -> String {
    let script = format!("unset CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; exec {} {client}", gpus.client());
    gpus.cluster.submit(flags, &script)
}

#[test]
fn a_job_that_drops_its_limit_keeps_that_of_the_server() {
    let gpus = GpuCluster::start(1);
    let job = without_its_limit(&gpus, &PART, "--steps 1000 --rate 50 --alloc 30G");
    let ended = gpus.cluster.end(&job);
    assert_eq!(ended["reason_code"], "gpu_oom", "{ended}");
}

#[test]
fn a_job_that_drops_its_limit_beside_one_with_a_higher_limit_is_not_called_enforced() {
    let gpus = GpuCluster::start(1);
    let large = gpus.submit_endless(&["--gpus", "0.5", "--gpu-mem", "60G"]);
    gpus.until_sharing(&large, "enforced");
    let job = without_its_limit(&gpus, &PART, "--steps 1000000 --rate 50 --alloc 1G");
    gpus.until_sharing(&job, "unenforced");
    let shown = gpus.cluster.show(&job).to_string();
    assert!(shown.contains("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "{shown}");
    gpus.until_sharing(&large, "enforced");
}
