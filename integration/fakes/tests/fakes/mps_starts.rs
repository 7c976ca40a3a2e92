//! How the fake control daemon starts, fails to start, and ends, as the real one does.

use std::fs;

use cohabit_fakes::{FakeGpu, StartScript};
use cohabit_gpu::mps::daemon_of_pipe;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};

use crate::kit::{Bench, Ran, runs, until};

const UNFOUND: &str = "Cannot find MPS control daemon process\n";

fn daemon_pid(bench: &Bench) -> Pid {
    let text = fs::read_to_string(bench.path("pipe").join("nvidia-cuda-mps-control.pid")).unwrap();
    Pid::from_raw(text.trim().parse().unwrap())
}

fn parent_of(pid: Pid) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_daemon_is_not_its_starters_child_and_has_a_session_of_its_own() {
    let bench = Bench::new();
    assert_eq!(bench.start_daemon(), Ran::new(0, "", ""));
    let daemon = daemon_pid(&bench);
    assert_ne!(parent_of(daemon), std::process::id() as i32);
    assert_ne!(getsid(Some(daemon)), getsid(None));
}

#[test]
fn without_a_daemon_the_control_program_prints_an_error() {
    assert_eq!(Bench::new().control("get_server_list\n"), Ran::new(1, "", UNFOUND));
}

#[test]
fn there_is_one_daemon_in_a_pipe_directory() {
    let bench = Bench::new();
    bench.start_daemon();
    let refusal = Ran::new(1, "An instance of this daemon is already running\n", "");
    assert_eq!(bench.start_daemon(), refusal);
}

#[test]
fn a_daemon_that_was_killed_leaves_its_files_and_another_can_start() {
    let bench = Bench::new();
    bench.start_daemon();
    let first = daemon_pid(&bench);
    kill(first, Signal::SIGKILL).unwrap();
    until("the daemon is gone", || !runs(first.as_raw()));
    for name in ["control", "nvidia-cuda-mps-control.pid", "log"] {
        assert!(bench.path("pipe").join(name).exists(), "{name}");
    }
    assert_eq!(bench.control("get_server_list\n"), Ran::new(1, "", UNFOUND));
    assert_eq!(bench.start_daemon(), Ran::new(0, "", ""));
}

#[test]
fn the_daemon_of_a_pipe_directory_is_known_by_its_lock_with_every_driver() {
    for driver in ["535.261.03", "550.163.01", "580.159.03"] {
        let bench = Bench::new();
        bench.world.edit_library(|library| library.driver = driver.into()).unwrap();
        let pipe = bench.path("pipe");
        assert_eq!(daemon_of_pipe(&pipe).unwrap(), None, "there is no lock");
        bench.start_daemon();
        let daemon = daemon_of_pipe(&pipe).unwrap().unwrap();
        kill(Pid::from_raw(daemon), Signal::SIGKILL).unwrap();
        until("the daemon is gone", || !runs(daemon));
        assert_eq!(daemon_of_pipe(&pipe).unwrap(), None, "{driver}: nobody holds it");
    }
}

#[test]
fn a_clean_end_leaves_only_the_sockets() {
    let bench = Bench::new();
    let server = bench.start_server();
    assert_eq!(bench.control("quit -t 1\n"), Ran::new(0, "", ""));
    assert!(!runs(server), "the server is gone");
    let left = |name: &str| bench.path("pipe").join(name).exists();
    assert!(left("control") && !left("nvidia-cuda-mps-control.pid") && !left("log"));
}

#[test]
fn a_pipe_directory_that_is_too_long_fails_silently() {
    let bench = Bench::new();
    let long = bench.path(&"x".repeat(100));
    fs::create_dir(&long).unwrap();
    let mut command = bench.command(&bench.control_program());
    let ran = Ran::from(command.arg("-d").env("CUDA_MPS_PIPE_DIRECTORY", &long).output().unwrap());
    assert_eq!(ran, Ran::new(1, "", ""));
}

#[test]
fn a_missing_pipe_directory_is_fatal_and_a_missing_log_directory_is_not() {
    let bench = Bench::new();
    fs::remove_dir(bench.path("log")).unwrap();
    let ran = bench.start_daemon();
    assert!(ran.code == 0 && ran.stderr.starts_with("Warning: "), "{ran:?}");

    let bench = Bench::new();
    fs::remove_dir(bench.path("pipe")).unwrap();
    let complaint = format!("Cannot access CUDA_MPS_PIPE_DIRECTORY={}\n", bench.path("pipe").display());
    assert_eq!(bench.start_daemon(), Ran::new(1, "", &complaint));
}

#[test]
fn without_libcuda_or_a_device_only_the_exit_status_shows_the_error() {
    let bench = Bench::new();
    bench.script(|gpu| gpu.mps.control = StartScript::Exits(244));
    assert_eq!(bench.start_daemon(), Ran::new(244, "", ""));
    let mut command = bench.command(&bench.control_program());
    let blind = command.arg("-d").env("CUDA_VISIBLE_DEVICES", FakeGpu::numbered(7).uuid);
    assert_eq!(Ran::from(blind.output().unwrap()), Ran::new(100, "", ""));
}

#[test]
fn a_server_that_cannot_start_is_known_from_the_log_alone() {
    let failed = |bench: &Bench| {
        bench.start_daemon();
        assert_eq!(bench.control("start_server -uid 0\n"), Ran::new(0, "", ""));
        until("the log tells", || bench.log("control.log").contains("exited with status 1"));
        until("there is no server", || bench.tell("get_server_list\n").is_empty());
    };
    let bench = Bench::new();
    bench.script(|gpu| gpu.mps.server = StartScript::Exits(1));
    failed(&bench);

    let bench = Bench::new();
    fs::remove_file(bench.installed.bin.join("nvidia-cuda-mps-server")).unwrap();
    failed(&bench);
}
