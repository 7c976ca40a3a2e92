//! How `cohabit-gpu` runs MPS daemons: start and prove, adopt, talk, faults, remove clients, recover, stop.

use std::fs;
use std::time::Duration;

use cohabit_fakes::{AfterFault, Quit, StartScript, StatusCommand, Terminate};
use cohabit_gpu::mps::{ClientRemoval, MpsDaemon, MpsPrograms, ServerFault, ServerState, terminate_clients};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::{Bench, PATIENCE, Ran, end, ended, runs, until};

/// Faults, once there are any.
fn faults(daemon: &mut MpsDaemon) -> Vec<ServerFault> {
    let mut found = Vec::new();
    until("the log tells of a fault", || {
        found.extend(daemon.faults());
        !found.is_empty()
    });
    found
}

#[test]
fn a_daemon_that_started_serves_clients_within_their_limits_and_ends_without_a_trace() {
    let bench = Bench::new();
    let daemon = bench.daemon().unwrap();
    assert_eq!(daemon.state(), ServerState::Active);
    assert!(daemon.clients().unwrap().is_empty());
    let client = bench.endless(&mut bench.member(&["--alloc", "7G"]));
    assert_eq!(daemon.clients().unwrap(), [client.id() as i32]);
    let greedy = Ran::from(bench.member(&["--alloc", "9G"]).output().unwrap());
    assert!(greedy.stderr.contains("CUDA out of memory"), "{greedy:?}");
    end(client);
    until("the client is gone", || daemon.clients().unwrap().is_empty());
    let processes = daemon.processes();
    daemon.quit(PATIENCE).unwrap();
    assert!(!processes.into_iter().any(runs));
    assert!(MpsDaemon::adopt(&bench.tools(), &bench.home(), &bench.gpu()).unwrap().is_none());
}

#[test]
fn a_daemon_is_adopted_by_later_users_and_replaced_by_a_fresh_start() {
    let bench = Bench::new();
    let first = bench.daemon().unwrap().processes();
    let adopted = MpsDaemon::adopt(&bench.tools(), &bench.home(), &bench.gpu()).unwrap().unwrap();
    assert_eq!((adopted.processes(), adopted.state()), (first, ServerState::Active));
    let second = bench.daemon().unwrap();
    assert_ne!(second.processes(), first);
    assert!(!first.into_iter().any(runs), "what was left is stopped");
    assert_eq!(adopted.state(), ServerState::Gone);
}

#[test]
fn a_daemon_whose_record_is_of_a_newer_version_is_neither_replaced_nor_stopped() {
    let bench = Bench::new();
    let (home, daemon) = (bench.home(), bench.daemon().unwrap());
    let (record, newer) = (home.path().join("daemon.json"), r#"{"version":2,"daemons":[]}"#);
    fs::write(&record, newer).unwrap();
    let start = MpsDaemon::start(&bench.tools(), &home, &bench.gpu(), 0).map(drop);
    let adopt = MpsDaemon::adopt(&bench.tools(), &home, &bench.gpu()).map(drop);
    for done in [start, adopt] {
        let refusal = done.unwrap_err().to_string();
        assert!(refusal.contains("version 2") && refusal.contains("reads 1 to 1"), "{refusal}");
    }
    assert_eq!((daemon.state(), fs::read_to_string(&record).unwrap()), (ServerState::Active, newer.into()));
    daemon.quit(PATIENCE).unwrap();
    bench.daemon().unwrap();
}

#[test]
fn four_at_once_get_all_their_answers() {
    let bench = Bench::new();
    let daemon = bench.daemon().unwrap();
    let client = bench.endless(&mut bench.member(&[]));
    let expected = [client.id() as i32];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| assert_eq!(daemon.clients().unwrap(), expected)));
        }
    });
    end(client);
}

#[test]
fn an_open_session_makes_clients_unknown_and_never_none() {
    let bench = Bench::new();
    let daemon = bench.daemon().unwrap();
    let client = bench.endless(&mut bench.member(&[]));
    let holder = bench.open_session(&bench.home().pipe());
    assert!(daemon.clients().is_err());
    assert_eq!(daemon.state(), ServerState::Unknown);
    end(holder);
    until("the session is over", || daemon.clients().is_ok_and(|clients| clients == [client.id() as i32]));
    end(client);
}

