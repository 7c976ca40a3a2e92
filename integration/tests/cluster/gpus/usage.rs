//! What jobs do with their GPUs: measured by the worker, kept by the head.

use serde_json::Value;

use super::kit::{GpuCluster, falls_off};
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

#[test]
fn what_gpus_did_for_each_user_is_in_the_report() {
    let gpus = GpuCluster::with(2, &[], |gpu| gpu.utilization = 80);
    let user = |gpus: &GpuCluster| gpus.cluster.json(&["report"])["rows"][0].clone();
    let job = gpus.submit_endless(&["--gpus", "1"]);
    until("its GPU was read", || gpus.cluster.show(&job)["usage"][0]["live"] == true);
    gpus.cluster.ok(&["cancel", &job]);
    gpus.cluster.until_state(&job, "CANCELLED");
    until("what it held is counted", || user(&gpus)["jobs"] == 1);
    let row = user(&gpus);
    let seconds = |name: &str| row[name].as_f64().unwrap();
    assert!((row["efficiency"].as_f64().unwrap() - 0.8).abs() < 0.01, "{row}");
    assert!(seconds("busy_gpu_s") > 0.0 && seconds("busy_gpu_s") < seconds("held_gpu_s"), "{row}");
    assert_eq!((seconds("idle_gpu_s"), seconds("lost_gpu_s")), (0.0, 0.0), "{row}");
    // What was held by a job whose GPU fell off is lost.
    let unlucky = gpus.submit_endless(&["--gpus", "1"]);
    gpus.cluster.until_state(&unlucky, "RUNNING");
    let first = gpus.cluster.show(&unlucky)["devices"][0].as_str().unwrap().to_owned();
    gpus.world.edit_gpu(&first, falls_off).unwrap();
    until("it runs again", || gpus.cluster.show(&unlucky)["attempt"] == 2);
    until("its first attempt is counted", || user(&gpus)["lost_gpu_s"].as_f64().unwrap() > 0.0);
    gpus.cluster.ok(&["cancel", &unlucky]);
}
