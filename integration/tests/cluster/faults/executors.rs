//! Executors that die, and processes that a rank leaves behind: nothing of an ended attempt survives.

use serde_json::Value;

use crate::kit::*;

/// A script that starts a process which detaches from the rank in every way: a session of its own, no
/// parent, no open files. The process has this mark in its environment.
fn stray(mark: &str) -> String {
    format!("(setsid sh -c 'sleep 1000; : {mark}' <&- >&- 2>&- &)")
}

/// The same for a process that also cleared its environment.
fn nameless_stray(mark: &str) -> String {
    format!("(env -i setsid sh -c 'sleep 1000; : {mark}' <&- >&- 2>&- &)")
}

fn mark(cluster: &Cluster) -> String {
    format!("mark-{}", cluster.folder().file_name().unwrap().to_str().unwrap().trim_start_matches('.'))
}

/// Waits until this many detached processes run, not counting the shells that mention them.
fn until_strays(mark: &str, count: usize) {
    let of = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_stray = |pid: &i32| of(pid).starts_with("sh\0-c\0sleep 1000; :");
    until("the strays run", || processes_with(mark).iter().filter(|pid| is_stray(pid)).count() == count);
}

#[test]
fn a_rank_that_ends_and_leaves_processes_behind_ends_them_with_it() {
    let cluster = Cluster::start(&["host:1"]);
    let (mark, go) = (mark(&cluster), cluster.path("go"));
    let script = format!(
        "{}; {}; until test -e {go}; do sleep 0.05; done; exit 7",
        stray(&mark),
        nameless_stray(&mark)
    );
    let job = cluster.submit(&[], &script);
    until_strays(&mark, 2);
    std::fs::write(&go, "").unwrap();
    let ended = cluster.end(&job);
    assert_eq!((ended["state"].as_str(), ended["exit_code"].as_i64()), (Some("FAILED"), Some(7)), "{ended}");
    assert_eq!(processes_with(&mark), [0; 0], "nothing is left when the end is told");
}

#[test]
fn a_rank_whose_first_process_is_killed_ends_with_all_its_processes() {
    let cluster = Cluster::start(&["host:1"]);
    let (mark, log) = (mark(&cluster), cluster.attempt_log("log"));
    let job = cluster.submit(&[], &format!("{}; {}\n{}", stray(&mark), nameless_stray(&mark), log.script()));
    let pids = log.until_started(1, 1);
    until_strays(&mark, 2);
    kill_hard(pids[0]);
    let ended = cluster.end(&job);
    assert_eq!((ended["state"].as_str(), ended["signal"].as_i64()), (Some("FAILED"), Some(9)), "{ended}");
    assert_eq!(processes_with(&mark), [0; 0]);
}

#[test]
fn a_job_whose_executor_is_killed_runs_again_once_nothing_of_it_is_left() {
    let cluster = Cluster::start(&["host:1"]);
    let (mark, log) = (mark(&cluster), cluster.attempt_log("log"));
    let first = format!("test $COHABIT_ATTEMPT = 2 || {}", stray(&mark));
    let job = cluster.submit(&[], &format!("{first}\n{}", log.script()));
    log.until_started(1, 1);
    until_strays(&mark, 1);
    kill_hard(cluster.executor_of(0, &format!("{job}/1/0")));
    log.until_started(2, 1);
    until_strays(&mark, 0);
    log.go();
    let ended = cluster.completed_in(2, &job);
    assert!(ended["attempts"][0]["ranks"].to_string().contains("its executor was killed"), "{ended}");
    log.assert_whole(2, 1);
}

#[test]
fn a_process_that_only_has_the_number_of_a_dead_executor_is_left_alone() {
    let mut cluster = Cluster::start(&["host:2"]);
    let logs = [cluster.attempt_log("number"), cluster.attempt_log("boot")];
    let jobs = logs.each_ref().map(|log| cluster.submit(&[], &log.script()));
    let ranks = logs.each_ref().map(|log| log.until_started(1, 1)[0]);
    cluster.kill_worker(0);
    let mut bystander = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    // The number was given away again; and the other file is of before the machine was started anew.
    for (job, (field, value)) in
        jobs.iter().zip([("pid", Value::from(bystander.id())), ("boot", "other".into())])
    {
        let executor = cluster.executor_of(0, &format!("{job}/1/0"));
        let path = cluster.path(&format!("worker0/ranks/{job}/1/0/executor.json"));
        let mut identity: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if field == "boot" {
            identity["pid"] = Value::from(bystander.id());
        }
        identity[field] = value;
        std::fs::write(&path, identity.to_string()).unwrap();
        kill_hard(executor);
    }
    ranks.iter().for_each(|pid| kill_hard(*pid));
    cluster.restart_worker(0);
    for (log, job) in logs.iter().zip(&jobs) {
        log.until_started(2, 1);
        log.go();
        cluster.completed_in(2, job);
    }
    assert!(bystander.try_wait().unwrap().is_none(), "a stranger was killed");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}
