//! Faults: of a client, of the server, of the GPU itself, and clients that will not die.

use cohabit_fakes::{AbruptEnd, AfterFault, Terminate};

use super::kit::{GpuCluster, PART, falls_off};
use crate::kit::{kill_hard, until};

const STEPS: [&str; 4] = ["--steps", "200", "--rate", "50"];

#[test]
fn the_fault_of_one_client_ends_it_and_its_victims_run_again_without_using_a_retry() {
    let gpus = GpuCluster::start(1);
    let victim = gpus.submit(&PART, &[&STEPS[..], &["--checkpoint"]].concat());
    gpus.until_sharing(&victim, "enforced");
    let culprit = gpus.submit(&PART, &["--steps", "1000", "--rate", "50", "--fault-at", "20"]);
    let ended = gpus.cluster.end(&culprit);
    assert_eq!((ended["state"].as_str(), ended["reason_code"].as_str()), (Some("FAILED"), Some("mps_fault")));
    let survived = gpus.cluster.end(&victim);
    assert_eq!(survived["state"], "COMPLETED", "{survived}");
    assert_eq!(survived["attempt"], 2, "{survived}");
    let explanation = gpus.cluster.ok(&["explain", &victim]);
    assert!(explanation.contains("another job's fault broke the MPS server"), "{explanation}");
    assert!(explanation.contains("(0 of 0 retries used)"), "{explanation}");
    gpus.until_health(0, "well");
}

/// Waits until the job is in this state in this attempt. Returns its record.
fn until_attempt(gpus: &GpuCluster, job: &str, state: &str, attempt: u64) -> serde_json::Value {
    until(&format!("attempt {attempt} of job {job} is {state}"), || {
        let shown = gpus.cluster.show(job);
        shown["state"] == state && shown["attempt"] == attempt
    });
    gpus.cluster.show(job)
}

#[test]
fn a_job_that_keeps_breaking_mps_gets_a_gpu_to_itself_and_is_held_when_it_fails_there() {
    let mut gpus = GpuCluster::start(1);
    let neighbor = gpus.submit_endless(&PART);
    gpus.until_sharing(&neighbor, "enforced");
    let flags = [&PART[..], &["--retries", "9"]].concat();
    let culprit = gpus.submit(&flags, &["--steps", "1000", "--rate", "50", "--fault-at", "5"]);
    let waits = until_attempt(&gpus, &culprit, "PENDING", 2);
    let why = "it has its GPU to itself, because its faults on the GPU broke the MPS server in 2 attempts";
    assert!(waits["reason"].as_str().unwrap().contains(why), "{waits}");
    assert!(gpus.cluster.ok(&["show", &culprit]).contains("it has its GPU to itself"));
    until_attempt(&gpus, &neighbor, "RUNNING", 3);
    gpus.cluster.kill_head();
    gpus.cluster.restart_head();
    until("the worker is back", || gpus.cluster.json(&["nodes"])["nodes"][0]["state"] == "UP");
    assert!(gpus.cluster.show(&culprit)["reason"].as_str().unwrap().contains(why));
    assert_eq!(gpus.cluster.show(&neighbor)["attempt"], 3);
    gpus.cluster.ok(&["cancel", &neighbor]);
    let held = until_attempt(&gpus, &culprit, "HELD", 3);
    assert_eq!(held["reason_code"], "held_after_faults", "{held}");
    gpus.cluster.ok(&["release", &culprit]);
    let held = until_attempt(&gpus, &culprit, "HELD", 4);
    assert_eq!(held["reason_code"], "held_after_faults", "{held}");
}

#[test]
fn a_fault_that_no_log_explains_has_only_victims_and_ends_by_the_limit_of_the_cluster() {
    let gpus = GpuCluster::start(1);
    let job = gpus.submit(&PART, &["--steps", "1000", "--rate", "50", "--anonymous-fault-at", "5"]);
    let ended = gpus.cluster.end(&job);
    assert_eq!(ended["state"], "NODE_FAIL", "{ended}");
    assert_eq!(ended["reason_code"], "mps_fault_victim");
}

#[test]
fn a_server_that_does_not_come_back_is_started_anew() {
    let gpus = GpuCluster::with(1, &[], |gpu| gpu.mps.after_fault = AfterFault::Stays);
    let culprit = gpus.submit(&PART, &["--steps", "1000", "--rate", "50", "--fault-at", "5"]);
    assert_eq!(gpus.cluster.end(&culprit)["reason_code"], "mps_fault");
    let next = gpus.submit(&PART, &["--steps", "3", "--rate", "50"]);
    assert_eq!(gpus.cluster.end(&next)["state"], "COMPLETED");
}

/// Two jobs share a GPU while a process of its MPS is killed. Both complete without using up a retry.
fn both_live_through_the_death_of(program: &str) {
    let gpus = GpuCluster::start(1);
    let jobs = [(); 2].map(|()| gpus.submit(&PART, &[&STEPS[..], &["--checkpoint"]].concat()));
    jobs.iter().for_each(|job| gpus.until_sharing(job, "enforced"));
    let victims = gpus.mps_processes_of(program);
    assert!(!victims.is_empty(), "no {program} runs");
    victims.into_iter().for_each(kill_hard);
    for job in &jobs {
        let ended = gpus.cluster.end(job);
        assert_eq!(ended["state"], "COMPLETED", "without {program}: {ended}");
        let explanation = gpus.cluster.ok(&["explain", job]);
        assert!(ended["attempt"] == 1 || explanation.contains("(0 of 0 retries used)"), "{explanation}");
    }
    gpus.until_health(0, "well");
    let next = gpus.submit(&PART, &["--steps", "3", "--rate", "50"]);
    assert_eq!(gpus.cluster.end(&next)["state"], "COMPLETED");
}

