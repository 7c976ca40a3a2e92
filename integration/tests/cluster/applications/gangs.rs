//! Gangs: actors that share a job.

use std::fs;

use super::launch::{Launch, kill_process, program};
use crate::kit::*;

impl Cluster {
    fn launch_gangs(&self, arguments: &[&str]) -> Launch {
        self.launch_program(&program("gangs"), arguments)
    }

    /// The actors of the application, one line of words for each.
    fn gang(&self, words: &[&str]) -> Vec<Vec<String>> {
        let seen = self.json(&["actors", "gangs"]);
        let word = |actor: &serde_json::Value, key: &str| {
            actor[key].as_str().map_or_else(|| actor[key].to_string(), str::to_owned)
        };
        let actors = seen["actors"].as_array().unwrap().iter();
        actors.map(|actor| words.iter().map(|key| word(actor, key)).collect()).collect()
    }
}

/// Rank 2 of 4, on two nodes, is killed: all four begin anew. So they do when a method panics.
#[test]
fn a_gang_restarts_whole() {
    let cluster = Cluster::start(&["host:2", "host:2"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch_gangs(&["restarts", &go]);
    let line = launch.line();
    let processes = line.trim_matches(['[', ']']).split(", ").map(|pid| pid.parse().unwrap());
    let processes: Vec<i32> = processes.collect();
    let seen = cluster.gang(&["rank", "state", "incarnation"]);
    assert_eq!(seen, [0, 1, 2, 3].map(|rank| [rank.to_string(), "READY".into(), "1".into()]));
    let places = cluster.gang(&["job", "node"]);
    assert!(places.iter().all(|place| place[0] == places[0][0]), "one job: {places:?}");
    let on_first = places.iter().filter(|place| place[1] == "node0").count();
    assert_eq!(on_first, 2, "{places:?}");
    kill_process(processes[2]);
    fs::write(&go, "").unwrap();
    assert_eq!(launch.line(), "[(0, 2), (1, 2), (2, 2), (3, 2)]");
    let panicked = launch.line();
    assert!(panicked.contains("on purpose"), "{panicked}");
    assert_eq!(launch.line(), "[(0, 3), (1, 3), (2, 3), (3, 3)]");
    assert_eq!(launch.end().code, 0);
    until("all processes are gone", || {
        (0..2).all(|number| processes_with(&cluster.path(&format!("worker{number}/code"))).is_empty())
    });
}

/// All members get a place, or none; each knows the others as ranks of `torchrun` do.
#[test]
fn a_gang_waits_until_all_of_it_have_room() {
    let mut cluster = Cluster::start(&["host:2"]);
    let go = cluster.path("go");
    let blocker = cluster.submit(&[], &format!("until test -e {go}; do sleep 0.05; done"));
    cluster.until_state(&blocker, "RUNNING");
    let mut launch = cluster.launch_gangs(&["waits", "2"]);
    assert_eq!(launch.line(), "created");
    until("both wait", || cluster.gang(&["state"]) == [["PENDING"], ["PENDING"]]);
    fs::write(&go, "").unwrap();
    let first = launch.line();
    let second = launch.line();
    let (first, second): (Vec<&str>, Vec<&str>) = (first.split(' ').collect(), second.split(' ').collect());
    assert_eq!((&first[..3], &second[..3]), (&["0", "2", "1"][..], &["1", "2", "1"][..]));
    assert_eq!(first[3..], second[3..], "they meet at the same place");
    assert!(first[4].parse::<u16>().is_ok(), "{first:?}");
    assert_eq!(launch.end().code, 0);
    cluster.add_worker("host:1");
    let refused = cluster.launch_gangs(&["waits", "4"]).end();
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("no node"), "{}", refused.stderr);
}

#[test]
fn members_without_gpus_run_beside_each_other_and_end_together() {
    let cluster = Cluster::start(&["host:1"]);
    let mut launch = cluster.launch_gangs(&["beside"]);
    assert_eq!(launch.line(), "3 processes");
    assert_eq!(launch.line(), "2 of 3");
    assert_eq!(launch.line(), "[(0, 1), (1, 1), (2, 1)]");
    assert_eq!(launch.line(), "the actor was stopped: create another one");
    assert_eq!(launch.end().code, 0);
}
