//! Several jobs on one GPU: under MPS, within limits, and at most `--max-sharing`.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use super::kit::{GpuCluster, PART};
use crate::kit::until;

#[test]
fn two_jobs_share_a_gpu_within_enforced_limits() {
    let gpus = GpuCluster::start(1);
    let (one, other) = (gpus.submit_endless(&PART), gpus.submit_endless(&PART));
    for job in [&one, &other] {
        gpus.until_sharing(job, "enforced");
        gpus.until_steps(job, 1);
    }
    let shown = gpus.cluster.show(&one);
    assert_eq!(shown["sharing_with"], json!([other]));
    assert_eq!(gpus.until_clients(0, 2).len(), 2);
    let device = gpus.device(0);
    assert_eq!(device["sharing"], "enforced", "{device}");
    gpus.cluster.ok(&["cancel", &one, &other]);
    // No client is left: the daemon stops after a while, and its server with it.
    until("the MPS daemon has gone", || gpus.mps_processes().is_empty());
}

#[test]
fn a_job_that_shares_finds_its_limits_in_its_environment() {
    let gpus = GpuCluster::start(1);
    let flags = ["--gpus", "0.25", "--gpu-mem", "20G", "--gpu-processes", "2", "--cap-compute"];
    let environment = gpus.environment_of(&flags);
    let uuid = gpus.uuid(0);
    for expected in [
        "CUDA_VISIBLE_DEVICES=0".to_owned(),
        format!("COHABIT_GPU_UUIDS={uuid}"),
        "XLA_PYTHON_CLIENT_MEM_FRACTION=0.061".to_owned(),
        "TF_FORCE_GPU_ALLOW_GROWTH=true".to_owned(),
        "APPTAINERENV_CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10240M".to_owned(),
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10240M".to_owned(),
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25".to_owned(),
        "COHABIT_SHARE=0.25".to_owned(),
    ] {
        assert!(environment.lines().any(|line| line == expected), "{expected} is not in\n{environment}");
    }
    let uncapped = gpus.environment_of(&PART);
    assert!(!uncapped.contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "{uncapped}");
}

#[test]
fn a_whole_gpu_is_free_of_mps_and_waits_until_its_daemon_has_gone() {
    let gpus = GpuCluster::start(1);
    gpus.cluster.ok(&["wait", &gpus.submit(&PART, &["--steps", "3", "--rate", "50"])]);
    assert!(!gpus.mps_processes().is_empty(), "the daemon stays for a while");
    let environment = gpus.environment_of(&["--gpus", "1"]);
    assert!(!environment.contains("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "{environment}");
    assert!(gpus.mps_processes().is_empty(), "it did not go before the job came");
    let pipe = environment.lines().find_map(|line| line.strip_prefix("CUDA_MPS_PIPE_DIRECTORY="));
    let nowhere = std::fs::read_dir(pipe.expect("a job is kept away from strangers' daemons")).unwrap();
    assert_eq!(nowhere.count(), 0);
}

#[test]
fn no_more_than_three_jobs_share_a_gpu() {
    let gpus = GpuCluster::start(1);
    let small = ["--gpus", "0.1", "--gpu-mem", "1G"];
    let running: Vec<String> = (0..3).map(|_| gpus.submit_endless(&small)).collect();
    running.iter().for_each(|job| gpus.until_steps(job, 1));
    let fourth = gpus.submit_endless(&small);
    until("the fourth says why it waits", || {
        let explained = gpus.cluster.ok(&["explain", &fourth]);
        explained.contains("room for one more rank")
    });
    gpus.cluster.ok(&["cancel", &running[0]]);
    gpus.until_steps(&fourth, 1);
}

#[test]
fn a_job_without_a_memory_figure_gets_a_gpu_alone() {
    let gpus = GpuCluster::start(2);
    let (one, other) = (gpus.submit_endless(&["--gpus", "0.3"]), gpus.submit_endless(&["--gpus", "0.3"]));
    gpus.until_steps(&one, 1);
    gpus.until_steps(&other, 1);
    assert_ne!(gpus.cluster.show(&one)["devices"], gpus.cluster.show(&other)["devices"]);
    assert_eq!(gpus.cluster.show(&one)["sharing"], json!(null));
    assert!(gpus.mps_processes().is_empty(), "nobody shares");
}

#[test]
fn memory_of_programs_that_draw_is_foreign() {
    let gpus = GpuCluster::start(1);
    let own = std::process::id() as i32;
    gpus.world.add_graphics_process(own, &gpus.uuid(0), 3 << 30).unwrap();
    until("its memory is seen", || gpus.device(0)["foreign_memory"].as_u64() >= Some(3 << 30));
}

#[test]
fn a_job_with_whole_gpus_finds_them_by_number_or_as_the_worker_says() {
    let visible = |flags: &[&str]| {
        let environment = GpuCluster::with(2, flags, |_| {}).environment_of(&["--gpus", "2"]);
        let value = |name: &str| {
            let line = environment.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().to_owned()
        };
        (value("CUDA_VISIBLE_DEVICES"), value("COHABIT_GPU_UUIDS"))
    };
    let (numbers, uuids) = visible(&[]);
    assert_eq!(numbers, "0,1");
    assert_eq!(visible(&["--device-ids", "uuid"]), (uuids.clone(), uuids));
}

#[test]
fn memory_of_foreign_processes_reduces_what_can_be_placed() {
    let gpus = GpuCluster::start(1);
    let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let uuid = gpus.uuid(0);
    gpus.world.add_foreign_process(stranger.id() as i32, &uuid, 130 << 30).unwrap();
    until("the stranger is seen", || gpus.device(0)["foreign_memory"].as_u64() >= Some(130 << 30));
    let waiting = gpus.submit_endless(&PART);
    until("it waits for memory", || gpus.cluster.show(&waiting)["reason_code"] == "waiting_for_memory");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    gpus.until_steps(&waiting, 1);
}

#[test]
fn the_history_has_the_rates_of_colocated_jobs() {
    let gpus = GpuCluster::start(1);
    let alone = gpus.submit_endless(&PART);
    gpus.until_steps(&alone, 1);
    let beside = gpus.submit(&PART, &["--steps", "60", "--rate", "30"]);
    gpus.cluster.ok(&["wait", &beside]);
    let history = gpus.cluster.folder().join("head/journal.sqlite");
    until("both were seen together", || together(&history, &beside, &alone));
}

/// Whether the history has the rate of a job beside exactly this other job.
fn together(history: &Path, job: &str, other: &str) -> bool {
    let opened = Connection::open_with_flags(history, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let asked = "SELECT count(*) FROM stretches WHERE job = ?1 AND neighbours = json_array(?2) \
                 AND sharing = 'mps' AND steps > 0 AND rate > 0";
    opened.query_one(asked, [job, other], |row| row.get::<_, i64>(0)).is_ok_and(|rows| rows > 0)
}
