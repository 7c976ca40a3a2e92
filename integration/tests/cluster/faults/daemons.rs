//! Heads and workers that die, or are stopped, while jobs run.

use std::time::Duration;

use crate::kit::*;

#[test]
fn a_killed_head_forgets_nothing_and_running_jobs_never_notice() {
    let mut cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let running = cluster
        .submit(&[], &format!("until test -e {go}; do sleep 0.05; done; echo attempt $COHABIT_ATTEMPT"));
    cluster.until_state(&running, "RUNNING");
    let waiting = cluster.submit(&["--name", "waits"], "echo ran");
    cluster.kill_head();
    cluster.restart_head();
    until("the worker is back", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UP");
    assert_eq!((cluster.state(&running).as_str(), cluster.state(&waiting).as_str()), ("RUNNING", "PENDING"));
    std::fs::write(&go, "").unwrap();
    assert_eq!(cluster.end(&running)["attempt"], 1);
    assert_eq!(cluster.end(&waiting)["state"], "COMPLETED");
    assert_eq!(cluster.ok(&["logs", &running]), "attempt 1\n");
}

#[test]
fn a_killed_worker_daemon_finds_its_ranks_again() {
    let mut cluster = Cluster::start(&["host:2"]);
    let go = cluster.path("go");
    let waiting = |name: &str, end: &str| {
        let here = cluster.path(name);
        cluster.submit(&[], &format!("touch {here}; until test -e {go}; do sleep 0.05; done; {end}"))
    };
    let (running, ends_meanwhile) = (waiting("one", "exit 5"), waiting("other", "echo done"));
    // A job that was placed a moment ago may not have reached its worker.
    cluster.until_file("one");
    cluster.until_file("other");
    cluster.kill_worker(0);
    std::fs::write(&go, "").unwrap();
    cluster.restart_worker(0);
    let (first, second) = (cluster.end(&running), cluster.end(&ends_meanwhile));
    assert_eq!((first["exit_code"].as_i64(), first["attempt"].as_u64()), (Some(5), Some(1)), "{first}");
    assert_eq!(
        (second["state"].as_str(), second["attempt"].as_u64()),
        (Some("COMPLETED"), Some(1)),
        "{second}"
    );
}

#[test]
fn a_worker_that_is_stopped_leaves_its_jobs_running() {
    let mut cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let job = cluster.submit(&[], &format!("until test -e {go}; do sleep 0.05; done"));
    cluster.until_state(&job, "RUNNING");
    cluster.stop_worker(0);
    until("the head misses it", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UNREACHABLE");
    cluster.restart_worker(0);
    std::fs::write(&go, "").unwrap();
    assert_eq!(cluster.end(&job)["attempt"], 1);
}

#[test]
fn a_drained_node_takes_no_new_jobs() {
    let cluster = Cluster::start(&["host:1", "host:1"]);
    cluster.ok(&["worker", "drain", "node0"]);
    let job = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&job)["nodes"][0], "node1");
    let states: Vec<String> = cluster.json(&["nodes"])["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["DRAINED", "UP"]);
}

#[test]
fn a_corrupt_journal_is_refused_and_left_as_it_is() {
    let mut cluster = Cluster::start(&[]);
    cluster.submit(&["--hold"], "true");
    cluster.kill_head();
    let journal = cluster.folder().join("head/journal.sqlite");
    std::fs::remove_file(cluster.folder().join("head/journal.sqlite-wal")).unwrap_or_default();
    std::fs::write(&journal, b"this is no journal").unwrap();
    let output =
        cluster.command(&["head", "start", "--listen", "127.0.0.1:0", "--state", "head"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr.contains("journal.sqlite"), "{stderr}");
    assert_eq!(std::fs::read(&journal).unwrap(), b"this is no journal");
}

#[test]
fn a_head_that_crashes_repeatedly_loses_no_job_and_runs_none_twice() {
    let mut cluster = Cluster::start(&["host:2", "host:1"]);
    let logs = ["one", "two", "three"].map(|name| cluster.attempt_log(name));
    let running = logs.each_ref().map(|log| cluster.submit(&[], &log.script()));
    let pids = logs.each_ref().map(|log| log.until_started(1, 1));
    let next = cluster.attempt_log("next");
    let waiting = cluster.submit(&["--depends-on", &running[0]], &next.script());
    let held = cluster.submit(&["--hold"], "true");
    let array = cluster.submit(&["--array", "0-2"], "true");
    for _ in 0..3 {
        cluster.kill_head();
        cluster.restart_head();
        ["node0", "node1"].iter().for_each(|node| cluster.until_node(node, "UP"));
        let states = |jobs: &[String]| jobs.iter().map(|job| cluster.state(job)).collect::<Vec<_>>();
        assert_eq!(states(&running), ["RUNNING"; 3]);
        assert_eq!(states(&[waiting.clone(), held.clone(), array.clone()]), ["PENDING", "HELD", "PENDING"]);
    }
    next.go();
    for (log, (job, pids)) in logs.iter().zip(running.iter().zip(pids)) {
        log.go();
        cluster.completed_in(1, job);
        log.assert_whole(1, 1);
        assert_eq!(log.until_started(1, 1), pids, "it never noticed");
    }
    cluster.ok(&["release", &held]);
    for job in [&waiting, &held, &array] {
        assert_eq!(cluster.end(job)["state"], "COMPLETED");
    }
    next.assert_whole(1, 1);
}

#[test]
fn head_and_workers_that_die_at_once_and_come_back_at_once_find_everything_again() {
    let mut cluster = Cluster::start(&["host:2", "host:1"]);
    let (long, short, gang) =
        (cluster.attempt_log("long"), cluster.attempt_log("short"), cluster.attempt_log("gang"));
    let first = cluster.submit(&[], &long.script());
    let pid = long.until_started(1, 1);
    let pair = cluster.submit(&["--nodes", "2"], &gang.script());
    let pids = gang.until_started(1, 2);
    let waiting = cluster.submit(&[], &short.script());
    cluster.kill_daemons();
    // One of a gang ends while nobody is there, and the others go on.
    short.go();
    gang.go();
    cluster.restart_daemons();
    for (job, log, ranks) in [(&pair, &gang, 2), (&waiting, &short, 1)] {
        cluster.completed_in(1, job);
        log.assert_whole(1, ranks);
    }
    assert_eq!(cluster.state(&first), "RUNNING");
    long.go();
    assert_eq!(cluster.end(&first)["attempt"], 1);
    long.assert_whole(1, 1);
    assert_eq!((long.until_started(1, 1), gang.until_started(1, 2)), (pid, pids));
}

#[test]
fn a_worker_that_comes_back_before_it_was_missed_keeps_its_ranks() {
    let mut cluster = Cluster::start(&[]);
    let wire = Proxy::to(cluster.address());
    cluster.add_worker_through(&wire, "host:2", &[]);
    let (long, short) = (cluster.attempt_log("long"), cluster.attempt_log("short"));
    let jobs = [cluster.submit(&[], &long.script()), cluster.submit(&[], &short.script())];
    let pids = [long.until_started(1, 1), short.until_started(1, 1)];
    // The head hears nothing of the death of the worker, and knows its link for whole.
    wire.silence_present();
    cluster.kill_worker(0);
    assert_eq!(cluster.node_state("node0"), "UP");
    short.go();
    cluster.restart_worker(0);
    cluster.completed_in(1, &jobs[1]);
    // Now the words of the old link arrive, and its end.
    wire.mend();
    let third = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&third)["attempt"], 1);
    assert_eq!((cluster.node_state("node0").as_str(), cluster.state(&jobs[0]).as_str()), ("UP", "RUNNING"));
    long.go();
    assert_eq!(cluster.end(&jobs[0])["attempt"], 1);
    assert_eq!([long.until_started(1, 1), short.until_started(1, 1)], pids);
    [long, short].iter().for_each(|log| log.assert_whole(1, 1));
}

