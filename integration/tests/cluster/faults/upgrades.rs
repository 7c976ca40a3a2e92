//! Upgrades: a new worker adopts executors of the old binary, a new head reads journals of old formats and
//! serves workers and command lines of the protocol before.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::kit::*;

/// The program of a process.
fn program_of(pid: i32) -> PathBuf {
    std::fs::read_link(format!("/proc/{pid}/exe")).unwrap()
}

#[test]
fn a_worker_of_the_next_release_takes_over_the_executors_of_the_last() {
    let mut cluster = Cluster::start(&["host:3"]);
    let logs = ["goes-on", "ends-meanwhile", "is-cancelled"].map(|name| cluster.attempt_log(name));
    let jobs = logs.each_ref().map(|log| cluster.submit(&[], &log.script()));
    let pids = logs.each_ref().map(|log| log.until_started(1, 1));
    let [goes_on, ends_meanwhile, is_cancelled] = &jobs;
    let executor = cluster.executor_of(0, &format!("{goes_on}/1/0"));
    let next = cluster.another_release("cohabit-next");
    cluster.stop_worker(0);
    logs[1].go();
    until("it has ended without a daemon", || {
        cluster.folder().join(format!("worker0/ranks/{ends_meanwhile}/1/0/outcome.json")).exists()
    });
    cluster.upgrade_worker(0, next.clone());
    assert_eq!(cluster.end(ends_meanwhile)["state"], "COMPLETED");
    cluster.ok(&["cancel", is_cancelled]);
    assert_eq!(cluster.end(is_cancelled)["state"], "CANCELLED");
    assert_eq!(program_of(executor), binary().canonicalize().unwrap());
    let new = cluster.attempt_log("new");
    let newest = cluster.submit(&[], &new.script());
    new.until_started(1, 1);
    assert_eq!(program_of(cluster.executor_of(0, &format!("{newest}/1/0"))), next);
    for (log, job) in [(&logs[0], goes_on), (&new, &newest)] {
        log.go();
        cluster.completed_in(1, job);
    }
    for (log, pids) in logs.iter().zip(pids) {
        log.assert_whole(1, 1);
        assert_eq!(log.until_started(1, 1), pids);
    }
}

/// Journals as every release so far has written them.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scheduler/head/tests/fixtures");

/// A head that finds this journal at its start.
fn with_journal(name: &str) -> Cluster {
    let mut cluster = Cluster::start(&[]);
    cluster.kill_head();
    let head = cluster.folder().join("head");
    for written in ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm"] {
        std::fs::remove_file(head.join(written)).unwrap();
    }
    let sql = std::fs::read_to_string(Path::new(FIXTURES).join(name)).unwrap();
    // The jobs of the first four fixtures want a program that this machine lacks.
    let sql = sql.replace(r#"["/bin/train","--fast"]"#, r#"["echo","trained"]"#);
    rusqlite::Connection::open(head.join("journal.sqlite")).unwrap().execute_batch(&sql).unwrap();
    cluster.restart_head();
    cluster
}

/// The first worker is the node of the fixtures, for its state directory says so.
fn as_node_of_fixtures(cluster: &Cluster) {
    let worker = cluster.folder().join("worker0");
    std::fs::create_dir(&worker).unwrap();
    let node = r#"{"id":"00000000-0000-0000-0000-000000000007","incarnation":9}"#;
    std::fs::write(worker.join("node.json"), node).unwrap();
}

fn runs_the_jobs_of(journal: &str) {
    let mut cluster = with_journal(journal);
    for (job, state) in [("1", "COMPLETED"), ("2", "RUNNING"), ("5", "CANCELLED")] {
        assert_eq!(cluster.state(job), state, "job {job} of {journal}");
    }
    as_node_of_fixtures(&cluster);
    cluster.add_worker("host:2");
    for job in ["2", "3", "4"] {
        let ended = cluster.end(job);
        assert_eq!(ended["state"], "COMPLETED", "of {journal}: {ended}");
    }
    assert_eq!(cluster.ok(&["logs", "2"]), "trained\n");
    let new = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&new)["state"], "COMPLETED");
    assert_eq!(new, "6", "numbers go on");
}

