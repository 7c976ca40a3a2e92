//! Simulated GPUs (`--devices sim:…`) have memory that is counted: which jobs share one, what screens say.

use serde_json::{Value, json};

use crate::kit::{Cluster, until};

const ENDLESS: &str = "sleep 1000";

/// A cluster with one simulated GPU and these sharing rules.
fn cluster(flags: &[&str]) -> Cluster {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker_with("sim:1xH200-141G", flags);
    cluster
}

fn submit(cluster: &Cluster, gpus: &str, more: &[&str]) -> String {
    cluster.submit(&[&["--gpus", gpus], more].concat(), ENDLESS)
}

fn until_it_waits(cluster: &Cluster, job: &str, words: &str) -> Value {
    until("it is told why it waits", || {
        cluster.show(job)["reason"].as_str().is_some_and(|reason| reason.contains(words))
    });
    cluster.show(job)
}

#[test]
fn the_operator_limits_how_many_jobs_share_a_gpu() {
    let cluster = cluster(&["--max-sharing", "2"]);
    let running: Vec<String> = (0..2).map(|_| submit(&cluster, "0.1", &["--gpu-mem", "1G"])).collect();
    running.iter().for_each(|job| cluster.until_state(job, "RUNNING"));
    let third = submit(&cluster, "0.1", &["--gpu-mem", "1G"]);
    let reason = "needs a GPU with room for one more rank; each already runs 2, the limit";
    let waiting = until_it_waits(&cluster, &third, reason);
    assert_eq!(waiting["reason_code"], "waiting_for_devices");
    cluster.ok(&["cancel", &running[0]]);
    cluster.until_state(&third, "RUNNING");
}

#[test]
fn the_operator_sets_the_memory_reserve() {
    let cluster = cluster(&["--gpu-reserve", "41G"]);
    let first = submit(&cluster, "0.5", &["--gpu-mem", "60G"]);
    cluster.until_state(&first, "RUNNING");
    let second = submit(&cluster, "0.5", &["--gpu-mem", "41G"]);
    let waiting = until_it_waits(&cluster, &second, "needs 41 GiB of GPU memory plus a reserve of 41 GiB");
    assert_eq!(waiting["reason_code"], "waiting_for_memory");
    let third = submit(&cluster, "0.5", &["--gpu-mem", "40G", "--priority", "1"]);
    cluster.until_state(&third, "RUNNING");
}

#[test]
fn a_share_without_a_memory_demand_gets_a_gpu_alone_and_later_jobs_get_the_reason() {
    let cluster = cluster(&[]);
    let alone = submit(&cluster, "0.3", &[]);
    cluster.until_state(&alone, "RUNNING");
    assert_eq!(cluster.show(&alone)["share"], json!(1.0));
    let other = submit(&cluster, "0.3", &[]);
    until_it_waits(&cluster, &other, "it does not state how much GPU memory it needs (--gpu-mem)");
}

#[test]
fn a_job_that_requires_enforcement_is_refused_with_the_reason() {
    let cluster = cluster(&[]);
    let flags = ["--gpus", "0.3", "--gpu-mem", "8G", "--enforced", "--", "true"];
    let refused = cluster.run(&[&["submit"], &flags[..]].concat());
    assert_eq!(refused.code, 65, "{}", refused.stderr);
    assert!(refused.stderr.contains("it requires enforced limits"), "{}", refused.stderr);
    assert!(refused.stderr.contains("of node0)"), "{}", refused.stderr);
}

#[test]
fn every_screen_marks_simulated_gpus() {
    let cluster = cluster(&[]);
    for flags in [&["nodes"][..], &["nodes", "--output", "wide"]] {
        assert!(cluster.ok(flags).contains("H200 (simulated)"), "{}", cluster.ok(flags));
    }
    let device = &cluster.json(&["nodes"])["nodes"][0]["devices"][0];
    assert_eq!((&device["kind"], &device["health"]), (&json!("fake"), &json!("well")), "{device}");
    assert_eq!((&device["sharing"], &device["telemetry"]), (&json!("unenforced"), &Value::Null), "{device}");
}
