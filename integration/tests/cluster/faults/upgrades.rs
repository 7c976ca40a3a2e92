//! The next release takes over from the last: workers with executors of the old binary, heads with journals
//! of old formats.

use std::path::{Path, PathBuf};

use crate::kit::*;

/// The program of a process.
fn program_of(pid: i32) -> PathBuf {
    std::fs::read_link(format!("/proc/{pid}/exe")).unwrap()
}

#[test]
fn a_worker_of_the_next_release_takes_over_the_executors_of_the_last() {
    let mut cluster = Cluster::start(&["host:3"]);
    let books = ["goes-on", "ends-meanwhile", "is-cancelled"].map(|name| cluster.book(name));
    let jobs = books.each_ref().map(|book| cluster.submit(&[], &book.script()));
    let pids = books.each_ref().map(|book| book.until_started(1, 1));
    let [goes_on, ends_meanwhile, is_cancelled] = &jobs;
    let executor = cluster.executor_of(0, &format!("{goes_on}/1/0"));
    let next = cluster.another_release("cohabit-next");
    cluster.stop_worker(0);
    books[1].go();
    until("it has ended without a daemon", || {
        cluster.folder().join(format!("worker0/ranks/{ends_meanwhile}/1/0/outcome.json")).exists()
    });
    cluster.upgrade_worker(0, next.clone());
    assert_eq!(cluster.end(ends_meanwhile)["state"], "COMPLETED");
    cluster.ok(&["cancel", is_cancelled]);
    assert_eq!(cluster.end(is_cancelled)["state"], "CANCELLED");
    assert_eq!(program_of(executor), binary().canonicalize().unwrap());
    let new = cluster.book("new");
    let newest = cluster.submit(&[], &new.script());
    new.until_started(1, 1);
    assert_eq!(program_of(cluster.executor_of(0, &format!("{newest}/1/0"))), next);
    for (book, job) in [(&books[0], goes_on), (&new, &newest)] {
        book.go();
        let ended = cluster.end(job);
        assert_eq!(
            (ended["state"].as_str(), ended["attempt"].as_u64()),
            (Some("COMPLETED"), Some(1)),
            "{ended}"
        );
    }
    for (book, pids) in books.iter().zip(pids) {
        book.assert_whole(1, 1);
        assert_eq!(book.until_started(1, 1), pids);
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

/// The first worker is the node of the fixtures, for its state folder says so.
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
fn a_head_of_the_next_release_goes_on_where_the_last_one_was_killed() {
    let mut cluster = Cluster::start(&["host:1"]);
    let book = cluster.book("book");
    let running = cluster.submit(&[], &book.script());
    let pids = book.until_started(1, 1);
    let waiting = cluster.submit(&[], "true");
    cluster.kill_head();
    cluster.upgrade_head(cluster.another_release("cohabit-next"));
    cluster.until_node("node0", "UP");
    book.go();
    assert_eq!(cluster.end(&running)["attempt"], 1);
    assert_eq!(cluster.end(&waiting)["state"], "COMPLETED");
    book.assert_whole(1, 1);
    assert_eq!(book.until_started(1, 1), pids);
}