#[test]
fn a_head_runs_the_jobs_of_every_earlier_journal_to_their_end() {
    let entries = std::fs::read_dir(FIXTURES).unwrap();
    let journals: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(journals.len() >= 3, "{journals:?}");
    journals.iter().for_each(|journal| runs_the_jobs_of(journal));
}

#[test]
fn a_head_of_the_next_release_continues_after_a_killed_one() {
    let mut cluster = Cluster::start(&["host:1"]);
    let log = cluster.attempt_log("log");
    let running = cluster.submit(&[], &log.script());
    let pids = log.until_started(1, 1);
    let waiting = cluster.submit(&[], "true");
    cluster.kill_head();
    cluster.upgrade_head(cluster.another_release("cohabit-next"));
    cluster.until_node("node0", "UP");
    log.go();
    assert_eq!(cluster.end(&running)["attempt"], 1);
    assert_eq!(cluster.end(&waiting)["state"], "COMPLETED");
    log.assert_whole(1, 1);
    assert_eq!(log.until_started(1, 1), pids);
}

/// The binary of the previous release, where it was built.
#[expect(clippy::print_stderr, reason = "a test that is skipped has to say so")]
fn previous_release() -> Option<PathBuf> {
    let binary = std::env::var_os("COHABIT_PREVIOUS_BINARY").map(PathBuf::from);
    if binary.is_none() {
        eprintln!(
            "skipped: COHABIT_PREVIOUS_BINARY does not name the previous release; \
             integration/upgrade/build-previous builds it"
        );
    }
    binary.map(|binary| binary.canonicalize().expect("COHABIT_PREVIOUS_BINARY names a file"))
}

/// Jobs that run until they may end, each with its log and the number of its process.
struct RunningJobs {
    logs: Vec<AttemptLog>,
    jobs: Vec<String>,
    pids: Vec<Vec<i32>>,
}

impl RunningJobs {
    fn start(cluster: &Cluster, names: &[&str]) -> RunningJobs {
        let logs: Vec<AttemptLog> = names.iter().map(|name| cluster.attempt_log(name)).collect();
        let script = |log: &AttemptLog| format!("echo begins\n{}\necho ends", log.script());
        let jobs = logs.iter().map(|log| cluster.submit(&[], &script(log))).collect();
        let pids = logs.iter().map(|log| log.until_started(1, 1)).collect();
        RunningJobs { logs, jobs, pids }
    }

    /// None of them was started anew or stopped.
    fn assert_untouched(&self, cluster: &Cluster) {
        for ((log, job), pids) in self.logs.iter().zip(&self.jobs).zip(&self.pids) {
            assert_eq!(cluster.state(job), "RUNNING", "job {job}");
            assert_eq!(log.until_started(1, 1), *pids, "job {job}");
        }
    }

    /// They end well, each in its one attempt.
    fn finish(&self, cluster: &Cluster) {
        for (log, job) in self.logs.iter().zip(&self.jobs) {
            log.go();
            assert_completed_at_once(cluster, job);
            log.assert_whole(1, 1);
            assert_eq!(cluster.ok(&["logs", job]), "begins\nends\n");
        }
    }
}

fn assert_completed_at_once(cluster: &Cluster, job: &str) {
    let ended = cluster.end(job);
    let outcome = (ended["state"].as_str(), ended["attempt"].as_u64());
    assert_eq!(outcome, (Some("COMPLETED"), Some(1)), "{ended}");
}

fn upgrade_workers(cluster: &mut Cluster, running: &RunningJobs) {
    for number in 0..2 {
        cluster.stop_worker(number);
        cluster.upgrade_worker(number, binary());
        cluster.until_node(&format!("node{number}"), "UP");
        running.assert_untouched(cluster);
    }
}

