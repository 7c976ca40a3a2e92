//! Estimates: what the head learns from ended jobs, what it predicts from that, and that a restart loses
//! nothing.

use serde_json::Value;

use crate::kit::*;

/// The prediction for a job with this name that waits behind a long one.
fn expected(cluster: &Cluster, name: &str) -> Value {
    let job = cluster.submit(&["--name", name, "--hold"], "sleep 0.3");
    let shown = cluster.show(&job);
    cluster.ok(&["cancel", &job]);
    shown["predicted"].clone()
}

#[test]
fn a_restarted_head_expects_of_a_job_what_it_had_learned() {
    let mut cluster = Cluster::start(&["host:4"]);
    assert!(expected(&cluster, "nap").is_null(), "nothing has ended yet");
    let naps = cluster.submit(&["--name", "nap", "--array", "1-12"], "sleep 0.3");
    cluster.end(&naps);
    let learned = expected(&cluster, "nap");
    let runtime = learned["runtime_s"].as_f64().unwrap_or_else(|| panic!("{learned}"));
    assert!((0.3..30.0).contains(&runtime), "{learned}");
    assert_eq!(learned["runs"], 12);
    let between = learned["runtime_between_s"].as_array().unwrap();
    assert!(between[0].as_f64() < Some(runtime) && between[1].as_f64() > Some(runtime), "{learned}");
    cluster.kill_head();
    cluster.restart_head();
    assert_eq!(expected(&cluster, "nap")["runtime_s"], learned["runtime_s"]);
}
