//! Without MPS: time slicing with a watchdog, reported as unenforced; a refusal for jobs with `--enforced`.

use cohabit_fakes::StartScript;

use super::kit::{GpuCluster, PART};
use crate::kit::until;

#[test]
fn without_mps_jobs_are_time_sliced_and_every_screen_shows_it() {
    let gpus = GpuCluster::with(1, &[], |gpu| gpu.mps.control = StartScript::Exits(244));
    let (one, other) = (gpus.submit_endless(&PART), gpus.submit_endless(&PART));
    for job in [&one, &other] {
        gpus.until_sharing(job, "unenforced");
        gpus.until_steps(job, 1);
    }
    let device = gpus.device(0);
    assert_eq!(device["sharing"], "unenforced", "{device}");
    assert!(device["sharing_reason"].as_str().unwrap().contains("libcuda"), "{device}");
    let explanation = gpus.cluster.ok(&["explain", &one]);
    assert!(explanation.contains("nothing enforces its limits"), "{explanation}");
}

#[test]
fn the_watchdog_stops_jobs_that_exceed_their_memory() {
    let gpus = GpuCluster::with(1, &["--mps", "off"], |_| {});
    let neighbor = gpus.submit_endless(&PART);
    let greedy = gpus.submit(&PART, &["--steps", "1000000", "--rate", "50", "--alloc", "40G"]);
    let ended = gpus.cluster.end(&greedy);
    assert_eq!(
        (ended["state"].as_str(), ended["reason_code"].as_str()),
        (Some("OUT_OF_MEMORY"), Some("gpu_oom"))
    );
    assert_eq!(gpus.cluster.state(&neighbor), "RUNNING");
}

#[test]
fn a_job_that_requires_enforcement_does_not_run_without_it() {
    let gpus = GpuCluster::with(1, &["--mps", "off"], |_| {});
    let flags = [&["submit"][..], &PART, &["--enforced", "--", "true"]].concat();
    let refused = gpus.cluster.run(&flags);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("enforce"), "{}", refused.stderr);
    assert!(refused.stderr.contains("switched off"), "{}", refused.stderr);
}

#[test]
fn a_job_that_requires_enforcement_and_bypasses_mps_is_stopped() {
    let gpus = GpuCluster::start(1);
    let flags = [&PART[..], &["--enforced"]].concat();
    let job = gpus.submit(&flags, &["--steps", "1000000", "--rate", "50", "--bypass-mps", "--alloc", "1G"]);
    let ended = gpus.cluster.end(&job);
    assert_eq!(ended["reason_code"], "sharing_unenforced", "{ended}");
}

#[test]
fn a_job_that_bypasses_mps_is_shown_as_unenforced() {
    let gpus = GpuCluster::start(1);
    let job = gpus.submit(&PART, &["--steps", "1000000", "--rate", "50", "--bypass-mps", "--alloc", "1G"]);
    gpus.until_sharing(&job, "unenforced");
    assert_eq!(gpus.cluster.state(&job), "RUNNING");
    until("the reason names the way round", || gpus.cluster.show(&job).to_string().contains("outside"));
}