#[test]
fn jobs_recover_from_a_crash_of_their_mps_server() {
    both_live_through_the_death_of("nvidia-cuda-mps-server");
}

#[test]
fn jobs_survive_a_crash_of_their_mps_control_daemon() {
    both_live_through_the_death_of("nvidia-cuda-mps-control");
}

#[test]
fn jobs_recover_from_a_crash_of_all_of_mps() {
    both_live_through_the_death_of("nvidia-cuda-mps");
}

#[test]
fn a_client_that_ignores_sigterm_is_removed_and_killed_and_its_neighbor_keeps_running() {
    let gpus = GpuCluster::with(1, &[], |gpu| gpu.mps.abrupt_end = AbruptEnd::Faults);
    let neighbor = gpus.submit_endless(&PART);
    gpus.until_sharing(&neighbor, "enforced");
    let stubborn = [&PART[..], &["--grace", "1s"]].concat();
    let stubborn = gpus.submit(&stubborn, &["--steps", "100000", "--rate", "50", "--ignore-term"]);
    gpus.until_clients(0, 2);
    gpus.cluster.ok(&["cancel", &stubborn]);
    assert_eq!(gpus.cluster.end(&stubborn)["state"], "CANCELLED");
    gpus.until_clients(0, 1);
    let shown = gpus.cluster.show(&neighbor);
    let (state, attempt) = (shown["state"].as_str(), shown["attempt"].as_u64());
    let words = || gpus.cluster.read("worker0/ranks/2/1/0/executor.log");
    assert_eq!((state, attempt), (Some("RUNNING"), Some(1)), "{}", words());
}

#[test]
fn an_unconfirmed_removal_keeps_no_process_alive() {
    let gpus = GpuCluster::with(1, &[], |gpu| gpu.mps.terminate = Terminate::Hangs);
    let flags = [&PART[..], &["--grace", "1s"]].concat();
    let stubborn = gpus.submit(&flags, &["--steps", "100000", "--rate", "50", "--ignore-term"]);
    gpus.until_clients(0, 1);
    gpus.cluster.ok(&["cancel", &stubborn]);
    assert_eq!(gpus.cluster.end(&stubborn)["state"], "CANCELLED");
}

#[test]
fn a_gpu_that_falls_off_the_bus_is_fenced_and_its_jobs_run_elsewhere() {
    let gpus = GpuCluster::start(2);
    let job = gpus.submit(&["--gpus", "1"], &[&STEPS[..], &["--checkpoint"]].concat());
    gpus.until_steps(&job, 1);
    let first = gpus.cluster.show(&job)["devices"][0].as_str().unwrap().to_owned();
    gpus.world.edit_gpu(&first, falls_off).unwrap();
    let lost = (0..2).find(|number| gpus.uuid(*number) == first).unwrap();
    gpus.until_health(lost, "fenced");
    let ended = gpus.cluster.end(&job);
    assert_eq!((ended["state"].as_str(), ended["attempt"].as_u64()), (Some("COMPLETED"), Some(2)));
    assert_ne!(ended["devices"][0].as_str(), Some(&*first));
}

#[test]
fn a_critical_error_of_the_hardware_takes_a_gpu_out_of_service_and_leaves_its_jobs_running() {
    let gpus = GpuCluster::start(1);
    let running = gpus.submit_endless(&["--gpus", "1"]);
    gpus.until_steps(&running, 1);
    gpus.world.emit_xid(&gpus.uuid(0), 48).unwrap();
    gpus.until_health(0, "fenced");
    assert_eq!(gpus.cluster.state(&running), "RUNNING");
    gpus.cluster.ok(&["cancel", &running]);
    let waiting = gpus.submit_endless(&["--gpus", "1"]);
    until("it says that the GPU is out of service", || {
        gpus.cluster.ok(&["explain", &waiting]).contains("out of service")
    });
}

#[test]
fn a_gang_that_loses_the_gpu_of_one_rank_restarts_on_other_gpus() {
    let mut gpus = GpuCluster::start(1);
    let other = gpus.add_machine(10, 2);
    let log = gpus.cluster.attempt_log("log");
    let job = gpus.cluster.submit(&["--nodes", "2", "--gpus", "2", "--grace", "1s"], &log.script());
    log.until_started(1, 2);
    let shown = gpus.cluster.show(&job);
    let held = shown["devices"].as_array().unwrap();
    let lost = other.gpus().into_iter().find(|gpu| held.contains(&gpu.uuid.clone().into())).unwrap();
    other.edit_gpu(&lost.uuid, falls_off).unwrap();
    log.until_started(2, 2);
    log.go();
    let ended = gpus.cluster.end(&job);
    assert_eq!((ended["state"].as_str(), ended["attempt"].as_u64()), (Some("COMPLETED"), Some(2)), "{ended}");
    assert!(!ended["devices"].to_string().contains(&lost.uuid), "{ended}");
    log.assert_whole(2, 2);
    log.assert_ended_before_next(1);
}