#[test]
fn a_memory_fault_names_its_culprit_and_is_over_when_all_are_gone() {
    let bench = Bench::new();
    let mut daemon = bench.daemon().unwrap();
    assert_eq!(daemon.faults(), []);
    let server = daemon.processes();
    let stubborn = bench.endless(&mut bench.member(&["--ignore-fault"]));
    let culprit = bench.member(&["--fault-at", "2"]).spawn().unwrap();
    let pid = culprit.id() as i32;
    ended(culprit);
    let faults_seen = faults(&mut daemon);
    assert_eq!(faults_seen.len(), 1, "{faults_seen:?}");
    assert_eq!(faults_seen[0].culprits, [pid]);
    assert_eq!(daemon.state(), ServerState::Fault);
    end(stubborn);
    daemon.recover(PATIENCE, 0).unwrap();
    assert_eq!((daemon.state(), daemon.processes()), (ServerState::Active, server));
    assert_eq!(daemon.faults(), [], "it is told once");
}

#[test]
fn an_unseen_fault_is_reported_to_adopters_of_the_daemon_until_it_is_handled() {
    let bench = Bench::new();
    let mut daemon = bench.daemon().unwrap();
    assert_eq!(daemon.faults(), []);
    daemon.acknowledge_faults();
    drop(daemon);
    let culprit = bench.member(&["--fault-at", "1"]).spawn().unwrap();
    let pid = culprit.id() as i32;
    ended(culprit);
    let adopt = || MpsDaemon::adopt(&bench.tools(), &bench.home(), &bench.gpu()).unwrap().unwrap();
    until("the server is back", || adopt().state() == ServerState::Active);
    for _ in 0..2 {
        assert_eq!(adopt().faults()[0].culprits, [pid]);
    }
    let mut adopted = adopt();
    adopted.faults();
    adopted.acknowledge_faults();
    assert_eq!(adopt().faults(), []);
}

#[test]
fn other_faults_have_no_culprit() {
    let bench = Bench::new();
    let mut daemon = bench.daemon().unwrap();
    bench.member(&["--anonymous-fault-at", "1"]).output().unwrap();
    let faults_seen = faults(&mut daemon);
    assert_eq!(faults_seen.len(), 1, "{faults_seen:?}");
    assert!(faults_seen[0].culprits.is_empty(), "{faults_seen:?}");
}

#[test]
fn a_server_that_does_not_recover_is_started_anew() {
    let bench = Bench::new();
    let mut daemon = bench.daemon().unwrap();
    let first = daemon.processes();
    bench.script(|gpu| gpu.mps.after_fault = AfterFault::Stays);
    bench.member(&["--fault-at", "1"]).output().unwrap();
    until("it is in fault", || daemon.state() == ServerState::Fault);
    daemon.recover(Duration::from_millis(100), 0).unwrap();
    assert_eq!(daemon.state(), ServerState::Active);
    assert_ne!(daemon.processes(), first);
    assert_eq!(bench.member(&["--steps", "1"]).output().unwrap().status.code(), Some(0));
}

#[test]
fn a_server_that_was_killed_is_gone_at_once() {
    let bench = Bench::new();
    let daemon = bench.daemon().unwrap();
    let client = bench.endless(&mut bench.member(&[]));
    kill(Pid::from_raw(daemon.processes()[1]), Signal::SIGKILL).unwrap();
    until("it is gone", || daemon.state() == ServerState::Gone);
    assert!(ended(client).stderr.contains("(806)"));
}