/// Two starts died while they replayed the same submission, as their note says.
#[test]
fn a_head_that_an_event_ends_at_every_start_says_so_and_starts_without_it() {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker_with("host:2", &["--orphan-grace", "12s"]);
    let before = cluster.submit(&[], "true");
    cluster.end(&before);
    let running = cluster.submit(&[], "while echo tick >> ticks; do sleep 0.2; done");
    cluster.until_file("ticks");
    let poison = cluster.submit(&["--hold", "--name", "poison"], "true");
    cluster.kill_head();
    let journal = rusqlite::Connection::open(cluster.folder().join("head/journal.sqlite")).unwrap();
    let event: i64 = journal
        .query_row("SELECT sequence FROM events WHERE event LIKE '%\"poison\"%'", [], |row| row.get(0))
        .unwrap();
    drop(journal);
    std::fs::write(
        cluster.folder().join("head/replaying.json"),
        format!(r#"{{"event":{event},"starts":2}}"#),
    )
    .unwrap();
    let (state, address) = (cluster.path("head"), cluster.address());
    let list = std::sync::Mutex::new(cluster.command(&["list", "--head", &address]));
    let recover = ["head", "recover", "--state", &state];
    let mut shown = cluster.command(&recover);
    let mut set_aside = cluster.command(&[&recover[..], &["--quarantine", &event.to_string()]].concat());
    let ticks = cluster.path("ticks");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("it says why it does not start", || {
                let output = list.lock().unwrap().output().unwrap();
                let text = String::from_utf8(output.stderr).unwrap();
                output.status.code() == Some(69)
                    && text.contains("recovery mode")
                    && text.contains("recover --quarantine")
            });
            // Longer than the grace: a head that recovers is no reason to stop a job.
            let ticks = || std::fs::read_to_string(&ticks).unwrap().lines().count();
            let seen = ticks();
            until("the job outlives its grace", || ticks() >= seen + 75);
            let shown = String::from_utf8(shown.output().unwrap().stdout).unwrap();
            assert!(shown.contains(&format!("Event {event} (")) && shown.contains("poison"), "{shown}");
            assert!(set_aside.output().unwrap().status.success());
        });
        cluster.restart_head();
    });
    assert_eq!(cluster.state(&before), "COMPLETED");
    assert_eq!(cluster.state(&poison), "HELD");
    assert!(cluster.ok(&["show", &poison]).contains("an admin set this job aside"));
    cluster.until_node("node0", "UP");
    let shown = cluster.show(&running);
    assert_eq!((shown["state"].as_str(), shown["attempt"].as_u64()), (Some("RUNNING"), Some(1)), "{shown}");
    let after = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&after)["state"], "COMPLETED");
}

/// Longer than any other command tries to reach its head.
#[test]
fn wait_and_run_have_the_same_patience_with_a_head_that_is_gone() {
    let mut cluster = Cluster::start(&["host:2"]);
    let go = cluster.path("go");
    let script = format!("until [ -e {go} ]; do sleep 0.1; done; exit 3");
    let job = cluster.submit(&[], &script);
    let mut waits = cluster.command(&["wait", &job]);
    let mut runs = cluster.command(&["run", "--", "sh", "-c", &script]);
    let mut waiting = [waits.spawn().unwrap(), runs.spawn().unwrap()];
    until("both jobs run", || {
        let jobs = cluster.json(&["list", "--state", "running"]);
        jobs["jobs"].as_array().unwrap().len() == 2
    });
    // Its long poll has begun.
    std::thread::sleep(Duration::from_secs(1));
    cluster.kill_head();
    std::thread::sleep(Duration::from_secs(40));
    for process in &mut waiting {
        assert!(process.try_wait().unwrap().is_none(), "it gave up");
    }
    cluster.restart_head();
    std::fs::write(go, "").unwrap();
    for mut process in waiting {
        assert_eq!(process.wait().unwrap().code(), Some(3));
    }
}
