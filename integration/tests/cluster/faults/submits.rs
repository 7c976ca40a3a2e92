//! A head that is killed right after it acknowledged a submit.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::kit::*;

/// How many times the head is killed.
const ROUNDS: usize = 10;

#[test]
fn a_head_killed_while_acknowledging_runs_the_job_once() {
    let mut cluster = Cluster::start(&["host:4"]);
    let written = cluster.path("ran");
    let script = format!("echo $COHABIT_JOB_ID >> {written}");
    let mut jobs = Vec::new();
    for _ in 0..ROUNDS {
        let mut submit = cluster.command(&["submit", "--output", "quiet", "--", "sh", "-c", &script]);
        let mut submit = submit.stdout(Stdio::piped()).spawn().unwrap();
        let mut job = String::new();
        BufReader::new(submit.stdout.take().unwrap()).read_line(&mut job).unwrap();
        cluster.kill_head();
        submit.wait().unwrap();
        jobs.push(job.trim().to_owned());
        cluster.restart_head();
        cluster.show(jobs.last().unwrap());
    }
    for job in &jobs {
        // An order that died with the head is given again, as another attempt.
        assert_eq!(cluster.end(job)["state"], "COMPLETED");
    }
    let listed = cluster.json(&["list", "--all"]);
    assert_eq!(listed["jobs"].as_array().unwrap().len(), ROUNDS, "{listed}");
    let mut ran: Vec<String> = cluster.read("ran").lines().map(str::to_owned).collect();
    ran.sort_by_key(|job| job.parse::<u64>().unwrap());
    assert_eq!(ran, jobs, "each of them ran, and once");
}
