//! This process stands for the executor of a rank: it is a subreaper, as every executor is.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cohabit_types::{DeviceId, JobId};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::*;

/// The variable by which ranks were recognized once.
const FORGED: (&str, &str) = ("COHABIT_PROGRESS", "/state/ranks/13/1/0/progress");

fn rank(job: u64) -> RankId {
    JobId::new(job).attempt(1).rank(0)
}

/// A worker that runs rank 12, whose executor is this process.
fn owners() -> ProcessOwners {
    let owners = ProcessOwners::new(None, Vec::new());
    owners.rank_started(rank(12), &ProcessIdentity::own().unwrap());
    owners
}

fn sleeper(variable: (&str, &str)) -> (Child, i32) {
    let child = Command::new("sleep").arg("1000").env(variable.0, variable.1).spawn().unwrap();
    let pid = child.id().cast_signed();
    (child, pid)
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The id of a process that has left its parent, its session and its environment.
fn daemonized() -> i32 {
    set_child_subreaper(true).unwrap();
    let script = "setsid sh -c 'sleep 1000 >/dev/null & echo $!'";
    let mut shell = Command::new("env");
    let mut shell = shell.args(["-i", "sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    shell.wait().unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn a_process_of_a_rank_is_remembered_after_its_death() {
    let (child, pid) = sleeper(("A", "B"));
    let owners = owners();
    assert_eq!(owners.owner_of(pid), ProcessOwner::Rank(rank(12)));
    end(child);
    assert_eq!(owners.rank_of(pid), Some(rank(12)));
}

#[test]
fn a_process_with_the_environment_of_another_rank_is_not_attributed_to_it() {
    let (child, pid) = sleeper(FORGED);
    let owners = owners();
    owners.rank_started(rank(13), &ProcessIdentity::new(pid + 1, 1, "a boot".into()));
    assert_eq!(owners.owner_of(pid), ProcessOwner::Rank(rank(12)));
    assert_eq!(ProcessOwners::new(None, Vec::new()).owner_of(pid), ProcessOwner::Foreign);
    end(child);
}

#[test]
fn a_process_that_left_its_parent_session_and_environment_belongs_to_its_rank() {
    let pid = daemonized();
    let owners = owners();
    assert_eq!(owners.owner_of(pid), ProcessOwner::Rank(rank(12)));
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    waitpid(Pid::from_raw(pid), None).unwrap();
    assert_eq!(owners.rank_of(pid), Some(rank(12)));
}

#[test]
fn a_later_process_with_the_id_of_an_executor_is_not_the_executor() {
    let own = ProcessIdentity::own().unwrap();
    let owners = ProcessOwners::new(None, Vec::new());
    let earlier = own.started_at_ticks() - 1;
    owners.rank_started(rank(12), &ProcessIdentity::new(own.pid(), earlier, own.boot().to_owned()));
    let (child, pid) = sleeper(("A", "B"));
    assert_eq!(owners.owner_of(pid), ProcessOwner::Foreign);
    end(child);
}

#[test]
fn a_later_process_with_the_id_of_a_known_one_is_looked_up_again_and_the_earlier_forgotten() {
    let (child, pid) = sleeper(("A", "B"));
    let owners = ProcessOwners::new(None, Vec::new());
    let earlier = CachedOwner { started_at_ticks: 1, owner: ProcessOwner::Rank(rank(12)) };
    owners.lock().known.insert(pid, earlier);
    assert_eq!(owners.owner_of(pid), ProcessOwner::Foreign);
    end(child);
    assert_eq!(owners.owner_of(pid), ProcessOwner::Unknown);
}

#[test]
fn the_processes_of_an_executor_belong_to_the_rank_that_it_runs_now() {
    let owners = owners();
    owners.rank_ended(rank(12));
    owners.rank_started(rank(14), &ProcessIdentity::own().unwrap());
    let (child, pid) = sleeper(("A", "B"));
    assert_eq!(owners.owner_of(pid), ProcessOwner::Rank(rank(14)));
    end(child);
}

#[test]
fn a_process_that_died_before_it_was_seen_is_known_from_its_executor() {
    let (child, pid) = sleeper(("A", "B"));
    end(child);
    let owners = ProcessOwners::new(None, Vec::new());
    assert_eq!(owners.owner_of(pid), ProcessOwner::Unknown);
    owners.note(pid, rank(12));
    assert_eq!(owners.rank_of(pid), Some(rank(12)));
}

#[test]
fn our_mps_daemons_and_the_worker_itself_are_not_foreign_and_no_rank_passes_for_one() {
    let state = tempfile::tempdir().unwrap();
    let directory = MpsDirectory::create(state.path(), &DeviceId("GPU-a".into())).unwrap();
    let pipe = directory.pipe();
    let (daemon, pid) = mps_daemon(&pipe);
    let owner = |mps| ProcessOwners::new(None, mps).owner_of(pid);
    assert_eq!(owner(vec![directory.clone()]), ProcessOwner::Foreign, "it only looks like one");
    record_daemon(&directory, pid);
    assert_eq!(owner(vec![directory.clone()]), ProcessOwner::Worker);
    assert_eq!(owner(Vec::new()), ProcessOwner::Foreign);
    let of_rank = ProcessOwners { mps: vec![directory], ..owners() };
    assert_eq!(of_rank.owner_of(pid), ProcessOwner::Rank(rank(12)));
    assert_eq!(of_rank.owner_of(std::process::id().cast_signed()), ProcessOwner::Worker);
    end(daemon);
}

/// Says in the directory that this process is its daemon and server.
fn record_daemon(directory: &MpsDirectory, pid: i32) {
    let process = ProcessIdentity::of(pid).unwrap();
    let (started, boot) = (process.started_at_ticks(), process.boot());
    let part = format!(r#"{{"pid":{pid},"started_at_ticks":{started},"boot":"{boot}"}}"#);
    let nothing_read = r#"{"inode":0,"offset":0}"#;
    let record = format!(
        r#"{{"version":1,"gpu":"GPU-a","daemon":{part},"server":{part},"dealt_with":{nothing_read}}}"#
    );
    std::fs::write(directory.path().join("daemon.json"), record).unwrap();
}

/// A process with the name and the environment of an MPS daemon.
fn mps_daemon(pipe: &Path) -> (Child, i32) {
    let mut command = Command::new("sleep");
    command.arg0("nvidia-cuda-mps-control").arg("1000").env("CUDA_MPS_PIPE_DIRECTORY", pipe);
    let child = command.spawn().unwrap();
    let pid = child.id().cast_signed();
    // A new process shows our environment until it has started its program.
    while cohabit_host::process::variable_of(pid, "CUDA_MPS_PIPE_DIRECTORY").is_none() {
        std::thread::yield_now();
    }
    (child, pid)
}
