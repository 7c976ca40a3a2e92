//! Actors that share a GPU.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::kit::GpuCluster;
use crate::kit::{processes_with, until};

/// Four quarters fit where four jobs may share a GPU; by default the fourth waits, and is told why.
#[test]
fn four_quarters_share_a_gpu() {
    let gpus = GpuCluster::with(1, &["--max-sharing", "4"], |_| {});
    let go = gpus.cluster.path("go");
    let mut launch = gpus.cluster.launch(&["quarters", "4", &go, &gpus.client()]);
    let line = launch.line();
    let jobs: Vec<&str> = line.strip_prefix("jobs ").unwrap_or_else(|| panic!("{line}")).split(' ').collect();
    assert_eq!(jobs.len(), 4);
    for job in &jobs {
        gpus.until_sharing(job, "enforced");
        let shown = gpus.cluster.show(job);
        assert_eq!((shown["state"].as_str(), shown["share"].as_f64()), (Some("RUNNING"), Some(0.25)));
        let sheet = gpus.cluster.ok(&["show", job]);
        assert!(sheet.contains("0.25 GPUs, 8 GiB on each GPU"), "{sheet}");
        assert_eq!(shown["devices"], json!([gpus.uuid(0)]));
    }
    let of_first = processes_with(&format!("COHABIT_JOB_ID={}\0", jobs[0]));
    let of_first = of_first.into_iter().filter(|pid| gpus.cluster.program_processes().contains(pid));
    let of_first: Vec<Pid> = of_first.map(Pid::from_raw).collect();
    of_first.iter().for_each(|pid| kill(*pid, Signal::SIGSTOP).unwrap());
    let actors = gpus.cluster.json(&["actors", "test"]);
    of_first.iter().for_each(|pid| kill(*pid, Signal::SIGCONT).unwrap());
    assert_eq!(actors["silent"].as_array().unwrap().len(), 1);
    let actors = actors["actors"].as_array().unwrap();
    let has_limits = actors.iter().all(|actor| actor["sharing"] == "enforced");
    assert!(has_limits, "also where one process does not answer: {actors:?}");
    for client in gpus.until_clients(0, 4) {
        let environment = fs::read(format!("/proc/{client}/environ")).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        assert!(environment.contains("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M"), "{environment}");
    }
    fs::write(&go, "").unwrap();
    assert_eq!(launch.end().code, 0);
    gpus.until_clients(0, 0);

    let gpus = GpuCluster::start(1);
    let go = gpus.cluster.path("go");
    let launch = gpus.cluster.launch(&["quarters", "4", &go, &gpus.client()]);
    until("the fourth waits", || {
        gpus.cluster.jobs_of("actor", "RUNNING").len() == 3
            && gpus.cluster.jobs_of("actor", "PENDING").len() == 1
    });
    let fourth = gpus.cluster.jobs_of("actor", "PENDING").remove(0);
    let reason = "needs a GPU with room for one more rank; each already runs 3, the limit";
    until("it is told why", || {
        gpus.cluster.show(&fourth)["reason"].as_str().is_some_and(|it| it.contains(reason))
    });
    fs::write(&go, "").unwrap();
    assert_eq!(launch.end().code, 0);
    let reason = "application 'test' (job 1) ended it before it ran: it was not needed any more";
    assert_eq!(gpus.cluster.end(&fourth)["reason"], reason);
}
