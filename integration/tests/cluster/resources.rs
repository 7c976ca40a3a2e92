//! Resources of the head run out: disk space, file descriptors, and a flood of ends.

use std::fs::File;
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Output};

use nix::errno::Errno;

use crate::kit::*;

/// Moves the head's state to a small disk, if the system permits it.
fn onto_small_disk(cluster: &mut Cluster) -> Option<SmallDisk> {
    let at = cluster.folder().join("head");
    cluster.kill_head();
    let before = cluster.folder().join("before");
    std::fs::rename(&at, &before).unwrap();
    std::fs::create_dir(&at).unwrap();
    let disk = SmallDisk::on(&at, "size=8m,mode=700")?;
    let copied = run(Command::new("cp").arg("-a").arg(before.join(".")).arg(&at));
    assert!(copied.status.success(), "{copied:?}");
    cluster.restart_head();
    Some(disk)
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// A job that runs until the file `go` exists, and creates the file `gone`.
fn waiting(cluster: &Cluster) -> String {
    let (go, gone) = (cluster.path("go"), cluster.path("gone"));
    let job = cluster.submit(&[], &format!("until test -e {go}; do sleep 0.05; done; touch {gone}"));
    cluster.until_state(&job, "RUNNING");
    job
}

fn let_go(cluster: &Cluster) {
    std::fs::write(cluster.path("go"), "").unwrap();
    cluster.until_file("gone");
}

/// Submits until the head refuses, which must be soon. Returns the accepted jobs and the refusal.
fn submit_until_refused(cluster: &Cluster) -> (Vec<String>, CommandOutput) {
    let mut accepted = Vec::new();
    loop {
        let ran = cluster.run(&["submit", "--hold", "--output", "quiet", "--", "true"]);
        if ran.code != 0 {
            return (accepted, ran);
        }
        accepted.push(ran.stdout.trim().to_owned());
        assert!(accepted.len() < 100, "a full disk takes no more jobs");
    }
}

#[test]
fn while_the_head_s_disk_is_full_jobs_keep_running_and_service_recovers() {
    let mut cluster = Cluster::start(&["host:1"]);
    let Some(disk) = onto_small_disk(&mut cluster) else { return };
    let running = waiting(&cluster);
    disk.fill();
    let (accepted, refused) = submit_until_refused(&cluster);
    assert_eq!(refused.code, 75, "{}", refused.stderr);
    for part in ["journal.sqlite", "No space left on device", "free space on its file system"] {
        assert!(refused.stderr.contains(part), "{part} is missing: {}", refused.stderr);
    }
    let_go(&cluster);
    assert_eq!(cluster.state(&running), "RUNNING", "what is not durable has not happened");
    disk.empty();
    assert_eq!(cluster.end(&running)["attempt"], 1);
    let next = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&next)["state"], "COMPLETED");
    assert!(accepted.iter().all(|job| cluster.state(job) == "HELD"));
}

#[test]
fn a_head_killed_on_a_full_disk_keeps_all_accepted_jobs() {
    let mut cluster = Cluster::start(&["host:1"]);
    let Some(disk) = onto_small_disk(&mut cluster) else { return };
    let running = waiting(&cluster);
    disk.fill();
    let (accepted, _) = submit_until_refused(&cluster);
    let_go(&cluster);
    cluster.kill_head();
    disk.empty();
    cluster.restart_head();
    cluster.completed_in(1, &running);
    assert!(accepted.iter().all(|job| cluster.state(job) == "HELD"));
}

/// Starts a head in a directory on a full disk.
fn start_without_room(folder: &Path) {
    let start = ["head", "start", "--listen", "127.0.0.1:0", "--state", "head"];
    let refused = CommandOutput::from(run(cohabit(folder).args(start)));
    assert_eq!((refused.code, refused.stdout.as_str()), (75, ""), "{}", refused.stderr);
    for part in ["state directory head", "full", "free disk space"] {
        assert!(refused.stderr.contains(part), "{part} is missing: {}", refused.stderr);
    }
}

#[test]
fn a_head_on_a_full_disk_reports_it_and_starts_once_there_is_space() {
    let mut cluster = Cluster::start(&["host:1"]);
    let Some(disk) = onto_small_disk(&mut cluster) else { return };
    let (running, held) = (waiting(&cluster), cluster.submit(&["--hold"], "true"));
    cluster.kill_head();
    disk.fill();
    let_go(&cluster);
    start_without_room(cluster.folder());
    disk.empty();
    cluster.restart_head();
    cluster.completed_in(1, &running);
    assert_eq!(cluster.state(&held), "HELD");
}

#[test]
fn a_first_start_on_a_full_disk_leaves_nothing_half_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("head");
    std::fs::create_dir(&at).unwrap();
    let Some(disk) = SmallDisk::on(&at, "size=8m,mode=700") else { return };
    disk.fill();
    start_without_room(folder.path());
    disk.empty();
    assert_eq!(std::fs::read_dir(&at).unwrap().count(), 0);
    let (mut cluster, _disk) = (Cluster::with_head_in(folder, &[], &["--policy", "fifo"], &[]), disk);
    cluster.add_worker("host:1");
    let job = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
}

#[test]
fn a_head_without_free_file_descriptors_keeps_its_links_and_takes_newcomers_later() {
    let cluster = Cluster::start(&["host:1"]);
    let running = waiting(&cluster);
    let head = head_of(cluster.folder());
    let limit = |files: &str| {
        let limit = format!("--nofile={files}:");
        let set = run(Command::new("prlimit").args(["--pid", &head, &limit]));
        assert!(set.status.success(), "{set:?}");
    };
    let open = std::fs::read_dir(format!("/proc/{head}/fd")).unwrap().count();
    limit(&(open + 4).to_string());
    let guests: Vec<TcpStream> = (0..16).map(|_| TcpStream::connect(cluster.address()).unwrap()).collect();
    until("the head has no descriptor left", || {
        cluster.read("daemons.log").contains("cannot accept a connection")
    });
    let_go(&cluster);
    drop(guests);
    limit("1024");
    assert_eq!(cluster.end(&running)["attempt"], 1);
}

