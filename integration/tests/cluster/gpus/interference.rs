//! Co-location by predicted slowdown: from a table, and learned while jobs run.

use serde_json::{Value, json};

use super::kit::GpuCluster;
use crate::kit::{Cluster, TIMEOUT, until, until_within};

/// Measurements on this GPU: `heavy` jobs halve each other's speed and slow no other job. For `sly` jobs the
/// table wrongly says that they slow no job either.
const MEASURED: &str = "\
set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible
1,fake h200 (not a gpu),mps,heavy,32,50,25,,,,,true
1,fake h200 (not a gpu),mps,heavy,32,50,25,,,,,true
2,fake h200 (not a gpu),mps,heavy,32,50,48,,,,,true
2,fake h200 (not a gpu),mps,light,32,50,49,,,,,true
3,fake h200 (not a gpu),mps,sly,32,50,49,,,,,true
3,fake h200 (not a gpu),mps,sly,32,50,49,,,,,true
";

/// Takes steps until it is stopped, and resumes from its checkpoint.
const ENDLESS: [&str; 5] = ["--steps", "1000000", "--rate", "50", "--checkpoint"];

fn start(gpus: u8) -> GpuCluster {
    let flags = ["--policy", "hybrid", "--interference", "table:measured.csv", "--max-slowdown", "1.3"];
    let cluster = Cluster::with_head(&flags, &[("measured.csv", MEASURED)]);
    for model in ["heavy", "light", "sly", "new"] {
        std::fs::write(
            cluster.folder().join(format!("{model}.toml")),
            format!("name = \"{model}\"\nbatch-size = 32\n"),
        )
        .unwrap();
    }
    GpuCluster::of(cluster, gpus, &[], |_| {})
}

/// Submits a job that shares a GPU and trains this model.
fn train(gpus: &GpuCluster, model: &str, flags: &[&str], client: &[&str]) -> String {
    let file = format!("{model}.toml");
    let flags = [&["--gpus", "0.3", "--model", &file], flags].concat();
    gpus.submit(&flags, client)
}

const MEMORY: [&str; 2] = ["--gpu-mem", "10G"];

fn device(gpus: &GpuCluster, job: &str) -> Value {
    gpus.cluster.until_state(job, "RUNNING");
    gpus.cluster.show(job)["devices"][0].clone()
}

#[test]
fn jobs_that_slow_each_other_get_separate_gpus_and_a_light_one_joins() {
    let gpus = start(2);
    let (one, other) = (train(&gpus, "heavy", &MEMORY, &ENDLESS), train(&gpus, "heavy", &MEMORY, &ENDLESS));
    assert_ne!(device(&gpus, &one), device(&gpus, &other));
    let light = train(&gpus, "light", &MEMORY, &ENDLESS);
    let third = train(&gpus, "heavy", &MEMORY, &ENDLESS);
    device(&gpus, &light);
    gpus.until_sharing(&light, "enforced");
    let shown = gpus.cluster.show(&light);
    assert!([&one, &other].iter().any(|job| shown["sharing_with"] == json!([job])), "{shown}");
    assert!((shown["predicted"]["slowdown"].as_f64().unwrap() - 50.0 / 49.0).abs() < 0.002, "{shown}");
    assert_eq!(gpus.cluster.state(&third), "PENDING");
}

