//! What a fault of one client does to all, in the fake as in the real one.

use cohabit_fakes::{AbruptEnd, AfterFault};

use crate::kit::{Bench, Ran, end, ended};

#[test]
fn a_fault_of_one_is_a_fault_of_all_until_all_are_gone() {
    let bench = Bench::new();
    let server = bench.start_server();
    let stubborn = bench.endless(&mut bench.client(&["--ignore-fault"]));
    let victim = bench.endless(&mut bench.client(&[]));
    let culprit = bench.client(&["--fault-at", "1"]).spawn().unwrap();
    let pid = culprit.id();
    for client in [victim, culprit] {
        let ran = ended(client);
        assert!(ran.code == 1 && ran.stderr.contains("CUDA error: an illegal memory access"), "{ran:?}");
    }
    bench.until_server(server, "FAULT");
    let late = Ran::from(bench.client(&["--steps", "1"]).output().unwrap());
    assert!(late.code == 1 && late.stderr.contains("(807)"), "{late:?}");
    let log = bench.log("server.log");
    assert!(log.contains("Server is handling a fatal GPU error."), "{log}");
    assert!(log.contains(&format!("error trigging process {pid} will be torn down")), "{log}");
    end(stubborn);
    bench.until_server(server, "ACTIVE");
    let next = Ran::from(bench.client(&["--steps", "1"]).output().unwrap());
    assert_eq!(next.code, 0);
}

#[test]
fn the_log_names_no_client_for_other_faults() {
    let bench = Bench::new();
    bench.start_server();
    let ran = Ran::from(bench.client(&["--anonymous-fault-at", "1"]).output().unwrap());
    assert!(ran.code == 1 && ran.stderr.contains("unspecified launch failure"), "{ran:?}");
    let log = bench.log("server.log");
    assert!(log.contains("fatal GPU error") && !log.contains("error trigging process"), "{log}");
}

#[test]
fn a_server_can_be_scripted_never_to_recover() {
    let bench = Bench::new();
    bench.script(|gpu| gpu.mps.after_fault = AfterFault::Stays);
    let server = bench.start_server();
    bench.client(&["--fault-at", "1"]).output().unwrap();
    bench.until_server(server, "FAULT");
    let late = Ran::from(bench.client(&["--steps", "1"]).output().unwrap());
    assert!(late.stderr.contains("(807)"), "{late:?}");
}

#[test]
fn a_client_that_is_removed_has_an_error_that_stays_and_others_have_none() {
    let bench = Bench::new();
    let server = bench.start_server();
    let (removed, other) = (bench.endless(&mut bench.client(&[])), bench.endless(&mut bench.client(&[])));
    assert_eq!(bench.tell(&format!("terminate_client {server} {}\n", removed.id())), "0\n");
    let ran = ended(removed);
    assert!(ran.code == 1 && ran.stderr.contains("the MPS client has been terminated (810)"), "{ran:?}");
    assert_eq!(bench.tell(&format!("get_client_list {server}\n")), format!("{}\n", other.id()));
    bench.until_server(server, "ACTIVE");
    assert_eq!(end(other).stderr, "");
}

#[test]
fn a_client_that_is_killed_can_be_scripted_to_take_all_with_it_unless_it_was_removed_before() {
    let bench = Bench::new();
    bench.script(|gpu| gpu.mps.abrupt_end = AbruptEnd::Faults);
    let server = bench.start_server();
    let [other, removed, killed] = [(); 3].map(|()| bench.endless(&mut bench.client(&["--ignore-fault"])));
    assert_eq!(
        Ran::from(bench.client(&["--steps", "1"]).output().unwrap()).code,
        0,
        "who ends by itself does no harm"
    );
    assert_eq!(bench.tell(&format!("terminate_client {server} {}\n", removed.id())), "0\n");
    end(removed);
    let rest = format!("{}\n{}\n", other.id().min(killed.id()), other.id().max(killed.id()));
    assert_eq!(bench.tell(&format!("get_client_list {server}\n")), rest);
    bench.until_server(server, "ACTIVE");
    end(killed);
    bench.until_server(server, "FAULT");
    end(other);
    bench.until_server(server, "ACTIVE");
}
