//! What jobs do with their GPUs: measured by the worker, kept by the head.

use serde_json::Value;

use super::kit::GpuCluster;
use crate::idle_sessions::idle;
use crate::kit::{Cluster, until};
use crate::web::server::WebServer;

#[test]
fn what_a_job_does_with_its_gpu_is_measured_and_kept() {
    let mut gpus = GpuCluster::with(1, &[], |gpu| gpu.utilization = 80);
    let job = gpus.submit_endless(&["--gpus", "1"]);
    let usage = |gpus: &GpuCluster| -> Vec<Value> {
        gpus.cluster.json(&["show", &job])["usage"].as_array().unwrap().clone()
    };
    until("the head hears what the running job does", || {
        usage(&gpus).first().is_some_and(|it| it["live"] == true)
    });
    gpus.cluster.ok(&["cancel", &job]);
    gpus.cluster.until_state(&job, "CANCELLED");
    let kept = usage(&gpus);
    let seconds = |name: &str| kept[0][name].as_f64().unwrap();
    assert_eq!((kept.len(), &kept[0]["live"], &kept[0]["shared"]), (1, &false.into(), &false.into()));
    assert!((seconds("busy_s") / seconds("measured_s") - 0.8).abs() < 0.01, "{kept:?}");
    assert!(seconds("measured_s") <= seconds("held_s") && seconds("idle_s") == 0.0, "{kept:?}");
    assert_eq!(kept[0]["curve"]["utilization"][0], 80);
    let sheet = gpus.cluster.ok(&["show", &job]);
    assert!(sheet.contains("    GPU use: 80% busy of "), "{sheet}");
    let mut server = WebServer::start(&gpus.cluster, &[]);
    let session = server.session();
    let page = server.page(&session, &format!("/jobs/{job}"));
    let drawn = ["GPU use of attempt 1", "<path d=\"M", "aria-label=\"GPU use over ", ": 80% busy of "];
    assert!(drawn.iter().all(|text| page.contains(text)), "{page}");
    drop(server);
    gpus.cluster.stop_head();
    gpus.cluster.restart_head();
    assert_eq!(usage(&gpus), kept, "it outlives the head");
}

#[test]
fn a_session_that_has_a_gpu_for_itself_is_idle_while_the_gpu_is_whatever_its_processors_do() {
    let gpus = GpuCluster::of(Cluster::with_head(&["--idle-stop", "6s"], &[]), 1, &[], |_| {});
    let words = ["run", "--pty", "--gpus", "1", "--", "sh", "-c", "while :; do :; done"];
    let screen = gpus.cluster.screen(&words);
    screen.until_shown("[job 1 has done nothing for ");
    gpus.world.edit_gpu(&gpus.uuid(0), |gpu| gpu.utilization = 50).unwrap();
    until("it works", || idle(&gpus.cluster, "1").is_null());
    gpus.cluster.ok(&["cancel", "--force", "1"]);
}
