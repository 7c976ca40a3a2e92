//! Stops for more urgent jobs in a live cluster: only of jobs that agreed, with their reasons, and the
//! stopped job goes on afterwards.

use crate::kit::*;

/// Stops at once and for any difference, so that no job has to run for ten minutes first.
const POLICY: &str = "a-srpt:quantum=0,stop-ratio=0,margin=0";

/// Runs until it is told to stop, the first time; later it ends at once.
const RESUMES: &str = "if [ \"$COHABIT_ATTEMPT\" = 1 ]; then sleep 600; fi";

#[test]
fn a_preemptible_job_makes_room_and_goes_on_afterwards() {
    let cluster = Cluster::with_policy(POLICY, &["host:1"]);
    let long = cluster.submit(&["--preemptible"], RESUMES);
    cluster.until_state(&long, "RUNNING");
    let urgent = cluster.submit(&["--priority", "1"], "sleep 0.5");
    assert_eq!(cluster.end(&urgent)["state"], "COMPLETED");
    cluster.completed_in(2, &long);
    let explained = cluster.ok(&["explain", &long]);
    assert!(explained.contains("its devices were given to another job"), "{explained}");
}

#[test]
fn a_job_that_did_not_agree_keeps_its_place() {
    let cluster = Cluster::with_policy(POLICY, &["host:1"]);
    let long = cluster.submit(&[], "sleep 2");
    cluster.until_state(&long, "RUNNING");
    let urgent = cluster.submit(&["--priority", "1"], "true");
    assert_eq!(cluster.end(&urgent)["state"], "COMPLETED");
    let ended = cluster.show(&long);
    assert_eq!((ended["state"].as_str(), ended["attempt"].as_u64()), (Some("COMPLETED"), Some(1)), "{ended}");
}
