//! That the fake control daemon talks to one at a time, and turns others away as the real one was seen to do.

use std::io::Write;

use cohabit_fakes::Terminate;

use crate::kit::{Bench, Ran, end, until};

#[test]
fn commands_beside_an_open_session_succeed_without_output() {
    let bench = Bench::new();
    bench.start_daemon();
    let mut holder = bench.open_session(&bench.path("pipe"));
    for _ in 0..3 {
        assert_eq!(bench.control("get_default_active_thread_percentage\n"), Ran::new(0, "", ""));
    }
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(bench.tell("get_default_active_thread_percentage\n"), "100.0\n");
}

#[test]
fn commands_beside_a_running_one_fail_with_or_without_a_message() {
    let bench = Bench::new();
    let server = bench.start_server();
    bench.script(|gpu| gpu.mps.terminate = Terminate::Hangs);
    let mut hanging = bench.open_session(&bench.path("pipe"));
    let command = format!("terminate_client {server} 1\n");
    hanging.stdin.as_mut().unwrap().write_all(command.as_bytes()).unwrap();
    let unsent = Ran::new(1, "", "Cannot send command to MPS control daemon process\n");
    until("the command is under way", || bench.control("get_server_list\n") == unsent);
    assert_eq!(bench.control("get_server_list\n"), Ran::new(1, "", ""));
    assert_eq!(bench.control("get_server_list\n"), unsent);
    end(hanging);
    until("the session is over", || bench.control("get_server_list\n").stdout == format!("{server}\n"));
}