#[test]
fn a_cluster_of_the_previous_release_is_upgraded_head_first_under_its_running_jobs() {
    let Some(previous) = previous_release() else { return };
    let mut cluster = Cluster::of_release(previous.clone(), &["host:2", "host:2"]);
    let running = RunningJobs::start(&cluster, &["first", "second", "third"]);
    let cancelled = cluster.attempt_log("cancelled");
    let cancelled_job = cluster.submit(&[], &cancelled.script());
    cancelled.until_started(1, 1);
    let waiting = cluster.submit(&[], "echo waited");
    assert_eq!(cluster.state(&waiting), "PENDING");
    let mut follow = cluster.command(&["logs", "--follow", &running.jobs[0]]);
    let mut following = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut followed = BufReader::new(following.stdout.take().unwrap());
    // It is connected before the head stops: a first connection is tried only once.
    let mut output = String::new();
    followed.read_line(&mut output).unwrap();

    cluster.stop_head();
    cluster.upgrade_head(binary());
    for node in ["node0", "node1"] {
        cluster.until_node(node, "UP");
    }
    running.assert_untouched(&cluster);
    // The command line and the workers are of the old release, and go on being served.
    cluster.ok(&["cancel", &cancelled_job]);
    assert_eq!(cluster.end(&cancelled_job)["state"], "CANCELLED");
    assert_completed_at_once(&cluster, &waiting);
    assert_eq!(cluster.ok(&["logs", &waiting]), "waited\n");
    let submitted = cluster.submit(&[], "echo new");
    assert_completed_at_once(&cluster, &submitted);
    assert!(cluster.ok(&["list"]).contains(&running.jobs[0]));
    assert!(!cluster.ok(&["explain", &running.jobs[0]]).is_empty());

    upgrade_workers(&mut cluster, &running);
    let executor = cluster.executor_of_any(&format!("{}/1/0", running.jobs[0]));
    assert_eq!(program_of(executor), previous);
    let new = cluster.submit(&[], "echo on a new worker");
    assert_completed_at_once(&cluster, &new);
    cluster.upgrade_command_line(binary());
    running.finish(&cluster);
    followed.read_to_string(&mut output).unwrap();
    assert!(following.wait().unwrap().success());
    assert_eq!(output, "begins\nends\n");
}

#[test]
fn a_cluster_of_the_previous_release_is_upgraded_workers_first_under_its_running_jobs() {
    let Some(previous) = previous_release() else { return };
    let mut cluster = Cluster::of_release(previous, &["host:2", "host:2"]);
    let running = RunningJobs::start(&cluster, &["first", "second"]);
    upgrade_workers(&mut cluster, &running);
    let new = cluster.submit(&[], "echo ordered by the old head");
    assert_completed_at_once(&cluster, &new);
    // A new command line needs a new head, and says so.
    cluster.upgrade_command_line(binary());
    let refused = cluster.run(&["list"]);
    assert_eq!(refused.code, 78, "{}", refused.stderr);
    for words in ["speaks protocol 4", "speaks protocol 5", "upgrade the head first"] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    cluster.stop_head();
    cluster.upgrade_head(binary());
    for node in ["node0", "node1"] {
        cluster.until_node(node, "UP");
    }
    running.assert_untouched(&cluster);
    running.finish(&cluster);
}

#[test]
fn workers_are_downgraded_under_their_running_jobs_and_the_previous_head_refuses_the_journal() {
    let Some(previous) = previous_release() else { return };
    let mut cluster = Cluster::start(&["host:3"]);
    let running = RunningJobs::start(&cluster, &["first", "second"]);
    cluster.stop_worker(0);
    // The previous release sends no credential, so anybody could claim to be a downgraded worker.
    cluster.ok(&["worker", "unbind", "node0"]);
    cluster.upgrade_worker(0, previous.clone());
    cluster.until_node("node0", "UP");
    running.assert_untouched(&cluster);
    let new = cluster.submit(&[], "echo on a worker of the previous release");
    assert_completed_at_once(&cluster, &new);

    cluster.stop_head();
    let journal = cluster.folder().join("head/journal.sqlite");
    let before = std::fs::read(&journal).unwrap();
    let (code, refusal) = cluster.refused_head(&previous);
    assert_eq!(code, Some(78), "{refusal}");
    for words in ["format 6", "up to 5", "Nothing was overwritten"] {
        assert!(refusal.contains(words), "{refusal}");
    }
    assert_eq!(std::fs::read(&journal).unwrap(), before, "the refused journal is left as it is");
    cluster.restart_head();
    cluster.until_node("node0", "UP");
    running.finish(&cluster);
}