#[test]
fn a_pair_with_a_large_measured_slowdown_is_separated_and_stays_apart() {
    let gpus = start(1);
    let client = [&ENDLESS[..], &["--mps-factor", "2"]].concat();
    let first = train(&gpus, "sly", &MEMORY, &client);
    // The rate alone must be measured first.
    until("the first has run for a while", || {
        gpus.cluster.show(&first)["progress"]["step"].as_u64() > Some(500)
    });
    let second = train(&gpus, "sly", &MEMORY, &client);
    assert_eq!(device(&gpus, &second), device(&gpus, &first), "the table says that they get on");
    // Two co-location samples, the second of twenty seconds, must show the slowdown.
    until_within(3 * TIMEOUT, "the one that came last has left", || {
        let shown = gpus.cluster.show(&second);
        shown["state"] == "PENDING" && shown["attempt"] == 1
    });
    let explanation = gpus.cluster.ok(&["explain", &second]);
    assert!(explanation.contains(&format!("job {first}")), "{explanation}");
    // The head remembers: the two are not co-located again, and the second job continues after the first.
    assert_eq!(gpus.cluster.state(&first), "RUNNING");
    gpus.cluster.ok(&["cancel", &first]);
    gpus.until_steps(&second, 2);
    assert_eq!(gpus.cluster.show(&first)["attempt"], 1);
}

#[test]
fn a_job_without_a_memory_demand_shares_once_its_memory_is_known() {
    let gpus = start(1);
    let short = ["--steps", "600", "--rate", "50", "--alloc", "6G"];
    let first = train(&gpus, "light", &[], &short);
    device(&gpus, &first);
    let meanwhile = train(&gpus, "light", &[], &short);
    // Its memory is unknown: it has the GPU to itself, and the next job waits.
    assert_eq!(gpus.cluster.show(&first)["sharing"], json!(null));
    assert_eq!(gpus.cluster.state(&meanwhile), "PENDING");
    gpus.cluster.ok(&["wait", &first]);
    gpus.cluster.ok(&["cancel", &meanwhile]);
    let client = [&ENDLESS[..], &["--alloc", "6G"]].concat();
    let (one, other) = (train(&gpus, "light", &[], &client), train(&gpus, "light", &[], &client));
    for job in [&one, &other] {
        gpus.until_sharing(job, "enforced");
    }
    let shown = gpus.cluster.show(&one);
    assert_eq!(shown["sharing_with"], json!([other]));
    let predicted = shown["predicted"]["gpu_memory"].as_u64().unwrap();
    assert!((6 << 30..8 << 30).contains(&predicted), "{shown}");
}

#[test]
fn a_job_that_outgrows_its_predicted_memory_is_run_again_alone_and_loses_no_retry() {
    let gpus = start(1);
    gpus.cluster
        .ok(&["wait", &train(&gpus, "light", &[], &["--steps", "600", "--rate", "50", "--alloc", "6G"])]);
    let grown = train(&gpus, "light", &[], &["--steps", "20", "--rate", "50", "--alloc", "20G"]);
    let shown = gpus.cluster.end(&grown);
    assert_eq!((&shown["state"], &shown["attempt"]), (&json!("COMPLETED"), &json!(2)), "{shown}");
    let explanation = gpus.cluster.ok(&["explain", &grown]);
    assert!(explanation.contains("predicted"), "{explanation}");
}

#[test]
fn a_head_with_default_settings_shares_gpus_and_names_its_predictor() {
    let gpus = GpuCluster::of(Cluster::with_head(&[], &[]), 1, &[], |_| {});
    let little = ["--gpus", "0.3", "--gpu-mem", "10G"];
    let (one, other) = (gpus.submit(&little, &ENDLESS), gpus.submit(&little, &ENDLESS));
    for job in [&one, &other] {
        gpus.until_sharing(job, "enforced");
    }
    assert_eq!(gpus.cluster.show(&one)["sharing_with"], json!([other]));
    let models = gpus.cluster.json(&["models"]);
    assert_eq!(models["base"], "pretrained", "{models}");
    let refused = gpus.cluster.run(&["models", "use", "7"]);
    assert!(refused.code != 0 && refused.stderr.contains('7'), "{}", refused.stderr);
    gpus.cluster.ok(&["models", "use", "base"]);
    // Two jobs that request most of the memory do not share.
    let much = ["--gpus", "0.35", "--gpu-mem", "10G", "--max-slowdown", "1.01"];
    let third = gpus.submit(&much, &ENDLESS);
    until("it says why it waits", || gpus.cluster.ok(&["explain", &third]).contains("1.01"));
}
