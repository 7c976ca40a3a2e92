//! Jobs known to slow each other down are kept apart, and others are co-located. Uses the training programs
//! of the examples on host slots.

use std::path::Path;

use serde_json::{Value, json};

use crate::kit::*;

/// Measurements on a host slot: two `charlm` jobs halve each other's speed; `digits` slows no job down.
const MEASURED: &str = "\
set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible
1,host slot,,charlm,,10,5,,,,,true
1,host slot,,charlm,,10,5,,,,,true
2,host slot,,charlm,,10,9.5,,,,,true
2,host slot,,digits,,40,38,,,,,true
3,host slot,,digits,,40,36,,,,,true
3,host slot,,digits,,40,36,,,,,true
";

/// A head with these measurements as its predictor, and one worker.
fn start(policy: &str, devices: &str) -> Cluster {
    let flags = ["--policy", policy, "--interference", "table:measured.csv", "--max-slowdown", "1.3"];
    let cluster = Cluster::with_head(&flags, &[("measured.csv", MEASURED)]);
    for model in ["charlm", "digits"] {
        std::fs::write(cluster.folder().join(format!("{model}.toml")), format!("name = \"{model}\"\n"))
            .unwrap();
    }
    let mut cluster = cluster;
    cluster.add_worker(devices);
    cluster
}

/// Submits one of the training programs, to run for hours. Returns the job's number.
fn train(cluster: &Cluster, model: &str, flags: &[&str]) -> String {
    let (length, file) = (if model == "charlm" { "--steps" } else { "--epochs" }, format!("{model}.toml"));
    let program = binary().display().to_string();
    let submit = ["submit", "--output", "quiet", "--gpus", "0.3", "--model", &file];
    let command = ["--", &program, "train", model, length, "1000000"];
    cluster.ok(&[&submit[..], flags, &command].concat()).trim().to_owned()
}

fn device(cluster: &Cluster, job: &str) -> Value {
    cluster.until_state(job, "RUNNING");
    cluster.show(job)["devices"][0].clone()
}

#[test]
fn jobs_that_slow_each_other_run_apart_and_light_ones_together() {
    let cluster = start("hybrid", "host:2");
    let (one, other) = (train(&cluster, "charlm", &[]), train(&cluster, "charlm", &[]));
    assert_ne!(device(&cluster, &one), device(&cluster, &other));
    // Both slots are taken, and on either the slowdown would exceed the limit.
    let third = train(&cluster, "charlm", &[]);
    let harmless = train(&cluster, "digits", &[]);
    device(&cluster, &harmless);
    let shown = cluster.show(&harmless);
    assert!([&one, &other].iter().any(|job| shown["sharing_with"] == json!([job])), "{shown}");
    let predicted = shown["predicted"]["slowdown"].as_f64().unwrap();
    assert!((predicted - 40.0 / 38.0).abs() < 0.002, "{shown}");
    assert_eq!(cluster.state(&third), "PENDING");
    let explained = cluster.ok(&["explain", &third]);
    assert!(explained.contains("1.3"), "{explained}");
    cluster.ok(&["cancel", &one]);
    assert_eq!(device(&cluster, &third), cluster.show(&one)["devices"][0]);
    let beside = cluster.ok(&["explain", &harmless]);
    assert!(beside.contains("Predicted slowdown: "), "{beside}");
}

#[test]
fn a_larger_slowdown_limit_allows_sharing_and_exclusive_jobs_do_not_share() {
    let cluster = start("hybrid", "host:1");
    let tolerant = ["--max-slowdown", "3"];
    let first = train(&cluster, "charlm", &tolerant);
    device(&cluster, &first);
    let strict = train(&cluster, "charlm", &["--max-slowdown", "1.9"]);
    let exclusive = train(&cluster, "digits", &["--exclusive"]);
    let second = train(&cluster, "charlm", &tolerant);
    assert_eq!(device(&cluster, &second), device(&cluster, &first));
    assert_eq!(cluster.state(&strict), "PENDING");
    assert_eq!(cluster.state(&exclusive), "PENDING");
    // The limits of all neighbors count: the first two allow this slowdown, the new job does not.
    let explained = cluster.ok(&["explain", &strict]);
    assert!(explained.contains("1.9"), "{explained}");
}

#[test]
fn a_dry_run_names_the_placement_and_the_neighbors() {
    let cluster = start("hybrid", "host:1");
    let running = train(&cluster, "charlm", &[]);
    let taken = device(&cluster, &running);
    let dry = |model: &str| {
        let file = format!("{model}.toml");
        let flags =
            ["submit", "--dry-run", "--output", "json", "--gpus", "0.3", "--model", &file, "--", "true"];
        serde_json::from_str::<Value>(&cluster.ok(&flags)).unwrap()
    };
    let joins = dry("digits");
    assert_eq!(joins["placement"]["devices"], json!([taken]), "{joins}");
    assert_eq!(joins["beside"][0]["job"], json!(running), "{joins}");
    assert!(joins["predicted"]["slowdown"].as_f64().unwrap() < 1.1, "{joins}");
    let waits = dry("charlm");
    assert!(waits["placement"].is_null() && !waits["reason"].is_null(), "{waits}");
    assert_eq!(cluster.json(&["list"])["jobs"].as_array().unwrap().len(), 1, "nothing was submitted");
}

#[test]
fn an_invalid_table_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("bad.csv", &MEASURED.replace("10,9.5", "10,fast"));
    let refused = |source: &str, expected: &[&str]| refuses(folder.path(), source, expected);
    refused("table:bad.csv", &["bad.csv", "line 4", "fast"]);
    refused("table:none.csv", &["none.csv"]);
    refused("model:nowhere", &["nowhere"]);
    refused("magic", &["magic", "table:FILE"]);
}

/// Checks that a head with this predictor does not start, and that the error contains all of these.
fn refuses(folder: &Path, source: &str, expected: &[&str]) {
    let flags = ["head", "start", "--listen", "127.0.0.1:0", "--state", "head", "--policy", "hybrid"];
    let ran =
        CommandOutput::from(cohabit(folder).args(flags).args(["--interference", source]).output().unwrap());
    assert_ne!(ran.code, 0, "{source} was taken");
    assert!(expected.iter().all(|word| ran.stderr.contains(word)), "{source}: {}", ran.stderr);
}
