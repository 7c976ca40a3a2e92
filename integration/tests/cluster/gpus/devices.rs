//! GPU discovery, and what a worker does without GPUs.

use cohabit_fakes::{FakeGpu, FakeWorld, LibraryStart, Mig, examples};
use serde_json::json;

use super::kit::GpuCluster;
use crate::kit::{Cluster, until};

#[test]
fn a_worker_reports_all_properties_of_its_gpus() {
    let gpus = GpuCluster::with(2, &[], |gpu| gpu.utilization = 37);
    let device = gpus.device(1);
    assert_eq!(device["model"], "Fake H200 (not a GPU)");
    assert_eq!(device["memory"], 141_u64 << 30);
    assert_eq!(device["gpu"]["compute_capability"], "9.0");
    assert_eq!(device["gpu"]["multiprocessors"], 132);
    assert_eq!(device["gpu"]["driver"], "580.159.03");
    assert_eq!(device["health"], "well");
    assert_eq!(device["gpu"]["peers"].as_array().unwrap().len(), 1);
    until("telemetry has come", || gpus.device(1)["telemetry"]["utilisation"] == json!(0.37));
}

#[test]
fn a_gpu_that_is_partitioned_by_mig_gets_no_jobs() {
    let gpus = GpuCluster::with(1, &[], |gpu| gpu.mig = Mig::On);
    let device = gpus.device(0);
    assert_eq!((device["sharing"].as_str(), device["health"].as_str()), (Some("alone"), Some("fenced")));
    assert!(device.to_string().contains("nvidia-smi -mig 0"), "{device}");
}

/// Starts a cluster whose worker finds a driver in this state.
fn with_driver(start: LibraryStart) -> (Cluster, String) {
    let mut cluster = Cluster::start(&[]);
    let world = FakeWorld::create(&cluster.folder().join("world"), vec![FakeGpu::numbered(0)]).unwrap();
    world.edit_library(|library| library.start = start).unwrap();
    let installed = world.install(&examples().unwrap()).unwrap();
    let library = installed.nvml.display().to_string();
    cluster.add_worker_in(&[("PATH", &installed.search_path())], "auto", &["--nvml-library", &library]);
    let log = cluster.read("daemons.log");
    (cluster, log)
}

#[test]
fn without_a_working_driver_a_worker_offers_a_host_slot_and_says_why() {
    for (start, words) in [
        (LibraryStart::DriverNotLoaded, "not loaded"),
        (LibraryStart::VersionMismatch, "version"),
        (LibraryStart::NoPermission, "access to /dev/nvidia"),
    ] {
        let (cluster, log) = with_driver(start);
        let nodes = cluster.json(&["nodes"]);
        assert_eq!(nodes["nodes"][0]["devices"][0]["kind"], "host", "{nodes}");
        assert!(log.to_lowercase().contains(words), "{start:?}: {log}");
        cluster.ok(&["run", "--", "true"]);
    }
}