/// The head's process.
fn head_of(folder: &Path) -> String {
    let of_head = |pid: &String| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let here = std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder);
        here && String::from_utf8_lossy(&words).contains("\0head\0start\0")
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    pids.find(of_head).expect("the head runs")
}

#[test]
fn a_thousand_jobs_may_end_at_once() {
    let cluster = Cluster::start(&["host:1"]);
    // A reader of a FIFO blocks in open until a writer opens it.
    let (gate, arrivals) = (cluster.path("gate"), cluster.path("arrivals"));
    assert!(run(Command::new("mkfifo").arg(&gate)).status.success());
    let script = format!("echo here >> {arrivals}; read line < {gate}; exit 0");
    let array = cluster.submit(&["--array", "0-999", "--gpus", "0"], &script);
    let arrived = || std::fs::read_to_string(&arrivals).is_ok_and(|lines| lines.lines().count() == 1_000);
    until("all of them run", arrived);
    until("all of them have ended", || {
        let_through(&gate);
        cluster.show(&array)["array"]["states"]["COMPLETED"] == 1_000
    });
}

/// Releases every process that is blocked in open.
fn let_through(gate: &str) {
    // Without a reader, a non-blocking open for writing fails.
    drop(File::options().write(true).custom_flags(nix::libc::O_NONBLOCK).open(gate));
}

/// Jobs that demand nothing would take all files, processes and memory of the worker.
#[test]
fn a_node_runs_no_more_jobs_at_once_than_its_worker_allows() {
    let mut cluster = Cluster::with_head(&[], &[]);
    cluster.add_worker_with("host:4", &["--max-jobs", "2"]);
    let script = format!("until test -e {}; do sleep 0.05; done", cluster.path("go"));
    let jobs: Vec<String> = (0..3).map(|_| cluster.submit(&["--gpus", "0"], &script)).collect();
    jobs[..2].iter().for_each(|job| cluster.until_state(job, "RUNNING"));
    until("the third says why", || cluster.show(&jobs[2])["reason_code"] == "waiting_for_host");
    let explained = cluster.ok(&["explain", &jobs[2]]);
    assert!(
        explained.contains("room for one more job; the best one already runs 2, its limit"),
        "{explained}"
    );
    std::fs::write(cluster.path("go"), "").unwrap();
    jobs.iter().for_each(|job| assert_eq!(cluster.end(job)["state"], "COMPLETED"));
}

#[test]
fn the_true_cause_of_a_journal_that_cannot_be_written_is_told_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let disk = FakeDisk::sound(folder.path());
    let cluster = Cluster::with_head_in(folder, &disk.environment(), &["--policy", "fifo"], &[]);
    let causes = [
        (Errno::EIO, "Input/output error (os error 5)", "move the directory to a sound disk"),
        (Errno::EROFS, "Read-only file system (os error 30)", "mount it for writing again"),
        (Errno::EDQUOT, "Disk quota exceeded (os error 122)", "raise, the disk quota"),
        (Errno::ENOSPC, "No space left on device (os error 28)", "free space on its file system"),
    ];
    for (errno, text, remedy) in causes {
        disk.fail(errno);
        let refused = cluster.run(&["submit", "--hold", "--", "true"]);
        assert_eq!(refused.code, 75, "{}", refused.stderr);
        for part in [text, remedy, "head/journal.sqlite: "] {
            assert!(refused.stderr.contains(part), "{errno}: {part} is missing: {}", refused.stderr);
        }
        let log = cluster.read("daemons.log");
        assert!(log.contains(text) && log.contains(remedy), "{errno}: {log}");
        assert!(!refused.stderr.contains("full") || errno == Errno::ENOSPC, "{errno}: {}", refused.stderr);
        disk.mend();
        until("it is written again", || cluster.run(&["submit", "--hold", "--", "true"]).code == 0);
    }
}

#[test]
fn nodes_and_doctor_tell_that_the_head_cannot_write_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let disk = FakeDisk::sound(folder.path());
    let mut cluster = Cluster::with_head_in(folder, &disk.environment(), &["--policy", "fifo"], &[]);
    cluster.add_worker("host:1");
    let problems = || cluster.json(&["nodes"])["head_problems"].as_array().unwrap().clone();
    assert_eq!(problems(), [""; 0]);
    disk.fail(Errno::ENOSPC);
    assert_eq!(cluster.run(&["submit", "--hold", "--", "true"]).code, 75);
    let nodes = cluster.run(&["nodes"]);
    assert!(nodes.code == 0 && nodes.stdout.contains("node0"), "{}", nodes.stdout);
    for part in
        ["warning: the head has not been able to write its journal", "No space left", "free space on its"]
    {
        assert!(nodes.stderr.contains(part), "{part} is missing: {}", nodes.stderr);
    }
    assert_eq!(nodes.stderr.matches("warning: ").count(), 1, "{}", nodes.stderr);
    assert!(problems()[0].as_str().unwrap().contains("No space left"));
    let doctor = cluster.run(&["doctor", "--cluster"]);
    assert!(doctor.stdout.contains("No space left"), "{}", doctor.stdout);
    disk.mend();
    // Although nobody asks for a change.
    until("it is well again", || problems().is_empty());
}
