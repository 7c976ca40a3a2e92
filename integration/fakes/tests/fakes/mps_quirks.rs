//! What the fake MPS answers to commands, and what it makes of limits.

use cohabit_fakes::StatusCommand;

use crate::kit::{Bench, Ran, end, ended};

#[test]
fn rejected_commands_exit_with_success_and_print_the_error() {
    let bench = Bench::new();
    bench.start_daemon();
    for (command, words) in [
        ("dance", "Unknown command \"dance\"\n"),
        ("get_server_status 7", "Server 7 not found\n"),
        ("get_client_list 7", "Server 7 not found\n"),
        ("shutdown_server 7", "Server 7 not found\n"),
        ("terminate_client 7 8", "Server 7 not found\nServer 7 not found!\n1\n"),
        ("ps", "Server not found\n"),
        ("ps -p 7", "Server 7 not found\nServer 7 not found\n\n"),
        ("start_server", "A user id (UID) is required to start a new server\n"),
        ("get_server_list", ""),
    ] {
        assert_eq!(bench.control(&format!("{command}\n")), Ran::new(0, words, ""), "{command}");
    }
}

#[test]
fn invalid_limits_are_silently_replaced() {
    let bench = Bench::new();
    bench.start_daemon();
    let percentages = "set_default_active_thread_percentage 50\nset_default_active_thread_percentage 120\n";
    assert_eq!(bench.tell(percentages), "50.0\n50.0\n");
    let limit = |wanted: &str| {
        let set = format!("set_default_device_pinned_mem_limit {wanted}\n");
        bench.tell(&format!("{set}get_default_device_pinned_mem_limit 0\n"))
    };
    for (wanted, got) in [
        ("GPU-fa4e 8G", ""),
        ("0 8G", "8G\n"),
        ("0 8192MB", "8G\n"),
        ("0 1000M", "1000M\n"),
        ("0 8", "8M\n"),
        ("0 1.5G", "1M\n"),
        ("0 G", ""),
    ] {
        assert_eq!(limit(wanted), got, "{wanted}");
    }
}

#[test]
fn limits_of_a_server_are_those_of_later_clients() {
    let bench = Bench::new();
    let server = bench.start_server();
    bench.tell(&format!("set_device_pinned_mem_limit {server} 0 1G\n"));
    assert_eq!(bench.tell(&format!("set_active_thread_percentage {server} 30\n")), "30.0\n");
    let wide = bench.client(&["--steps", "1", "--alloc", "2G"]).output().unwrap();
    let ran = Ran::from(wide);
    assert!(ran.stdout.contains("at most 1024 MiB, compute: 30%"), "{ran:?}");
    assert!(ran.code == 1 && ran.stderr.contains("CUDA out of memory"), "{ran:?}");
}

#[test]
fn lists_name_the_clients_and_their_commands() {
    let bench = Bench::new();
    let server = bench.start_server();
    let client = bench.endless(&mut bench.client(&[]));
    let pid = client.id();
    assert_eq!(bench.tell(&format!("get_client_list {server}\n")), format!("{pid}\n"));
    let table = bench.tell("ps\n");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND"]);
    assert_eq!(rows.len(), 2, "{table}");
    assert_eq!(
        (rows[1][0], rows[1][2], rows[1][5]),
        (&*pid.to_string(), &*server.to_string(), "fake-cuda-clien")
    );
    end(client);
}

#[test]
fn old_control_programs_do_not_know_the_status_of_a_server() {
    let bench = Bench::new();
    let server = bench.start_server();
    bench.script(|gpu| gpu.mps.status = StatusCommand::Unknown);
    let answer = bench.tell(&format!("get_server_status {server}\n"));
    assert_eq!(answer, "Unknown command \"get_server_status\"\n");
}

#[test]
fn a_server_is_shut_down_when_its_clients_are_gone_or_at_once_by_force() {
    let bench = Bench::new();
    let server = bench.start_server();
    let client = bench.endless(&mut bench.client(&[]));
    assert_eq!(bench.tell(&format!("shutdown_server {server} -f\n")), "");
    assert_eq!(bench.tell("get_server_list\n"), "");
    let ran = ended(client);
    assert!(ran.code == 1 && ran.stderr.contains("(806)"), "{ran:?}");
}

#[test]
fn the_version_is_printed() {
    let bench = Bench::new();
    let ran = Ran::from(bench.command(&bench.control_program()).arg("-v").output().unwrap());
    assert_eq!(ran, Ran::new(0, "Binary version: 13000\n", ""));
}

#[test]
fn more_clients_than_a_server_can_have_are_refused() {
    let bench = Bench::new();
    bench.script(|gpu| gpu.mps.most_clients = 1);
    bench.start_server();
    let client = bench.endless(&mut bench.client(&[]));
    let second = Ran::from(bench.client(&["--steps", "1"]).output().unwrap());
    assert!(second.code == 1 && second.stderr.contains("(808)"), "{second:?}");
    end(client);
}
