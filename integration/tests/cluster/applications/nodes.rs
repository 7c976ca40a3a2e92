//! Applications that span nodes.

use std::fs;

use serde_json::Value;

use super::launch::{Launch, program};
use crate::kit::*;

/// What each value of the program has.
const RIGHT: &str = "3145728";

/// A cluster whose first node is full, with an application on it that has been told of a second one.
struct TwoNodes {
    cluster: Cluster,
    launch: Launch,
    go: String,
}

impl TwoNodes {
    /// `part` is what the program does.
    fn start(part: &str) -> TwoNodes {
        let mut cluster = Cluster::with_head(&["--policy", "fifo", "--lost-after", "1s"], &[]);
        cluster.add_worker("host:1");
        let go = cluster.path("go");
        let mut launch = cluster.launch_program(&program("nodes"), &[part, &go]);
        assert_eq!(launch.line(), "kept");
        // The head is soon certain that what ran there has ended.
        cluster.add_worker_with("host:1", &["--orphan-grace", "1s"]);
        fs::write(&go, "").unwrap();
        TwoNodes { cluster, launch, go }
    }

    /// The second node dies, and a third one joins.
    fn lose_second(&mut self) {
        self.cluster.machine_dies(1);
        self.cluster.add_worker("host:1");
        fs::write(format!("{}.lost", self.go), "").unwrap();
    }

    fn runs(&self) -> Vec<String> {
        let runs = fs::read_to_string(format!("{}.runs", self.go)).unwrap();
        let mut runs: Vec<String> = runs.lines().map(str::to_owned).collect();
        runs.sort();
        runs
    }

    /// The application ends well and leaves nothing.
    fn end(self) {
        let ended = self.launch.end();
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        let cluster = self.cluster;
        until("all processes are gone", || {
            (0..3).all(|number| processes_with(&cluster.path(&format!("worker{number}/code"))).is_empty())
        });
    }
}

#[test]
fn calls_and_values_go_from_node_to_node() {
    let mut nodes = TwoNodes::start("travels");
    assert_eq!(nodes.launch.line(), "calls: 1");
    assert_eq!(nodes.launch.line(), "in order: true");
    assert_eq!(nodes.launch.line(), format!("right there: {RIGHT}"));
    assert_eq!(nodes.launch.line(), format!("right here: {RIGHT}"));
    nodes.end();
}

/// Two results of tasks were on a node that is lost: both tasks run again and give the same bytes. What was
/// put there is lost.
#[test]
fn a_lost_node_is_made_good() {
    let mut nodes = TwoNodes::start("lost");
    assert_eq!(nodes.launch.line(), "put");
    assert_eq!(nodes.runs(), ["1", "2"]);
    nodes.lose_second();
    assert_eq!(nodes.launch.line(), format!("right: {RIGHT}"));
    assert_eq!(nodes.launch.line(), format!("right: {RIGHT}"));
    assert_eq!(nodes.runs(), ["1", "1", "2", "2"]);
    let lost = nodes.launch.line();
    assert!(lost.contains("node1") && lost.contains("Put or make it again"), "{lost}");
    nodes.end();
}

#[test]
fn an_actor_of_a_lost_node_begins_anew_on_another() {
    let mut nodes = TwoNodes::start("actor");
    assert_eq!(nodes.launch.line(), "calls: 1");
    let actors = |cluster: &Cluster| cluster.json(&["actors", "nodes"])["actors"].clone();
    let states = |actors: &Value| [0, 1].map(|number| actors[number]["state"].as_str().unwrap().to_owned());
    assert_eq!(states(&actors(&nodes.cluster)), ["READY", "READY"]);
    nodes.lose_second();
    until("its node is silent", || states(&actors(&nodes.cluster)) == ["READY", "UNREACHABLE"]);
    let reason = actors(&nodes.cluster)[1]["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("nothing has been heard of node node1 for"), "{reason}");
    let job = actors(&nodes.cluster)[1]["job"].as_str().unwrap().to_owned();
    let explained = nodes.cluster.ok(&["explain", "nodes"]);
    assert!(explained.contains("Node node1 is unreachable since 20"), "{explained}");
    assert!(explained.contains(&format!("actor 'Keeper' (job {job}/0)")), "{explained}");
    assert!(explained.contains(&format!("Actor 2 (Keeper) waits: {}", &reason[..40])), "{explained}");
    assert_eq!(nodes.launch.line(), "calls: 1");
    nodes.end();
}

/// The output of `main` does not arrive while its node is away: its launcher says so, and when it is back.
#[test]
fn a_launcher_says_that_the_node_of_its_main_is_away() {
    let mut cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch(&["steady", &go]);
    assert_eq!(launch.line(), "calling");
    cluster.kill_worker(0);
    let told = launch.told("nothing has been heard of node node0, where main (job 2) runs, since");
    assert!(told.contains("`cohabit explain 2` says more"), "{told}");
    let reason = cluster.show("2")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("; nothing has been heard of node node0 for"), "{reason}");
    cluster.restart_worker(0);
    launch.told("node node0 is back: main, job 2, goes on");
    fs::write(&go, "").unwrap();
    let ended = launch.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "the same process: true\n"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("node0"), "each is said once: {}", ended.stderr);
}

/// `main` and the coordinator are on one node. When the head is certain that they have ended, both run again.
#[test]
fn an_application_starts_anew_when_the_node_of_its_coordinator_is_lost() {
    let mut cluster = Cluster::with_head(&["--lost-after", "1s"], &[]);
    cluster.add_worker_with("host:1", &["--orphan-grace", "1s"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch(&["steady", &go]);
    assert_eq!(launch.line(), "calling");
    cluster.add_worker("host:1");
    cluster.machine_dies(0);
    launch.told("nothing has been heard of node node0");
    launch.told("application 1 starts anew: its coordinator was lost: node node0 was unreachable for");
    assert_eq!(launch.line(), "calling");
    fs::write(&go, "").unwrap();
    assert_eq!(launch.end().code, 0);
}

/// Two launches on three nodes: the program is sent to the head once, and to each node once.
#[test]
fn a_binary_travels_once() {
    let mut cluster = Cluster::start(&[]);
    let wires = [(); 4].map(|()| Proxy::to(cluster.address()));
    let [launcher, workers @ ..] = &wires;
    workers.iter().for_each(|wire| cluster.add_worker_through(wire, "host:1", &[]));
    let program = program("nodes");
    let bytes = fs::metadata(&program).unwrap().len();
    let sent = || wires.each_ref().map(|wire| wire.passed() / bytes);
    for _ in 0..2 {
        let ended = cluster.launch_program_at(launcher.address().to_owned(), &program, &["everywhere"]).end();
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "kept\n"), "{}", ended.stderr);
        assert_eq!(sent(), [1; 4]);
    }
}