#[test]
fn clients_are_removed_and_others_stay() {
    let bench = Bench::new();
    let daemon = bench.daemon().unwrap();
    let removal = ClientRemoval::new(&bench.tools(), &bench.home());
    let [first, second, other] = [(); 3].map(|()| bench.endless(&mut bench.member(&[])));
    let mut leave = vec![first.id() as i32, second.id() as i32];
    leave.sort_unstable();
    // Of those that are no clients, nothing is asked.
    let asked = [leave.clone(), vec![std::process::id() as i32]].concat();
    assert_eq!(terminate_clients(&removal, &asked, PATIENCE).unwrap(), leave);
    for client in [first, second] {
        assert!(ended(client).stderr.contains("(810)"));
    }
    assert_eq!(daemon.clients().unwrap(), [other.id() as i32]);
    end(other);
}

#[test]
fn a_removal_that_is_not_confirmed_is_an_error_in_time() {
    let bench = Bench::new();
    let _daemon = bench.daemon().unwrap();
    let removal = ClientRemoval::new(&bench.tools(), &bench.home());
    let client = bench.endless(&mut bench.member(&[]));
    let clients = [client.id() as i32];
    bench.script(|gpu| gpu.mps.terminate = Terminate::Answers(999));
    let refused = terminate_clients(&removal, &clients, PATIENCE).unwrap_err().to_string();
    assert!(refused.contains("answered 999"), "{refused}");
    bench.script(|gpu| gpu.mps.terminate = Terminate::Hangs);
    terminate_clients(&removal, &clients, Duration::from_millis(500)).unwrap_err();
    bench.script(|gpu| gpu.mps.terminate = Terminate::Confirms);
    assert_eq!(terminate_clients(&removal, &clients, PATIENCE).unwrap(), clients);
    assert!(ended(client).stderr.contains("(810)"));
}

#[test]
fn without_a_daemon_there_is_no_client_to_remove() {
    let bench = Bench::new();
    let removal = ClientRemoval::new(&bench.tools(), &bench.home());
    assert!(terminate_clients(&removal, &[1], PATIENCE).unwrap().is_empty());
}

#[test]
fn a_failed_daemon_start_is_reported_and_leaves_nothing() {
    let bench = Bench::new();
    let why = || bench.daemon().unwrap_err().to_string();
    bench.script(|gpu| gpu.mps.control = StartScript::Exits(244));
    assert!(why().contains("libcuda"));
    bench.script(|gpu| gpu.mps.control = StartScript::Exits(100));
    assert!(why().contains("no device"));
    bench.script(|gpu| (gpu.mps.control, gpu.mps.server) = (StartScript::Works, StartScript::Exits(1)));
    let message = why();
    assert!(message.contains("exited with status 1"), "{message}");
    assert!(MpsDaemon::adopt(&bench.tools(), &bench.home(), &bench.gpu()).unwrap().is_none());
    bench.script(|gpu| gpu.mps.server = StartScript::Works);
    bench.daemon().unwrap();
}

#[test]
fn a_server_missing_from_the_search_path_is_reported() {
    let bench = Bench::new();
    let tools = bench.tools();
    fs::remove_file(bench.installed.bin.join("nvidia-cuda-mps-server")).unwrap();
    let why = MpsDaemon::start(&tools, &bench.home(), &bench.gpu(), 0).unwrap_err().to_string();
    assert!(why.contains("exited with status 1"), "{why}");
    let missing = MpsPrograms::find(&bench.installed.bin.display().to_string()).unwrap_err().to_string();
    assert!(missing.contains("nvidia-cuda-mps-server"), "{missing}");
}

#[test]
fn a_daemon_that_ignores_quit_is_ended_by_force() {
    let bench = Bench::new();
    let daemon = bench.daemon().unwrap();
    bench.script(|gpu| gpu.mps.quit = Quit::Ignored);
    let processes = daemon.processes();
    daemon.quit(Duration::from_millis(200)).unwrap();
    assert!(!processes.into_iter().any(runs));
}

#[test]
fn without_a_status_command_a_live_server_counts_as_healthy() {
    let bench = Bench::new();
    bench.script(|gpu| gpu.mps.status = StatusCommand::Unknown);
    let daemon = bench.daemon().unwrap();
    assert_eq!(daemon.state(), ServerState::Active);
}

#[test]
fn the_version_of_the_control_program_is_known() {
    assert_eq!(Bench::new().tools().version(), Some(13_000));
}
